"""The devices of each node or class: free, held, tainted, held and unused; and the largest request that still fits."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.api.nodes import Node
from kubectl_dra.explain.devices.arrangement import CountedBy
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory
from kubectl_dra.explain.devices.tally import Tally, names_of, tallies
from kubectl_dra.usage.claim_state import UNUSED
from kubectl_dra.usage.claim_use import ClaimUses
from kubectl_dra.usage.largest_request import LargestRequest, largest_request

_HELD = (DeviceState.HELD, DeviceState.SHARED)


class DeviceSupply(Struct, frozen=True):
    """The devices of one node (or place that no node is) or class.

    ``unused`` of those held are reserved for nobody, or for pods that have ended. ``largest`` is for classes alone.
    """

    tally: Tally
    unused: int
    largest: LargestRequest | None = None

    @property
    def name(self) -> str:
        """The node or class; empty for devices of no class."""
        return self.tally.name

    @property
    def free(self) -> int:
        """The number of free devices."""
        return self.tally.states.get(DeviceState.FREE, 0)

    @property
    def held(self) -> int:
        """The number of devices that claims hold, or hold shares of."""
        return sum(self.tally.states.get(state, 0) for state in _HELD)


def supply_of_nodes(inventory: Inventory, claims: ClaimUses) -> list[DeviceSupply]:
    """The devices of each node."""
    return [DeviceSupply(tally, unused) for tally, unused in _counted(inventory, claims, CountedBy.node)]


def supply_of_classes(
    inventory: Inventory, claims: ClaimUses, cycle: Cycle, nodes: Sequence[Node]
) -> list[DeviceSupply]:
    """The devices of each class, those of several classes in each of them."""
    return [
        DeviceSupply(tally, unused, largest_request(tally.name, inventory.rows, cycle, nodes) if tally.name else None)
        for tally, unused in _counted(inventory, claims, CountedBy.class_)
    ]


def unused_devices(rows: Sequence[DeviceRow], claims: ClaimUses) -> list[DeviceRow]:
    """The devices that are held by claims which nobody uses, and by no other."""
    nobody = {id(item.claim) for item in claims.items if item.state in UNUSED}
    return [row for row in rows if row.holders and all(id(claim) in nobody for claim in row.holders)]


def _counted(inventory: Inventory, claims: ClaimUses, by: CountedBy) -> list[tuple[Tally, int]]:
    unused: dict[str, int] = {}
    for row in unused_devices(inventory.rows, claims):
        for name in names_of(row, by):
            unused[name] = unused.get(name, 0) + 1
    return [(tally, unused.get(tally.name, 0)) for tally in tallies(inventory, by)]
