"""What becomes of each rule of one ``taint``: decided once, and then either shown or carried out."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from kubectl_dra.taint import typed as times
from kubectl_dra.taint.rules import CHANGED, CREATED, REFUSED, UNCHANGED, Decision, RuleStage, Wish
from kubectl_dra.taint.targets import Target

NO_EXECUTE = "NoExecute"


class RuleStep(Struct, frozen=True):
    """One rule: the device, what is wished, and how that compares with the rule that is there."""

    target: Target
    wish: Wish
    decision: Decision

    def stage(self, at: datetime) -> RuleStage:
        """What to write at a time: the effect itself, or with --drain NoSchedule and the time at which NoExecute comes.

        A drain that goes on keeps its time, and one that is over is not begun again.
        """
        now = self.decision.stage
        if self.wish.grace is None or (now is not None and now.effect == NO_EXECUTE):
            return RuleStage(self.wish.taint.effect)
        started = now is not None and now.effect == "NoSchedule" and now.next_at
        due = now.next_at if started and now else times.stamp(times.later(at, self.wish.grace))
        return RuleStage("NoSchedule", self.wish.taint.effect, due)

    def outcome(self, at: datetime) -> str:
        """What writing that comes to: created, changed, unchanged or refused."""
        if self.decision.action == "refuse":
            return REFUSED
        if self.decision.stage is None:
            return CREATED
        return UNCHANGED if self.decision.same_facts and self.decision.stage == self.stage(at) else CHANGED

    def evicts(self, at: datetime) -> datetime | None:
        """When the rule, written at a time, evicts pods without a toleration; None for effects that never do.

        The server counts tolerationSeconds from the change of the effect to NoExecute.
        """
        now, stage = self.decision.stage, self.stage(at)
        if stage.next_at:
            return times.parse(stage.next_at)
        if stage.effect != NO_EXECUTE:
            return None
        since = times.parse(self.decision.since) if now is not None and now.effect == NO_EXECUTE else None
        return since or at
