"""Use of devices in numbers: what namespaces, owners and classes hold, want and could get at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.pods import Owner
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.devices.alike_devices import (
    CapacityRoom,
    Tally,
    capacity_left,
    judged_by_start,
    names_of,
    tallies,
)
from kubectl_dra.explain.devices.arrangement import CountedBy
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory, take_inventory
from kubectl_dra.explain.devices.wanted import Wanted
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.unread_kind import Unread, unread_devices
from kubectl_dra.grouped import grouped
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.usage.choices import UNUSED, ClaimState, UseBy, UseSort
from kubectl_dra.usage.claim_use import ClaimUse, ClaimUses, claim_uses
from kubectl_dra.usage.largest_request import LargestRequest, RequestTrials, largest_request, room_left


class DeviceDemand(Struct, frozen=True):
    """What the claims of a namespace, or of one owner in it, hold and wait for.

    ``devices`` counts a shared device once; ``idle`` are those whose claims are unused or have pods that have ended.
    ``pending`` are claims for which a pod waits. ``owner`` is None for a whole namespace, or for claims without one.
    ``largest`` is the owner that holds most of them.
    """

    namespace: str
    owner: Owner | None
    devices: int
    idle: int
    claims: int
    pending: int
    nodes: int
    largest: Owner | None = None


def demand_of_namespaces(claims: ClaimUses) -> list[DeviceDemand]:
    """What each namespace holds."""
    groups = grouped((item.claim.metadata.namespace, item) for item in claims.items)
    return [_demand(space, None, items) for space, items in groups.items()]


def demand_of_owners(claims: ClaimUses) -> list[DeviceDemand]:
    """What each owner holds; claims without an owner are one row of their namespace."""
    groups = grouped(((item.claim.metadata.namespace, item.owner), item) for item in claims.items)
    return [_demand(space, owner, items) for (space, owner), items in groups.items()]


def _demand(space: str, owner: Owner | None, items: list[ClaimUse]) -> DeviceDemand:
    held = _devices(items)
    used = _devices([item for item in items if item.state not in UNUSED])
    by_owner = Counter(item.owner for item in items if item.owner is not None for _ in item.results)
    return DeviceDemand(
        namespace=space,
        owner=owner,
        devices=len(held),
        idle=len(held - used),
        claims=len(items),
        pending=sum(item.state is ClaimState.PENDING for item in items),
        nodes=len({item.node for item in items if item.results} - {""}),
        largest=max(by_owner, key=lambda name: by_owner[name], default=None),
    )


def _devices(items: list[ClaimUse]) -> set[DeviceID]:
    return {result.device for item in items for result in item.results}


# The devices of each node or class: free, held, tainted, idle; and the largest request that still fits.

_HELD = (DeviceState.HELD, DeviceState.SHARED)


class DeviceSupply(Struct, frozen=True):
    """The devices of one node (or place that no node is) or class.

    ``idle`` are held by claims that are unused or whose pods have ended. ``largest`` is for classes alone.
    ``used`` is how many ``whole`` devices those that are held and the used parts of shared ones come to: divisions of
    one piece of hardware, which draw on one counter set, count as one. ``room`` is what is left of the capacity of
    devices that can be shared, are not tainted and are served.
    """

    tally: Tally
    idle: int
    largest: LargestRequest | None = None
    used: float = 0
    whole: int = 0
    room: tuple[CapacityRoom, ...] = ()

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

    @property
    def held_part(self) -> float:
        """Part of the hardware that is held, from 0 to 1."""
        return self.used / self.whole if self.whole else 1.0


def supply_of_nodes(inventory: Inventory, claims: ClaimUses) -> list[DeviceSupply]:
    """The devices of each node."""
    return _counted(inventory, claims, CountedBy.node)


def supply_of_classes(
    inventory: Inventory, claims: ClaimUses, snapshot: Snapshot, scheduler: Scheduler
) -> list[DeviceSupply]:
    """The devices of each class, those of several classes in each of them."""
    trials = RequestTrials(snapshot, scheduler)
    return [
        _with_largest(supply, inventory.rows, trials) if supply.name else supply
        for supply in _counted(inventory, claims, CountedBy.class_, trials.nodes)
    ]


def _with_largest(supply: DeviceSupply, rows: Sequence[DeviceRow], trials: RequestTrials) -> DeviceSupply:
    """The supply of a class with the largest request for it: for devices, or for what is left of shared ones."""
    largest = largest_request(supply.name, rows, trials)
    if largest is not None:
        return replace(supply, largest=largest)
    return replace(supply, room=room_left(supply.name, [row for row in rows if supply.name in row.classes], trials))


def idle_devices(rows: Sequence[DeviceRow], claims: ClaimUses) -> list[DeviceRow]:
    """The devices that are held by claims that are unused or whose pods have ended, and by no other."""
    nobody = {id(item.claim) for item in claims.items if item.state in UNUSED}
    return [row for row in rows if row.holders and all(id(claim) in nobody for claim in row.holders)]


def _counted(
    inventory: Inventory, claims: ClaimUses, by: CountedBy, takers: Container[str] | None = None
) -> list[DeviceSupply]:
    """The supply; ``takers`` are the nodes that take new pods, where not all do."""
    idle = Counter(name for row in idle_devices(inventory.rows, claims) for name in names_of(row, by))
    named = grouped((name, row) for row in inventory.rows for name in names_of(row, by))
    supplies: list[DeviceSupply] = []
    for tally in tallies(inventory, by):
        rows = named.get(tally.name, ())
        hardware = _hardware(rows)
        used, room = sum(min(1.0, part) for part in hardware.values()), capacity_left(rows, takers)
        supplies.append(DeviceSupply(tally, idle[tally.name], used=used, whole=len(hardware), room=room))
    return supplies


def _hardware(rows: Iterable[DeviceRow]) -> Mapping[Hashable, float]:
    """Part of each piece of hardware that is held: of a device, or of what its divisions draw on.

    All of it is where others hold what each division here needs.
    """
    parts: dict[Hashable, float] = {}
    blocked: dict[Hashable, None] = {}
    for row in rows:
        pieces: dict[Hashable, float] = {(row.slice.pool, name): part for name, part in row.draws.items()}
        pieces = pieces or {row.id: 1.0}
        if row.state is DeviceState.BLOCKED:
            blocked |= dict.fromkeys(pieces)
            continue
        for piece, part in pieces.items():
            held = part * row.used_part if row.state in _HELD else 0.0
            parts[piece] = parts.get(piece, 0.0) + held
    return dict.fromkeys(blocked, 1.0) | parts


# Who uses what at one moment: all that ``top`` shows, counted and sorted.

T = TypeVar("T")


class UseReport(Struct, frozen=True):
    """Devices and claims of a cluster. Of ``supply``, ``demand`` and ``claims`` one has what ``by`` asks for.

    ``unread`` are the kinds without which the counts are unknown, ``unpublished`` how many devices are held that no
    driver publishes: they are in no other count. ``namespace``: of demand and claims only those of this one.
    """

    by: UseBy
    devices: int
    nodes: int
    states: dict[DeviceState, int]
    idle: int
    pending: int
    supply: tuple[DeviceSupply, ...] = ()
    demand: tuple[DeviceDemand, ...] = ()
    claims: tuple[ClaimUse, ...] = ()
    notes: tuple[Words, ...] = ()
    unread: tuple[Unread, ...] = ()
    unpublished: int = 0
    namespace: str = ""

    @property
    def rows(self) -> int:
        """The number of nodes, classes, namespaces, owners or claims."""
        return len(self.supply) + len(self.demand) + len(self.claims)


def use_reports(
    snapshot: Snapshot,
    scheduler: Scheduler,
    subjects: Sequence[UseBy],
    sort: UseSort | None = None,
    namespace: str = "",
    inventory: Inventory | None = None,
) -> list[UseReport]:
    """The use by each of the subjects; without ``sort``, what holds most devices comes first.

    ``namespace``: of namespaces, owners and claims only those of this one. ``inventory`` has all devices, where
    somebody has taken it already.

    Raises:
        UndeterminedError: ResourceSlices or ResourceClaims could not be read.
    """
    inventory = inventory or take_inventory(snapshot, scheduler.cycle(snapshot), Wanted())
    inventory = judged_by_start(inventory, snapshot)
    claims = claim_uses(snapshot)
    notes = tuple(dict.fromkeys((*inventory.notes, *claims.unread)))
    hidden = unread_devices(snapshot) if DeviceState.UNKNOWN in inventory.states() else ()
    unread = tuple(dict.fromkeys((*inventory.unread, *hidden, *claims.unread)))
    idle = len(idle_devices(inventory.rows, claims))
    pending = sum(item.state == "pending" for item in claims.items)
    own = claims
    if namespace:
        own = replace(claims, items=tuple(u for u in claims.items if u.claim.metadata.namespace == namespace))
    use_reports = []
    for by in subjects:
        supply: list[DeviceSupply] = []
        demand: list[DeviceDemand] = []
        listed: Sequence[ClaimUse] = ()
        if by is UseBy.nodes:
            supply = supply_of_nodes(inventory, claims)
        elif by is UseBy.classes:
            supply = supply_of_classes(inventory, claims, snapshot, scheduler)
        elif by is UseBy.claims:
            listed = own.items
        else:
            demand = (demand_of_namespaces if by is UseBy.namespaces else demand_of_owners)(own)
        use_reports.append(
            UseReport(
                by,
                len(inventory.rows),
                inventory.node_count(),
                inventory.states(),
                idle,
                pending,
                _sorted(supply, _SUPPLY, sort or UseSort.held),
                _sorted(demand, _DEMAND, sort or UseSort.held),
                _sorted(listed, _CLAIMS, sort or UseSort.held),
                notes,
                unread,
                sum(len(unpublished.devices) for unpublished in inventory.unpublished),
                namespace,
            )
        )
    return use_reports


def _sorted(rows: Sequence[T], keys: dict[UseSort, Callable[[T], float]], sort: UseSort) -> tuple[T, ...]:
    """The rows with the largest first; they come by name."""
    key = keys.get(sort)
    return tuple(rows) if key is None else tuple(sorted(rows, key=lambda row: -key(row)))


_SUPPLY: dict[UseSort, Callable[[DeviceSupply], float]] = {
    UseSort.devices: lambda row: row.tally.devices,
    UseSort.free: lambda row: row.free,
    # Of as many, those that are fuller come first.
    UseSort.held: lambda row: row.held + row.held_part / 2,
    UseSort.idle: lambda row: row.idle,
}
_DEMAND: dict[UseSort, Callable[[DeviceDemand], float]] = {
    UseSort.devices: lambda row: row.devices,
    UseSort.held: lambda row: row.devices,
    UseSort.idle: lambda row: row.idle,
    UseSort.pending: lambda row: row.pending,
}
_CLAIMS: dict[UseSort, Callable[[ClaimUse], float]] = {
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
