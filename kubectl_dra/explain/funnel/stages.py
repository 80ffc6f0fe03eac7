"""A stage of a funnel during its computation, what a node lacks there, and why a device is rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct, field

from kubectl_dra.allocation.capacity import CapacityShortage
from kubectl_dra.allocation.counters import CounterShortage
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.api.claims import DeviceRequest
from kubectl_dra.api.slices import PoolID
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.explain.diagnosis import Position, StageError
from kubectl_dra.explain.phrase import ObjectName, Phrase, Statement, Words, say
from kubectl_dra.explain.scene.view import Published

SELECTORS = ("class-selector", "request-selector")
_TOLD_BY_NUMBERS = ("published", "node", "binding", "held")


class StageResult(Struct):
    """A stage of a funnel during its computation: who failed it, and why.

    ``selector`` is the label without the number of the term, ``term`` the term's number in the selector
    ``program``.
    """

    name: str
    label: Words
    selector: Words = ""
    expression: str = ""
    program: str = ""
    term: int = 0
    passed: int = 0
    failed: list[Published] = field(default_factory=list)
    reasons: list[Words] = field(default_factory=list)
    errors: list[tuple[Published, str, int | None]] = field(default_factory=list)

    def fail(self, item: Published, reason: Words) -> None:
        self.failed.append(item)
        self.reasons.append(reason)


class Shortfall(NamedTuple):
    """A node has too few devices left after the stage at ``position``: ``left`` of them."""

    position: int
    left: int
    text: Words
    request: str


GROUPS_GATE = "DRADeviceCompatibilityGroups"


class SelectorFalse(Statement, frozen=True):
    """A selector does not hold on the device."""

    TEXT = "false"


class FeatureOff(Statement, frozen=True):
    """The device needs a feature gate that is off; ``what`` is the feature that it uses."""

    TEXT = "{what}, and the feature {gate} is off"
    what: str
    gate: str


class OperationsNotSkipped(Statement, frozen=True):
    """The kubelet of the device's node cannot omit operations that the slice says are not needed."""

    TEXT = "node {node} does not declare DRAOptionalNodeOperations, which the slice needs for skipNodeOperations"
    node: ObjectName


class PoolObsolete(Statement, frozen=True):
    """The node's slices of the pool are of an older generation."""

    TEXT = "pool {pool} is obsolete here: a newer generation exists for other nodes"
    pool: PoolID | tuple[PoolID, ...]


class CounterOverdrawn(Statement, frozen=True):
    """Devices in use take more of a counter than it has."""

    TEXT = "counter {counter} of set {counter_set} is overdrawn ({available}){held}"
    counter: str
    counter_set: str
    available: object
    held: Words


def counted(reasons: Iterable[Words]) -> list[tuple[Words, int]]:
    """Each reason with its frequency, most frequent first."""
    # Devices of one kind share one reason, so that few have to be compared.
    by_identity: dict[int, tuple[Words, int]] = {}
    for reason in reasons:
        _, times = by_identity.get(id(reason), (reason, 0))
        by_identity[id(reason)] = (reason, times + 1)
    counts: Counter[Words] = Counter()
    for reason, times in by_identity.values():
        counts[reason] += times
    return counts.most_common()


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
    """Whether a shortfall at this stage is described without the reason of a device."""
    return stage.name in _TOLD_BY_NUMBERS or (stage.name in SELECTORS and not stage.errors)


def story(stage: StageResult, remaining: int, lost: int, needed: int, first: Words) -> Words:
    """What a node lacks after a stage: ``remaining`` devices reached it, ``lost`` of them fail because of ``first``."""
    numbers = {"left": remaining - lost, "remaining": remaining, "lost": lost, "needed": needed}
    words = {"label": stage.label, "first": first}
    if stage.name == "pool":
        return first
    if stage.name in SELECTORS:
        if numbers["left"]:
            return say("{left} of {remaining} devices match {label}, {needed} needed", **numbers, **words)
        if stage.errors:
            return say("{label} fails on {lost} of {remaining} devices: {first}", **numbers, **words)
        return say("{left} of {remaining} devices match {label}", **numbers, **words)
    if stage.name == "held":
        return say("{left} of {remaining} matching devices free, {needed} needed", **numbers)
    if stage.name == "taint":
        text = "{left} of {remaining} matching devices untainted, {needed} needed ({first})"
        return say(text, **numbers, first=first)
    if stage.name in ("capacity", "groups", "counters"):
        return say("{left} of {remaining} matching devices {label}, {needed} needed ({first})", **numbers, **words)
    return say("{left} of {remaining} devices {label}, {needed} needed", **numbers, label=stage.label)


def describe_shortage(short: CapacityShortage) -> Phrase:
    """A capacity shortage."""
    if short.reason == "unknown":
        return say("has no capacity {name}", name=short.capacity)
    if short.reason == "policy":
        return say("{short.capacity} {short.amount} violates its request policy", short=short)
    return say(
        "{short.amount} of {short.capacity}{whole} does not fit: {short.used} of {short.value} used",
        short=short,
        whole="" if short.requested is not None else " (all of it, not requested by name)",
    )


def describe_taint(taint: DeviceTaint, spec: DeviceRequest) -> Phrase:
    """A blocking taint, with the toleration that comes nearest to it."""
    near = next((entry for entry in spec.tolerations if entry.key == taint.key), None)
    if near is None:
        return with_rule(taint)
    text = "{taint}; toleration for {key} differs in {part}"
    return say(text, taint=with_rule(taint), key=near.key, part=near.mismatch(taint))


def with_rule(taint: DeviceTaint) -> Phrase:
    """A taint, and the rule that sets it."""
    if taint.rule:
        return say("{taint} (DeviceTaintRule {rule})", taint=str(taint), rule=ObjectName("DeviceTaintRule", taint.rule))
    return say("{taint}", taint=str(taint))


class CounterShort(Statement, frozen=True):
    """A counter has too little left because of the devices of ``holders``."""

    TEXT = "needs {short.needed} of counter {short.counter} in set {short.counter_set}, {short.available} left{used}"
    short: CounterShortage
    holders: tuple[Phrase, ...] = ()

    @property
    def used(self) -> Words:
        """By whom."""
        return say(", used by {holders:some}", holders=self.holders) if self.holders else ""


def describe_counters(short: CounterShortage, holders: tuple[Phrase, ...]) -> Words:
    """A counter shortage."""
    held = say(", used by {holders:some}", holders=holders) if holders else ""
    if not short.needed:
        return CounterOverdrawn(short.counter, short.counter_set, short.available, held)
    return CounterShort(short, holders)


def describe_pool(pool: Pool) -> Words:
    """What makes a pool unusable; empty if it is usable."""
    if pool.incomplete and pool.ignored:
        text = "{slices:slice} of pool {pool} {slices:has|have} compatibility groups, and the feature {gate} is off"
        return say(text, slices=pool.ignored, pool=pool.id, gate=GROUPS_GATE)
    if pool.incomplete:
        text = "pool {pool.id} is incomplete: generation {pool.generation} has {pool.found} of {pool.expected} slices"
        return say(text, pool=PoolCounts(pool.id, pool.generation, pool.found, pool.expected))
    return say("pool {pool} is invalid: {problem}", pool=pool.id, problem=pool.invalid) if pool.invalid else ""


class PoolCounts(NamedTuple):
    """The numbers of an incomplete pool."""

    id: PoolID
    generation: int
    found: int
    expected: int
