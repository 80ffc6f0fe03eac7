"""Devices in groups: those that a list shows in one row, by node, class, model or state, and what is left of them."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Sequence
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.capacity import ZERO
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import BLOCKING_EFFECTS
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.devices.arrangement import CountedBy, SortKey
from kubectl_dra.explain.devices.device_state import DeviceState, model_of
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory, node_count_of, states_of
from kubectl_dra.explain.phrase import Phrase
from kubectl_dra.explain.unread_kind import NotSeen, unread_of_share, unread_of_start

FEW = 20
"""So many rows are shown place by place; where they are more, places with alike rows share them."""


class AlikeDevices(Struct, frozen=True):
    """Devices that differ in nothing but name, holder and the details of the reason.

    ``places`` are where there are as many of them each, in words (``DeviceRow.where``); ``rows`` those of all.
    """

    places: tuple[str, ...]
    model: str
    rows: tuple[DeviceRow, ...]

    @property
    def first(self) -> DeviceRow:
        """One of them, for what they have in common."""
        return self.rows[0]

    @property
    def each(self) -> int:
        """Number of devices in each of the places."""
        return len(self.rows) // len(self.places)

    def holders(self) -> list[ResourceClaim]:
        """The claims that hold them, each once."""
        claims = {id(claim): claim for row in self.rows for claim in row.holders}
        return list(claims.values())


def alike_devices(rows: Iterable[DeviceRow]) -> list[AlikeDevices]:
    """The devices in as few groups as are needed, in the order of the rows."""
    groups: dict[Hashable, list[DeviceRow]] = {}
    for row in rows:
        groups.setdefault((row.where, row.id.pool, *_likeness(row)), []).append(row)
    alike = [*map(_group, groups.values())]
    return alike if len(alike) <= FEW else _of_alike_places(alike)


def singly(rows: Iterable[DeviceRow]) -> list[AlikeDevices]:
    """Each device by itself."""
    return [_group([row]) for row in rows]


def _group(rows: Sequence[DeviceRow]) -> AlikeDevices:
    return AlikeDevices((rows[0].where,), model_of(rows[0].device.attributes), tuple(rows))


def ordered(groups: Iterable[AlikeDevices], order: SortKey) -> list[AlikeDevices]:
    """The groups by this order; those that are equal in it stay as they are."""
    states = list(DeviceState)

    def key(group: AlikeDevices) -> tuple[object, ...]:
        row = group.first
        if order is SortKey.class_:
            return row.classes
        if order is SortKey.model:
            return (group.model,)
        if order is SortKey.state:
            return (states.index(row.state),)
        if order is SortKey.devices:
            return (-len(group.rows),)
        counted = DeviceState.FREE if order is SortKey.free else DeviceState.HELD
        return (-len(group.rows) if row.state is counted else 1,)

    return list(groups) if order is SortKey.name else sorted(groups, key=key)


def _of_alike_places(groups: Sequence[AlikeDevices]) -> list[AlikeDevices]:
    """Groups of places that have the same ones, as one each."""
    by_place: dict[str, list[AlikeDevices]] = {}
    for group in groups:
        by_place.setdefault(group.first.where, []).append(group)
    alike: dict[Hashable, list[list[AlikeDevices]]] = {}
    for own in by_place.values():
        seen = tuple((group.first.id.pool == group.first.where, *_likeness(group.first), group.each) for group in own)
        alike.setdefault(seen, []).append(own)
    return [_merged(several) for places in alike.values() for several in zip(*places, strict=True)]


def _merged(groups: Sequence[AlikeDevices]) -> AlikeDevices:
    if len(groups) == 1:
        return groups[0]
    places = tuple(group.first.where for group in groups)
    return AlikeDevices(places, groups[0].model, tuple(chain.from_iterable(group.rows for group in groups)))


def _likeness(row: DeviceRow) -> tuple[Hashable, ...]:
    """What devices in one row have in common, besides their place."""
    reason = row.reason
    kind: Hashable = reason.template if isinstance(reason, Phrase) else type(reason)
    shown = row.taints
    if row.state is DeviceState.TAINTED:
        kind, shown = None, tuple(taint for taint in row.taints if taint.effect in BLOCKING_EFFECTS)
    taints = tuple((taint.key, taint.value, taint.effect) for taint in shown)
    return row.id.driver, row.classes, model_of(row.device.attributes), row.state, bool(row.holders), kind, taints


# Devices counted by node, class, model or state.


class Tally(Struct, frozen=True):
    """The devices of one node (or place that no node is), class, model or state; ``name`` is empty where none is.

    ``nodes`` is how many nodes see one of them, ``states`` how many are in each state that occurs.
    """

    name: str
    devices: int
    nodes: int
    states: dict[DeviceState, int]


def tallies(inventory: Inventory, by: CountedBy, order: SortKey = SortKey.name) -> list[Tally]:
    """The counts, by name or with the largest number first. A device of several classes counts in each of them."""
    rows: dict[str, list[DeviceRow]] = {}
    for row in inventory.rows:
        for name in names_of(row, by):
            rows.setdefault(name, []).append(row)
    tallies = [Tally(name, len(of), node_count_of(of), states_of(of)) for name, of in rows.items()]
    if by is CountedBy.state:
        places = [state.value for state in DeviceState]
        tallies.sort(key=lambda tally: places.index(tally.name))
    else:
        tallies.sort(key=lambda tally: (not tally.name, tally.name))
    if order is SortKey.devices:
        tallies.sort(key=lambda tally: -tally.devices)
    elif order in (SortKey.free, SortKey.held):
        state = DeviceState(order.value)
        tallies.sort(key=lambda tally: -tally.states.get(state, 0))
    return tallies


def names_of(row: DeviceRow, by: CountedBy) -> Iterable[str]:
    """Under which names a device is counted."""
    if by is CountedBy.class_:
        return row.classes or ("",)
    if by is CountedBy.model:
        return (model_of(row.device.attributes),)
    return (row.state.value if by is CountedBy.state else row.where,)


# What is left of the capacity of devices that can be shared.

ROOM: Final = (DeviceState.SHARED, DeviceState.FREE, DeviceState.UNKNOWN)
"""States of devices that can be shared of which something may be left."""


class CapacityRoom(NamedTuple):
    """What is left of a capacity, how much of it there is, and the most that is left on one device, which is ``on``.

    ``on`` is None where nothing is left on any.
    """

    name: str
    left: Quantity
    total: Quantity
    most: Quantity
    on: DeviceID | None = None

    @property
    def part_left(self) -> float:
        """Part of it that is left."""
        return self.left.approximate_float() / self.total.approximate_float() if self.total else 0.0


def capacity_left(rows: Iterable[DeviceRow], takers: Container[str] | None = None) -> tuple[CapacityRoom, ...]:
    """What is left of each capacity of those devices that can be shared, the one of which least is first.

    ``takers`` are the nodes that take new pods, where not all do: the most is on one of them.
    """
    rooms: dict[str, CapacityRoom] = {}
    for row in rows:
        if not row.device.allow_multiple_allocations or row.state not in ROOM:
            continue
        reached = takers is None or any(node in takers for node in row.nodes)
        for name, quantity in row.device.capacity.items():
            value = Quantity.parse(str(quantity.get("value", "0")))
            rest = ZERO if row.also_tainted or row.unserved else value.sub(row.consumed.get(name, ZERO))
            known = rooms.get(name, CapacityRoom(name, ZERO, ZERO, ZERO))
            room = known._replace(left=known.left + rest, total=known.total + value)
            rooms[name] = room._replace(most=rest, on=row.id) if reached and rest > room.most else room
    return tuple(sorted(rooms.values(), key=lambda room: room.part_left))


def judged_by_start(inventory: Inventory, snapshot: Snapshot) -> Inventory:
    """The inventory with the Pods that were not read: they decide where the scheduler gives some device.

    Of shared devices what may keep from new claims what is left of them decides as well.
    """
    unread = unread_of_start(snapshot)
    given = any(row.state in (DeviceState.FREE, DeviceState.SHARED) for row in inventory.rows)
    notes = unread if given else tuple(NotSeen(unread_kind.gap) for unread_kind in unread)
    shared = any(row.state is DeviceState.SHARED for row in inventory.rows)
    deciding = (*(unread if given else ()), *(unread_of_share(snapshot) if shared else ()))
    return replace(
        inventory,
        notes=tuple(dict.fromkeys((*notes, *inventory.notes))),
        unread=tuple(dict.fromkeys((*inventory.unread, *deciding))),
    )
