"""Writes rules: decide, write, and decide again after a concurrent change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.meta import EMPTY, ObjectMeta
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cluster.client import Answered, Client
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.writer import Conflict, Writer
from kubectl_dra.errors import ClusterError
from kubectl_dra.taint.rules import CHANGED, CREATED, UNCHANGED, Decision, RuleStage, Wish, content, decide

KIND: Final = "DeviceTaintRule"
_ROUNDS: Final = 8


class RuleRefused(Exception):
    """An existing rule says something else; nothing was changed."""


class Written(Struct, frozen=True):
    """The result of one write: created, changed or unchanged, and the rule as the server has it."""

    outcome: str
    rule: Mapping[str, Any]


class RuleWriter:
    """Reads and writes the rules of a cluster, in the version that it serves."""

    def __init__(self, cluster: ApiServer, writer: Writer, version: str, *, overwrite: bool = False) -> None:
        self._cluster = cluster
        self._writer = writer
        self._version = version
        self._overwrite = overwrite

    @property
    def client(self) -> Client:
        """The underlying connection."""
        return self._cluster.client

    def get(self, name: str) -> dict[str, Any] | None:
        """The rule as served, or None if it does not exist."""
        return self._cluster.get(KIND, name)

    def decide(self, wish: Wish) -> Decision:
        """What to do about a wish in the current state."""
        return decide(wish, _rule(self.get(wish.name)), overwrite=self._overwrite)

    def write(self, wish: Wish, stage: RuleStage, *, escalate: bool = False) -> Written:
        """Bring a rule to a stage despite concurrent writers.

        ``escalate``: the rule must already exist, made by an earlier step.

        Raises:
            RuleRefused: the rule says something else, belongs to another manager, or was deleted meanwhile.
            ClusterError: the server refuses or cannot be reached.
        """
        unsure = ""
        for _ in range(_ROUNDS):
            raw = self.get(wish.name)
            if raw is None and escalate:
                raise RuleRefused(
                    f"{wish.device}: DeviceTaintRule {wish.name} was deleted by somebody else; nothing is done"
                )
            decision = decide(wish, _rule(raw), overwrite=self._overwrite and not escalate)
            if decision.stage is not None and not self._overwrite:
                stage = _not_later(stage, decision.stage)
            if decision.action == "refuse":
                raise RuleRefused(f"{wish.device}: {decision.why}")
            if raw is not None and decision.same_facts and decision.stage == stage:
                return Written(unsure or UNCHANGED, raw)
            if decision.action == "keep":
                return Written(UNCHANGED, raw or {})
            try:
                rule = self._writer.apply(
                    self.path(wish.name),
                    content(decision.wish, stage, self._version),
                    version=decision.version,
                    force=self._overwrite and not escalate,
                )
            except Conflict as conflict:
                if conflict.owners:
                    owners = ", ".join(conflict.owners)
                    raise RuleRefused(
                        f"{wish.device}: fields of DeviceTaintRule {wish.name} belong to {owners}; --overwrite takes "
                        "them over"
                    ) from None
                if conflict.unsure:
                    # The answer to the first try was lost: if the rule is as wished now, it was this write.
                    unsure = CHANGED if decision.version else CREATED
                continue
            return Written(CHANGED if decision.version else CREATED, rule)
        raise RuleRefused(f"DeviceTaintRule {wish.name} keeps changing, because somebody else writes it, too")

    def create(self, wish: Wish, stage: RuleStage) -> str:
        """Create a rule unless it exists, and return its UID; empty if somebody else just created one.

        Raises:
            ClusterError: the server refuses or cannot be reached.
        """
        try:
            rule = self._writer.apply(self.path(wish.name), content(wish, stage, self._version))
        except Conflict as conflict:
            # The answer to the first try may have been lost: then what is there is ours.
            rule = self.get(wish.name) or {} if conflict.unsure else {}
        return str((rule.get("metadata") or EMPTY).get("uid") or "")

    def delete(self, rule: ObjectMeta) -> bool:
        """Delete the very rule that was read (by UID). False if it was already gone.

        Raises:
            RuleRefused: another rule has the name now.
            ClusterError: the server refuses or cannot be reached.
        """
        try:
            return self._writer.delete(self.path(rule.name), rule.uid)
        except Conflict:
            raise RuleRefused(f"DeviceTaintRule {rule.name} was created again by somebody else; it stays") from None
        except Answered as error:
            if error.status == 404:
                return False
            raise

    def path(self, name: str) -> str:
        """The path of one rule."""
        path = self._cluster.path(KIND, name=name)
        if path is None:
            raise ClusterError(f"{self._cluster.server} no longer serves DeviceTaintRules")
        return path


def _rule(raw: Mapping[str, Any] | None) -> DeviceTaintRule | None:
    return None if raw is None else DeviceTaintRule.from_json(raw)


def _not_later(stage: RuleStage, now: RuleStage) -> RuleStage:
    """The stage, but with the earlier time of a rule already on its way to it: a second run does not postpone that."""
    same = (now.effect, now.next_effect) == (stage.effect, stage.next_effect)
    return RuleStage(stage.effect, stage.next_effect, now.next_at) if same and now.next_at else stage
