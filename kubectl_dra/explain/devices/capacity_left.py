"""What is left of the capacity of devices that can be shared."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final, NamedTuple

from kubectl_dra.allocation.capacity import ZERO
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow

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
    return tuple(sorted(rooms.values(), key=_part_left))


def _part_left(room: CapacityRoom) -> float:
    return room.left.approximate_float() / room.total.approximate_float() if room.total else 0.0
