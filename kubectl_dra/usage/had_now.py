"""Whether devices of a class, or one device, can be had now, who has them, and what keeps them from being given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from kubectl_dra.allocation.capacity import NOTHING, CapacityShortage, shortage
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.drivers_on_nodes import joined, named_in
from kubectl_dra.drivers.health import NodeDriver
from kubectl_dra.drivers.refused_claims import PartOfNode, any_of_whole_nodes, parts_of_node, published_on
from kubectl_dra.explain.devices.capacity_left import CapacityRoom, capacity_left
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory
from kubectl_dra.explain.diagnosis import Verdict
from kubectl_dra.explain.unread import Stake, Unread, unread_of, unread_of_share, unread_of_start
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.usage.choices import UNUSED
from kubectl_dra.usage.claim_use import ClaimUse, claim_uses
from kubectl_dra.usage.largest_request import LargestRequest, RequestTrials, largest_request


class ClassNow(Struct, frozen=True):
    """What a request for a class could get now.

    ``largest`` is None where devices can be shared: how much is left then depends on what is asked for. ``room`` is
    what is left of their capacities, the scarcest first; ``unnamed`` is what a request that names no amount lacks on
    the device with most of that, where no device serves it. ``idle`` are the unused claims that hold devices of it,
    ``broken`` the drivers that the class names and that are not well.
    ``unsure`` is what was not read, and tells whether a pod starts with what it gets.
    ``refused``: the driver refuses the largest request, which is for a part of a node. ``whole``: it gives all devices
    of a node or none, and the largest request is for all of them.
    """

    name: str
    verdict: Verdict
    inventory: Inventory
    largest: LargestRequest | None
    room: tuple[CapacityRoom, ...] = ()
    unnamed: CapacityShortage | None = None
    idle: tuple[ClaimUse, ...] = ()
    broken: tuple[NodeDriver, ...] = ()
    refused: PartOfNode | None = None
    whole: bool = False
    unsure: tuple[Unread, ...] = ()

    @property
    def exit_code(self) -> int:
        """That of the verdict."""
        return self.verdict.exit_code

    @property
    def free(self) -> int:
        """The number of free devices."""
        return self.inventory.states().get(DeviceState.FREE, 0)

    @property
    def unserved(self) -> tuple[DeviceRow, ...]:
        """The devices that the scheduler gives, and that no pod can work with."""
        return tuple(row for row in self.inventory.rows if row.unserved)


_SELECTED: Final = "whether a class selects it is unknown"


class DeviceNow(Struct, frozen=True):
    """What a request could do with a device now; ``uses`` are the claims that hold it.

    ``cordoned`` is its node where that takes no new pods, ``selected``: a class selects it, or may.
    ``whole`` is how many devices its node has, where its driver gives a claim all of them or none. ``unsure`` is what
    was not read, and tells whether a request can have it and its pod starts. ``blockers`` are devices that use up its
    counters, by name, with the claims that hold them.
    """

    verdict: Verdict
    row: DeviceRow
    uses: tuple[ClaimUse, ...] = ()
    cordoned: str = ""
    selected: bool = True
    whole: int = 0
    unsure: tuple[Unread, ...] = ()
    blockers: tuple[tuple[str, ClaimUse], ...] = ()

    @property
    def idle(self) -> bool:
        """Whether it is held for nobody."""
        return bool(self.uses) and len(self.uses) == len(self.row.holders) and all(u.state in UNUSED for u in self.uses)

    @property
    def exit_code(self) -> int:
        """0 if a request can get some of it, or a claim holds it for a pod that needs it; 1 if not, 3 if unknown."""
        return 1 if self.idle and self.verdict is Verdict.ALLOCATED else self.verdict.exit_code


def class_now(name: str, inventory: Inventory, snapshot: Snapshot, scheduler: Scheduler) -> ClassNow:
    """What a request for a class could get; ``inventory`` has its devices and no others."""
    rows, states = inventory.rows, inventory.states()
    trials = RequestTrials(snapshot, scheduler)
    largest = largest_request(name, rows, trials) if rows else LargestRequest(0)
    room = capacity_left(rows, trials.nodes) if largest is None else ()
    open_ = [row for row in rows if _has_room(row) and any(node in trials.nodes for node in row.nodes)]
    unnamed = _unnamed(open_, room, scheduler)
    verdict = Verdict.UNSCHEDULABLE
    if largest.count if largest is not None else open_:
        verdict = Verdict.SCHEDULABLE
    elif DeviceState.UNKNOWN in states or inventory.unread or (largest is not None and largest.at_least):
        verdict = Verdict.UNDETERMINED
    held = {id(claim) for row in rows for claim in row.holders}
    idle = (use for use in _uses(snapshot) if use.state in UNUSED and id(use.claim) in held)
    drivers = {row.id.driver for row in rows} | set(named_in(snapshot.classes[name].selectors))
    nodes = {row.slice.scope.node_name for row in rows}
    # What a driver publishes on a node shows that the class asks for something else.
    broken = tuple(
        row
        for row in joined(snapshot).rows
        if row.driver in drivers and row.ails and (row.node in nodes if rows else not row.devices)
    )
    refused = _refused(rows, largest, snapshot) if largest is not None else None
    whole = refused is None and any_of_whole_nodes({row.id.driver for row in rows if row.state is DeviceState.FREE})
    verdict = verdict if refused is None else Verdict.UNSCHEDULABLE
    unsure = unread_of_start(snapshot) if verdict is Verdict.SCHEDULABLE else ()
    if verdict is Verdict.SCHEDULABLE and largest is None:
        unsure = (*unread_of_share(snapshot), *unsure)
    verdict = Verdict.UNDETERMINED if unsure else verdict
    return ClassNow(name, verdict, inventory, largest, room, unnamed, tuple(idle), broken, refused, whole, unsure)


def _unnamed(rows: Sequence[DeviceRow], room: Sequence[CapacityRoom], scheduler: Scheduler) -> CapacityShortage | None:
    """What a request that names no amount lacks on the device with most left, if no device serves it."""
    fractional = scheduler.features.fractional_capacity
    shorts = {row.id: shortage(row.device, None, row.consumed, NOTHING, fractional=fractional) for row in rows}
    if not room or room[0].on not in shorts or not all(shorts.values()):
        return None
    return shorts[room[0].on]


def _refused(rows: Sequence[DeviceRow], largest: LargestRequest, snapshot: Snapshot) -> PartOfNode | None:
    """Whether the driver of what is free on the node of the largest request gives no part of a node."""
    free = (("", row.id) for row in rows if row.state is DeviceState.FREE and row.nodes == (largest.node,))
    return next(parts_of_node(free, largest.node, snapshot.slices), None)


def device_now(row: DeviceRow, snapshot: Snapshot) -> DeviceNow:
    """What a request could do with a device."""
    held = {id(claim) for claim in row.holders}
    uses = tuple(use for use in _uses(snapshot) if id(use.claim) in held) if held else ()
    only = snapshot.nodes.get(row.nodes[0]) if len(row.nodes) == 1 else None
    cordoned = only.name if only is not None and only.unschedulable else ""
    selected = bool(row.classes) or snapshot.is_gap("DeviceClass")
    node = row.slice.scope.node_name
    whole = published_on(node, row.id.driver, snapshot.slices) if any_of_whole_nodes((row.id.driver,)) else 0
    verdict = _verdict(row, cordoned, selected)
    unsure: tuple[Unread, ...] = ()
    if verdict is Verdict.SCHEDULABLE:
        selecting = () if row.classes else unread_of((Stake("DeviceClass", "", _SELECTED),), snapshot)
        taking = unread_of_share(snapshot) if row.state is DeviceState.SHARED else ()
        unsure = (*selecting, *taking, *unread_of_start(snapshot))
    verdict = Verdict.UNDETERMINED if unsure else verdict
    blockers = tuple(_blockers(row, snapshot)) if row.state is DeviceState.BLOCKED else ()
    return DeviceNow(verdict, row, uses, cordoned, selected, whole, unsure, blockers)


def _blockers(row: DeviceRow, snapshot: Snapshot) -> Iterator[tuple[str, ClaimUse]]:
    """The devices that draw on counters which a device needs, and the claims that hold them."""
    needed = {consumption.counter_set for consumption in row.device.consumes_counters}
    drawing = {
        name
        for slice_ in snapshot.slices
        if slice_.pool == row.slice.pool
        for device, name in zip(slice_.devices, slice_.names, strict=True)
        if any(consumption.counter_set in needed for consumption in device.consumes_counters)
    }
    for use in _uses(snapshot):
        for result in use.results:
            if result.device[:2] == row.id[:2] and result.device.device in drawing:
                yield result.device.device, use


def _verdict(row: DeviceRow, cordoned: str, selected: bool) -> Verdict:
    if row.state is DeviceState.UNKNOWN:
        return Verdict.UNDETERMINED
    if _has_room(row) and selected and not cordoned:
        return Verdict.SCHEDULABLE
    return Verdict.ALLOCATED if row.state in (DeviceState.HELD, DeviceState.SHARED) else Verdict.UNSCHEDULABLE


def _has_room(row: DeviceRow) -> bool:
    """Whether some of a device is left for a request."""
    if row.state is DeviceState.SHARED:
        return not row.also_tainted and not row.unserved and row.used_part < 1
    return row.state is DeviceState.FREE


def _uses(snapshot: Snapshot) -> Sequence[ClaimUse]:
    return claim_uses(snapshot).items if snapshot.missing("ResourceClaim") is None else ()
