"""Who uses what at one moment: all that ``top`` shows, counted and sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import Inventory, take_inventory
from kubectl_dra.explain.devices.selection import Wanted
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.scene.view import nodes_of
from kubectl_dra.explain.unread import Unread, unread_devices
from kubectl_dra.usage.claim_use import ClaimUse, claim_uses
from kubectl_dra.usage.demand import DeviceDemand, demand_of_namespaces, demand_of_owners
from kubectl_dra.usage.subject import UseBy, UseSort
from kubectl_dra.usage.supply import DeviceSupply, supply_of_classes, supply_of_nodes, unused_devices

T = TypeVar("T")


class UseReport(Struct, frozen=True):
    """Devices and claims of a cluster. Of ``supply``, ``demand`` and ``claims`` one has what ``by`` asks for.

    ``unread`` are the kinds without which the counts are unknown.
    """

    by: UseBy
    devices: int
    nodes: int
    states: dict[DeviceState, int]
    unused: int
    pending: int
    supply: tuple[DeviceSupply, ...] = ()
    demand: tuple[DeviceDemand, ...] = ()
    claims: tuple[ClaimUse, ...] = ()
    notes: tuple[Words, ...] = ()
    unread: tuple[Unread, ...] = ()

    @property
    def rows(self) -> int:
        """The number of nodes, classes, namespaces, owners or claims."""
        return len(self.supply) + len(self.demand) + len(self.claims)


def use_reports(
    snapshot: Snapshot,
    cycle: Cycle,
    subjects: Sequence[UseBy],
    sort: UseSort | None = None,
    inventory: Inventory | None = None,
) -> list[UseReport]:
    """The use by each of the subjects; without ``sort``, what holds most devices comes first.

    ``inventory`` has all devices, where somebody has taken it already.

    Raises:
        UndeterminedError: ResourceSlices or ResourceClaims could not be read.
    """
    inventory = inventory or take_inventory(snapshot, cycle, Wanted())
    claims = claim_uses(snapshot)
    notes = tuple(dict.fromkeys((*inventory.notes, *claims.unread)))
    hidden = unread_devices(snapshot) if DeviceState.UNKNOWN in inventory.states() else ()
    unread = tuple(dict.fromkeys((*inventory.unread, *hidden, *claims.unread)))
    unused = len(unused_devices(inventory.rows, claims))
    pending = sum(item.state == "pending" for item in claims.items)
    found = []
    for by in subjects:
        supply: list[DeviceSupply] = []
        demand: list[DeviceDemand] = []
        listed: Sequence[ClaimUse] = ()
        if by is UseBy.nodes:
            supply = supply_of_nodes(inventory, claims)
        elif by is UseBy.classes:
            supply = supply_of_classes(inventory, claims, cycle, nodes_of(snapshot, cycle))
        elif by is UseBy.claims:
            listed = claims.items
        else:
            demand = (demand_of_namespaces if by is UseBy.namespaces else demand_of_owners)(claims)
        found.append(
            UseReport(
                by,
                len(inventory.rows),
                inventory.node_count(),
                inventory.states(),
                unused,
                pending,
                _sorted(supply, _SUPPLY, sort or UseSort.held),
                _sorted(demand, _DEMAND, sort or UseSort.held),
                _sorted(listed, _CLAIMS, sort or UseSort.held),
                notes,
                unread,
            )
        )
    return found


def _sorted(rows: Sequence[T], keys: dict[UseSort, Callable[[T], int]], sort: UseSort) -> tuple[T, ...]:
    """The rows with the largest first; they come by name."""
    key = keys.get(sort)
    return tuple(rows) if key is None else tuple(sorted(rows, key=lambda row: -key(row)))


_SUPPLY: dict[UseSort, Callable[[DeviceSupply], int]] = {
    UseSort.devices: lambda row: row.tally.devices,
    UseSort.free: lambda row: row.free,
    UseSort.held: lambda row: row.held,
    UseSort.unused: lambda row: row.unused,
}
_DEMAND: dict[UseSort, Callable[[DeviceDemand], int]] = {
    UseSort.devices: lambda row: row.devices,
    UseSort.held: lambda row: row.devices,
    UseSort.unused: lambda row: row.unused,
    UseSort.pending: lambda row: row.pending,
}
_CLAIMS: dict[UseSort, Callable[[ClaimUse], int]] = {
    UseSort.devices: lambda row: len(row.results),
    UseSort.held: lambda row: len(row.results),
}
SORTS = {
    UseBy.nodes: tuple(_SUPPLY),
    UseBy.classes: tuple(_SUPPLY),
    UseBy.namespaces: tuple(_DEMAND),
    UseBy.owners: tuple(_DEMAND),
    UseBy.claims: tuple(_CLAIMS),
}
"""What each kind of row can be sorted by, besides its name."""
