"""Writes rules: decide, write, and decide again after a concurrent change."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.meta import EMPTY, ObjectMeta
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cluster.client import Answered, Client
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.writer import Conflict, Writer
from kubectl_dra.errors import ClusterError
from kubectl_dra.taint import times
from kubectl_dra.taint.device_taint_rules import (
    CHANGED,
    CREATED,
    KIND,
    UNCHANGED,
    Decision,
    DesiredRule,
    RuleStage,
    content,
    decide,
    stage_of,
)
from kubectl_dra.taint.steady_watches import Patience, TimedOut

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

    def decide(self, desired: DesiredRule) -> Decision:
        """What to do about a desired rule in the current state."""
        return decide(desired, _rule(self.get(desired.name)), overwrite=self._overwrite)

    def write(self, desired: DesiredRule, stage: RuleStage, *, escalate: bool = False) -> Written:
        """Bring a rule to a stage despite concurrent writers.

        ``escalate``: the rule must already exist, made by an earlier step.

        Raises:
            RuleRefused: the rule says something else, belongs to another manager, or was deleted meanwhile.
            ClusterError: the server refuses or cannot be reached.
        """
        unsure = ""
        for _ in range(_ROUNDS):
            raw = self.get(desired.name)
            if raw is None and escalate:
                raise RuleRefused(
                    f"{desired.device}: DeviceTaintRule {desired.name} was deleted by somebody else; nothing is done"
                )
            decision = decide(desired, _rule(raw), overwrite=self._overwrite and not escalate)
            if decision.stage is not None and not self._overwrite:
                stage = _not_later(stage, decision.stage)
            if decision.action == "refuse":
                raise RuleRefused(f"{desired.device}: {decision.why}")
            if raw is not None and decision.same_facts and decision.stage == stage:
                return Written(unsure or UNCHANGED, raw)
            if decision.action == "keep":
                return Written(UNCHANGED, raw or {})
            try:
                rule = self._writer.apply(
                    self.path(desired.name),
                    content(decision.desired, stage, self._version),
                    version=decision.version,
                    force=self._overwrite and not escalate,
                )
            except Conflict as conflict:
                if conflict.owners:
                    owners = ", ".join(conflict.owners)
                    raise RuleRefused(
                        f"{desired.device}: fields of DeviceTaintRule {desired.name} belong to {owners}; --overwrite "
                        "takes them over"
                    ) from None
                if conflict.unsure:
                    # The answer to the first try was lost: if the rule is as desired now, it was this write.
                    unsure = CHANGED if decision.version else CREATED
                continue
            return Written(CHANGED if decision.version else CREATED, rule)
        raise RuleRefused(f"DeviceTaintRule {desired.name} keeps changing, because somebody else writes it, too")

    def create(self, desired: DesiredRule, stage: RuleStage) -> str:
        """Create a rule unless it exists, and return its UID; empty if somebody else just created one.

        Raises ClusterError: the server refuses or cannot be reached.
        """
        try:
            rule = self._writer.apply(self.path(desired.name), content(desired, stage, self._version))
        except Conflict as conflict:
            # The answer to the first try may have been lost: then what is there is ours.
            rule = self.get(desired.name) or {} if conflict.unsure else {}
        return str((rule.get("metadata") or EMPTY).get("uid") or "")

    def delete(self, rule: ObjectMeta) -> bool:
        """Delete the very rule that was read (by UID). False if it was already gone.

        Raises RuleRefused: another rule has the name now; ClusterError: the server refuses or cannot be reached.
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


# The server's own prediction of NoExecute: it answers a rule with the effect None with counts.

ASKING: Final = RuleStage("None", "NoExecute")
ANSWER_SECONDS: Final = 20.0
"""The controller updates the status at most every ten seconds."""
RECENT_SECONDS: Final = 20.0
"""A rule younger than this may be another run's question: its answer is shared."""
_COUNT = re.compile(r"\b([0-9]{1,18}) (published devices?|allocated devices?|pods?)\b")


class ServerAnswer(NamedTuple):
    """The server's message and its counts, each None if the message does not give it."""

    published: int | None
    allocated: int | None
    pods: int | None
    message: str


def server_answer(raw: Mapping[str, Any]) -> ServerAnswer | None:
    """The answer in a rule's status; None while there is none for the rule's current content."""
    generation = (raw.get("metadata") or EMPTY).get("generation")
    for condition in (raw.get("status") or EMPTY).get("conditions") or ():
        if condition.get("type") != "EvictionInProgress" or condition.get("reason") != "NoEffect":
            continue
        if condition.get("observedGeneration") not in (None, generation):
            continue
        message = str(condition.get("message") or "")
        counts = {what.split()[0].rstrip("s"): int(number) for number, what in reversed(_COUNT.findall(message))}
        return ServerAnswer(counts.get("published"), counts.get("allocated"), counts.get("pod"), message)
    return None


def question_of(desired: DesiredRule, decision: Decision) -> DesiredRule | None:
    """The rule that asks the server what a desired rule would do; None if it would evict nobody new.

    If no rule exists, or an interrupted run left one with this question, it is the rule itself. If another
    taint exists, it is a second rule, because the first must not be lifted meanwhile.
    """
    if desired.taint.effect != "NoExecute":
        return None
    if decision.action == "create" or decision.stage == ASKING:
        return decision.desired
    if decision.action == "change" and not decision.same_taint:
        return replace(decision.desired, question=True)
    return None


class Asking:
    """The rules created to be answered (name to UID), and the answers, by rule name."""

    def __init__(self, rules: RuleWriter) -> None:
        self._rules = rules
        self._made: dict[str, str] = {}
        self.answers: dict[str, ServerAnswer] = {}

    @property
    def made(self) -> Set[str]:
        """The names of the rules that did not exist before."""
        return self._made.keys()

    def ask(self, desired_rules: Sequence[DesiredRule], patience: Patience) -> None:
        """Create the rules with effect None and wait for the server's answer to each.

        A rule that somebody else advances meanwhile is left alone, without an answer. If asking fails, the
        new rules are deleted; pure questions always are.

        Raises:
            TimedOut: some answers did not come before the deadline.
            RuleRefused: somebody else deleted one of the rules.
            ClusterError: the server refuses or cannot be reached.
        """
        try:
            for desired in desired_rules:
                self._make(desired, self._rules.get(desired.name))
            for desired in desired_rules:
                answer = self._answer(desired, patience)
                if answer is not None:
                    self.answers[desired.name] = answer
        except (TimedOut, RuleRefused, ClusterError):
            with suppress(RuleRefused, ClusterError):
                self.take_back()
            raise
        finally:
            for desired in desired_rules:
                if desired.question:
                    with suppress(RuleRefused, ClusterError):
                        self._end(desired)

    def _make(self, desired: DesiredRule, old: Mapping[str, Any] | None) -> None:
        if old is not None and _asks(old) and not _recent(old):
            # The server does not answer twice for the same rule, and may have answered long ago.
            self._rules.delete(_metadata(old))
            old = None
        if old is None and (uid := self._rules.create(desired, ASKING)):
            self._made[desired.name] = uid

    def _end(self, desired: DesiredRule) -> None:
        """Delete a question, whoever asked it. Anyone still waiting for the answer asks again."""
        raw = self._rules.get(desired.name)
        if raw is not None and _asks(raw):
            self._rules.delete(_metadata(raw))

    def take_back(self) -> None:
        """Delete our rules that were created only to be answered."""
        for name, uid in self._made.items():
            raw = self._rules.get(name)
            if raw is not None and _asks(raw) and _metadata(raw).uid == uid:
                self._rules.delete(_metadata(raw))

    def _answer(self, desired: DesiredRule, patience: Patience) -> ServerAnswer | None:
        while True:
            raw = patience.ask(lambda: self._rules.get(desired.name))
            if raw is None and desired.question:
                self._make(desired, None)
                patience.pause(0.25)
                continue
            if raw is None:
                raise RuleRefused(
                    f"DeviceTaintRule {desired.name} of device {desired.device} was deleted by somebody else"
                )
            if not _asks(raw):
                return None
            answer = server_answer(raw)
            if answer is not None:
                return answer
            if patience.expired():
                raise TimedOut
            patience.pause(0.25)


def _asks(raw: Mapping[str, Any]) -> bool:
    """Whether a rule is still a question."""
    return stage_of(DeviceTaintRule.from_json(raw)) == ASKING


def _metadata(raw: Mapping[str, Any]) -> ObjectMeta:
    return ObjectMeta.from_json(raw.get("metadata") or EMPTY)


def _recent(raw: Mapping[str, Any]) -> bool:
    """Whether somebody may be asking with this rule right now; then its answer is shared."""
    created = times.parse(_metadata(raw).creation_timestamp)
    return created is not None and (times.now() - created).total_seconds() < RECENT_SECONDS
