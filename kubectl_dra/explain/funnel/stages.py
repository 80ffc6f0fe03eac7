"""A stage of a funnel during its computation, what a node lacks there, and why a device is rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import NamedTuple

from msgspec import Struct, field

from kubectl_dra.allocation.capacity import CapacityLack, CapacityShortage
from kubectl_dra.allocation.counters import CounterShortage, GroupClash
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.allocation.search_context import Alternative, CandidateDevice, Lack
from kubectl_dra.api.claims import DeviceRequest
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.explain.funnel.device_view import DeviceView, PublishedDevice
from kubectl_dra.explain.funnel.shown import Position, StageError, StageName
from kubectl_dra.explain.phrase import ObjectName, Phrase, Statement, Words, say, with_owner

_TOLD_BY_NUMBERS = (StageName.PUBLISHED, StageName.NODE, StageName.BINDING, StageName.HELD)


class StageResult(Struct):
    """A stage of a funnel during its computation: who failed it, and why.

    ``selector`` is the label without the number of the term, ``term`` the term's number in the selector
    ``program``.
    """

    name: StageName
    label: Words
    selector: Words = ""
    expression: str = ""
    program: str = ""
    term: int = 0
    passed: int = 0
    failed: list[PublishedDevice] = field(default_factory=list)
    reasons: list[Words] = field(default_factory=list)
    errors: list[tuple[PublishedDevice, str, int | None]] = field(default_factory=list)

    def fail(self, item: PublishedDevice, reason: Words) -> None:
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
    return StageError(message, item.id, len(stage.errors), position)


def told_by_numbers(stage: StageResult) -> bool:
    """Whether a shortfall at this stage is described without the reason of a device."""
    return stage.name in _TOLD_BY_NUMBERS or (stage.name.selects and not stage.errors)


def story(stage: StageResult, remaining: int, lost: int, needed: int, first: Words) -> Words:
    """What a node lacks after a stage: ``remaining`` devices reached it, ``lost`` of them fail because of ``first``."""
    numbers = {"left": remaining - lost, "remaining": remaining, "lost": lost, "needed": needed}
    words = {"label": stage.label, "first": first}
    if stage.name is StageName.POOL:
        return first
    if stage.name.selects:
        if not lost:
            return say("{left:device} of this kind, {needed} needed", **numbers)
        if numbers["left"]:
            return say("{left} of {remaining} devices match {label}, {needed} needed", **numbers, **words)
        if stage.errors:
            return say("{label} fails on {lost} of {remaining} devices: {first}", **numbers, **words)
        return say("{left} of {remaining} devices match {label}", **numbers, **words)
    if stage.name is StageName.HELD:
        return say("{left} of {remaining} matching devices free, {needed} needed", **numbers)
    if stage.name is StageName.TAINT:
        text = "{left} of {remaining} matching devices untainted, {needed} needed ({first})"
        return say(text, **numbers, first=first)
    if stage.name in (StageName.CAPACITY, StageName.GROUPS, StageName.COUNTERS):
        return say("{left} of {remaining} matching devices {label}, {needed} needed ({first})", **numbers, **words)
    return say("{left} of {remaining} devices {label}, {needed} needed", **numbers, label=stage.label)


def describe_shortage(short: CapacityShortage) -> Phrase:
    """A capacity shortage."""
    if short.reason is CapacityLack.UNKNOWN:
        return say("has no capacity {name}", name=short.capacity)
    if short.reason is CapacityLack.POLICY:
        return say("{short.capacity} {short.amount} violates its request policy", short=short)
    return say(
        "{short.amount} of {short.capacity}{unnamed} does not fit: {short.used} of {short.value} used",
        short=short,
        unnamed=unnamed(short),
    )


def unnamed(short: CapacityShortage) -> Words:
    """Why a request takes an amount that it does not name; empty if it names it."""
    if short.requested is not None:
        return ""
    return say(
        " ({which}: the request names no amount)",
        which="all of it" if short.amount == short.value else "the default of its policy",
    )


def describe_taint(taint: DeviceTaint, spec: DeviceRequest) -> Phrase:
    """A blocking taint, with the toleration that comes nearest to it."""
    near = next((toleration for toleration in spec.tolerations if toleration.key == taint.key), None)
    if near is None:
        return with_owner(taint)
    text = "{taint}; toleration for {key} differs in {part}"
    return say(text, taint=with_owner(taint), key=near.key, part=near.mismatch(taint))


class CounterLack(Statement, frozen=True):
    """What is wrong with a counter because of the devices of ``holders``."""

    short: CounterShortage
    holders: tuple[Phrase, ...] = ()

    @property
    def used(self) -> Words:
        """By whom."""
        return say(", used by {holders:some}", holders=self.holders) if self.holders else ""


class CounterShort(CounterLack, frozen=True):
    """It has too little left."""

    TEXT = "needs {short.needed} of counter {short.counter} in set {short.counter_set}, {short.available} left{used}"


class CounterOverdrawn(CounterLack, frozen=True):
    """Devices in use take more of it than it has."""

    TEXT = "counter {short.counter} of set {short.counter_set} is overdrawn ({short.available}){used}"


def describe_counters(short: CounterShortage, holders: tuple[Phrase, ...]) -> Words:
    """A counter shortage."""
    return CounterShort(short, holders) if short.needed else CounterOverdrawn(short, holders)


def describe_pool(pool: Pool) -> Words:
    """What makes a pool unusable; empty if it is usable."""
    if pool.incomplete and pool.ignored:
        text = "{slices:slice} of pool {pool} {slices:has|have} compatibility groups, and the feature {gate} is off"
        return say(text, slices=pool.ignored, pool=pool.id, gate=GROUPS_GATE)
    if pool.incomplete:
        text = "pool {pool} is incomplete: generation {generation} has {found} of {expected} slices"
        return say(text, pool=pool.id, generation=pool.generation, found=pool.found, expected=pool.expected)
    return say("pool {pool} is invalid: {problem}", pool=pool.id, problem=pool.invalid) if pool.invalid else ""


# At which stage of a funnel each published device fails, and why. Kept for slices: devices are many more.

Shape = tuple[int | None, ...]
"""For devices in their order: the position of the stage at which each fails, or None if it is usable."""


class Failures:
    """The failures of a funnel whose ``stages`` are complete."""

    def __init__(self, view: DeviceView, stages: Sequence[StageResult]) -> None:
        self._view = view
        self._stages = stages
        # By the slice's name. Slices of the same shape share it.
        self._shapes = self._of_slices()
        self._mixed: dict[str, Shape] = {}
        self._reasons: dict[int, dict[str | int, Words]] = {}

    def _of_slices(self) -> dict[str, Shape]:
        # Stages keep the order of the devices, so each device that fails is the next one of its stage.
        failing = [iter(map(id, stage.failed)) for stage in self._stages]
        following = {next(rest, 0): position for position, rest in enumerate(failing)}
        shared: dict[Shape, Shape] = {}
        shapes: dict[str, Shape] = {}
        for name, items in self._view.by_slice.items():
            positions: list[int | None] = []
            for key in map(id, items):
                position = following.pop(key, None)
                if position is not None:
                    following[next(failing[position], 0)] = position
                positions.append(position)
            shape = tuple(positions)
            shapes[name] = shared.setdefault(shape, shape)
        return shapes

    def each(self) -> Iterator[tuple[PublishedDevice, int | None]]:
        """The published devices, each with the position of the stage at which it fails."""
        return zip(self._view.published, chain.from_iterable(self._shapes.values()), strict=True)

    def on_node(self, node: str) -> Iterator[tuple[PublishedDevice, int | None]]:
        """The same of the devices that a node sees."""
        return zip(self._view.on_node(node), self.shape(node), strict=True)

    def on_nodes(self, nodes: Iterable[str]) -> Iterator[tuple[PublishedDevice, int | None]]:
        """The same of several nodes. A device that many of them see comes once."""
        seen: set[int] = set()
        for node in nodes:
            if self._view.sees_alone(node):
                yield from self.on_node(node)
                continue
            for item, position in self.on_node(node):
                if id(item) not in seen:
                    seen.add(id(item))
                    yield item, position

    def shape(self, node: str) -> Shape:
        """The shape of what a node sees; nodes of the same shape fall short alike."""
        items = self._view.on_node(node)
        if not items:
            return ()
        name = items[0].slice.name
        if items is self._view.by_slice[name]:
            return self._shapes[name]
        known = self._mixed.get(node)
        if known is None:
            known = self._mixed[node] = tuple(self._of_several(items))
        return known

    def _of_several(self, items: Sequence[PublishedDevice]) -> Iterator[int | None]:
        """Where the devices of several slices, or of parts of slices, fail."""
        for name, group in groupby(items, lambda item: item.slice.name):
            some, whole, shape = list(group), self._view.by_slice[name], self._shapes[name]
            if len(some) < len(whole):
                places = dict(zip(map(id, whole), shape, strict=True))
                shape = tuple([places[id(item)] for item in some])
            yield from shape

    def reason(self, item: PublishedDevice, position: int | None) -> Words:
        """Why a device fails at the stage of this position; empty if it is usable."""
        return "" if position is None else self.reasons((item,), position)[0]

    def reasons(self, items: Iterable[PublishedDevice], position: int) -> tuple[Words, ...]:
        """Why devices that fail at a stage do so."""
        known = self._reasons.get(position)
        if known is None:
            known = self._reasons[position] = _reasons(self._stages[position])
        return tuple([known[name] if (name := item.slice.name) in known else known[id(item)] for item in items])


def _reasons(stage: StageResult) -> dict[str | int, Words]:
    """By the slice's name where all that it loses have the same reason, else by the device's identity."""
    reasons: dict[str | int, Words] = {}
    for name, group in groupby(zip(stage.failed, stage.reasons, strict=True), lambda pair: pair[0].slice.name):
        first, *rest = group
        if all(reason is first[1] for _, reason in rest):
            reasons[name] = first[1]
        else:
            reasons.update((id(item), reason) for item, reason in (first, *rest))
    return reasons


# What the search itself refuses while combining devices: counters and capacity used up by the pod's own picks.


class LostDevice(NamedTuple):
    """A device that a request lost to others of the same pod, and what the device then lacks."""

    request: str
    device: DeviceID
    lack: Lack

    @property
    def said(self) -> Words:
        """What it lacks."""
        lack = self.lack
        if isinstance(lack, CounterShortage):
            return say(
                "counter {short.counter} of set {short.counter_set}: {short.available} available, {short.charged} "
                "taken by the pod's other devices, {short.needed} more needed",
                short=lack,
            )
        if isinstance(lack, CapacityShortage):
            return say("{short.capacity}: {short.used} of {short.value} used, {short.amount} more needed", short=lack)
        text = "one {own}, and what draws on counter set {clash.counter_set} by then {common}"
        return say(text, clash=lack, own=own_groups(lack), common=common_groups(lack))


class Refusals(Struct):
    """An observer of one attempt that keeps the refusals caused by devices picked before."""

    counts: Counter[type[Lack]] = field(default_factory=Counter)
    first: dict[type[Lack], LostDevice] = field(default_factory=dict)

    def lacks(self, alternative: Alternative, candidate: CandidateDevice, lack: Lack) -> None:
        """Record one refusal of the search."""
        kind = type(lack)
        self.counts[kind] += 1
        if kind not in self.first:
            self.first[kind] = LostDevice(alternative.result_name, candidate.id, lack)

    def most_frequent(self) -> LostDevice | None:
        """The first example of the most frequent kind of refusal, or None."""
        if not self.counts:
            return None
        return self.first[self.counts.most_common(1)[0][0]]


# Compatibility groups that keep a device from being used beside others, in words.


def own_groups(clash: GroupClash) -> Words:
    """The compatibility groups of a device."""
    text = "is in compatibility {count:group|groups} {own}"
    return say(text, count=len(clash.own), own=clash.own) if clash.own else "is in no compatibility group"


def common_groups(clash: GroupClash) -> Words:
    """The groups that the devices beside it share."""
    return say("is in {common}", common=clash.common) if clash.common else "has no group in common"


class GroupsDiffer(Statement, frozen=True):
    """A device may not be in use beside others of its counter set: they have no compatibility group in common."""

    TEXT = "{own}; what draws on counter set {clash.counter_set} now {common}{used}"
    clash: GroupClash
    holders: tuple[Phrase, ...] = ()

    @property
    def own(self) -> Words:
        """The device's groups."""
        return own_groups(self.clash)

    @property
    def common(self) -> Words:
        """Those of the others."""
        return common_groups(self.clash)

    @property
    def used(self) -> Words:
        """By whom."""
        return say(": {holders:some}", holders=self.holders) if self.holders else ""
