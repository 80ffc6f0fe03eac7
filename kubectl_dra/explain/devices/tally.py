"""Devices counted by node, class, model or state."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kubectl_dra.explain.devices.arrangement import CountedBy, SortKey
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory, node_count_of, states_of
from kubectl_dra.explain.devices.model import model_of


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
    found = [Tally(name, len(of), node_count_of(of), states_of(of)) for name, of in rows.items()]
    if by is CountedBy.state:
        places = [state.value for state in DeviceState]
        found.sort(key=lambda one: places.index(one.name))
    else:
        found.sort(key=lambda one: (not one.name, one.name))
    if order is SortKey.devices:
        found.sort(key=lambda one: -one.devices)
    elif order in (SortKey.free, SortKey.held):
        state = DeviceState(order.value)
        found.sort(key=lambda one: -one.states.get(state, 0))
    return found


def names_of(row: DeviceRow, by: CountedBy) -> Iterable[str]:
    """Under which names a device is counted."""
    if by is CountedBy.class_:
        return row.classes or ("",)
    if by is CountedBy.model:
        return (model_of(row.device.attributes),)
    return (row.state.value if by is CountedBy.state else row.where,)
