"""A stage of a funnel while it is computed, and its words: what a node lacks, and why a device is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kubectl_dra.allocation.capacity import CapacityShortage
from kubectl_dra.allocation.counters import CounterShortage
from kubectl_dra.api.claims import DeviceRequest
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.explain.diagnosis import Position, StageError
from kubectl_dra.explain.scene.view import Published

SELECTORS = ("class-selector", "request-selector")
_TOLD_BY_NUMBERS = ("published", "node", "binding", "held")


@dataclass(slots=True)
class StageResult:
    """A stage while the funnel is computed: who failed it, and why."""

    name: str
    label: str
    expression: str = ""
    program: str = ""
    term: int = 0
    passed: int = 0
    failed: list[Published] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    errors: list[tuple[Published, str, int | None]] = field(default_factory=list)

    def fail(self, item: Published, reason: str) -> None:
        self.failed.append(item)
        self.reasons.append(reason)


class Shortfall(NamedTuple):
    """A node has too few devices left after the stage at ``position``: ``left`` of them."""

    position: int
    left: int
    text: str
    request: str


def stage_error(stage: StageResult) -> StageError | None:
    if not stage.errors:
        return None
    item, message, offset = stage.errors[0]
    position = None
    if offset is not None:
        before = stage.program[:offset]
        position = Position(offset, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)
    return StageError(message, str(item.id), len(stage.errors), position)


def told_by_numbers(stage: StageResult) -> bool:
    """Whether a shortfall at this stage is told without the reason of a device."""
    return stage.name in _TOLD_BY_NUMBERS or (stage.name in SELECTORS and not stage.errors)


def story(stage: StageResult, remaining: int, lost: int, needed: int, first: str) -> str:
    left = remaining - lost
    if stage.name == "pool":
        return first
    if stage.name in SELECTORS:
        if stage.errors and not left:
            return f"{stage.label} fails on {lost} of {remaining} devices: {first}"
        return f"{left} of {remaining} devices match {stage.label}" + (f", {needed} needed" if left else "")
    if stage.name == "held":
        return f"{left} of {remaining} matching devices free, {needed} needed"
    if stage.name == "taint":
        return f"{left} of {remaining} matching devices untainted, {needed} needed ({first})"
    if stage.name in ("capacity", "counters"):
        return f"{left} of {remaining} matching devices {stage.label}, {needed} needed ({first})"
    return f"{left} of {remaining} devices {stage.label}, {needed} needed"


def describe_shortage(short: CapacityShortage) -> str:
    """A capacity shortage in words."""
    if short.reason == "unknown":
        return f"has no capacity {short.capacity}"
    if short.reason == "policy":
        return f"{short.capacity} {short.amount} violates its request policy"
    asked = f"{short.amount} of {short.capacity}" + (
        "" if short.requested is not None else " (all of it, not requested by name)"
    )
    return f"{asked} does not fit: {short.used} of {short.value} used"


def describe_taint(taint: DeviceTaint, spec: DeviceRequest) -> str:
    """A blocking taint in words, with the nearest toleration that misses it."""
    source = f" (DeviceTaintRule {taint.rule})" if taint.rule else ""
    near = next(
        (
            f"; toleration for {entry.key} differs in {entry.mismatch(taint)}"
            for entry in spec.tolerations
            if entry.key == taint.key
        ),
        "",
    )
    return f"taint {taint}{source}{near}"


def describe_counters(short: CounterShortage, holders: str) -> str:
    """A counter shortage in words."""
    held = f", used by {holders}" if holders else ""
    if not short.needed:
        return f"counter {short.counter} of set {short.counter_set} is overdrawn ({short.available}){held}"
    return f"needs {short.needed} of counter {short.counter} in set {short.counter_set}, {short.available} left{held}"
