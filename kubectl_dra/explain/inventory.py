"""Every published device: where it is, which classes select it, who holds it, and whether it can be given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.counters import ZERO, Table, available_counters
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, DeviceID, PoolID, ResourceSlice
from kubectl_dra.api.taints import BLOCKING_EFFECTS, DeviceTaint
from kubectl_dra.cel import CompileError, EvaluationError, Program
from kubectl_dra.cluster.snapshot import ABSENT, NOT_SERVED, Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.explain.phrases import amount, are
from kubectl_dra.explain.view import Published, View
from kubectl_dra.names import nearest

SCHEMA_VERSION: Final = "1"

FREE: Final = "free"
HELD: Final = "held"
SHARED: Final = "shared"
TAINTED: Final = "tainted"
BLOCKED: Final = "blocked"
UNUSABLE: Final = "unusable"
UNKNOWN: Final = "unknown"
STATES: Final = (FREE, SHARED, HELD, TAINTED, BLOCKED, UNUSABLE, UNKNOWN)
"""What the scheduler could do with a device now, in the order in which a summary counts them.

``unusable``: its pool is incomplete, invalid or obsolete, or no node sees it. ``held``: a claim has all of it.
``shared``: claims have shares of it, and it takes more as far as its capacity goes. ``blocked``: its counters
(KEP-4815) are taken by other devices. ``tainted``: only requests that tolerate its taints get it. ``unknown``:
nobody is known to hold it, but not all claims could be read. The first that applies of unusable, held, shared,
blocked, tainted, unknown is the state.
"""


class DeviceRow(NamedTuple):
    """One device as it is listed.

    ``nodes`` see its slice and may use it; ``where`` says so in words: a node's name, or which nodes. ``classes``
    are the DeviceClasses that select it. ``reason`` tells why the state is what it is, empty for free. ``holders``
    are the claims that hold it or shares of it, ``consumed`` what those shares take, by capacity.
    """

    id: DeviceID
    device: Device
    slice: ResourceSlice
    nodes: Sequence[str]
    where: str
    classes: tuple[str, ...]
    state: str
    reason: str
    taints: tuple[DeviceTaint, ...]
    holders: tuple[ResourceClaim, ...]
    consumed: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which devices to list: those for which every part that is set holds; names of one part are alternatives.

    A pool is ``NAME`` or ``DRIVER/NAME``. ``selector`` is a compiled CEL selector.
    """

    drivers: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    selector: Program | None = None
    free: bool = False
    tainted: bool = False


@dataclass(frozen=True, slots=True)
class Inventory:
    """The devices listed, by driver, pool and slice.

    ``narrowed`` says how each part of ``Wanted`` reduced them: (what was kept, how many), all devices first.
    """

    rows: tuple[DeviceRow, ...]
    narrowed: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]

    def states(self) -> dict[str, int]:
        """The number of devices per state, only those that occur, in the order of ``STATES``."""
        counts = Counter(row.state for row in self.rows)
        return {state: counts[state] for state in STATES if counts[state]}

    def node_count(self) -> int:
        """The number of nodes that see one of the devices."""
        # Devices of one slice share one list of nodes.
        lists = {id(row.nodes): row.nodes for row in self.rows}
        return len({name for names in lists.values() for name in names} - {ANY_NODE})


def take_inventory(snapshot: Snapshot, cycle: Cycle, wanted: Wanted, notes: Iterable[str] = ()) -> Inventory:
    """Lists the devices of a snapshot; ``cycle`` is its scheduling cycle, ``notes`` what making it noted.

    Raises:
        InputError: a driver, node, pool or class is asked for that does not exist; or the ResourceSlices could
            not be read.
    """
    gap = snapshot.missing("ResourceSlice")
    if gap is not None and gap.reason != ABSENT:
        raise InputError(f"the ResourceSlices could not be read: {gap.detail or gap.reason}")
    return _Listing(snapshot, cycle, wanted, notes).inventory()


class _Place(NamedTuple):
    """Where a device is: the nodes, in words, the node that its scope names, and what makes it unusable there."""

    nodes: Sequence[str]
    where: str
    named: str
    problem: str


class _Listing:
    """The devices of one snapshot, on their way through what is wanted."""

    def __init__(self, snapshot: Snapshot, cycle: Cycle, wanted: Wanted, notes: Iterable[str]) -> None:
        self._snapshot = snapshot
        self._cycle = cycle
        self._wanted = wanted
        self._notes = [*notes, *snapshot.notes, *_gap_notes(snapshot)]
        nodes = _nodes(snapshot, cycle)
        _check_names(snapshot, [node.name for node in nodes], wanted)
        self._view = View(cycle, nodes, {})
        # All devices of a slice without scopes of their own are in the same place.
        self._places: dict[str, _Place] = {}
        self._counters: dict[PoolID, Table] = {}
        self._generations: dict[PoolID, set[int]] = {}
        for entry in cycle.index.slices:
            self._generations.setdefault(entry.pool, set()).add(entry.generation)
        gap = snapshot.missing("ResourceClaim")
        self._claims_hidden = gap is not None and gap.reason != ABSENT
        # The scheduler of some releases does not see DeviceTaintRules: they are shown all the same.
        self._unseen_rules = snapshot.taint_rules if cycle.index.slices is snapshot.slices else ()

    def inventory(self) -> Inventory:
        wanted = self._wanted
        items = list(self._all())
        narrowed = [("published", len(items))]

        def keep(what: str, kept: list[Published]) -> list[Published]:
            narrowed.append((what, len(kept)))
            return kept

        if wanted.drivers:
            items = keep(f"of {_or('driver', wanted.drivers)}", [i for i in items if i.id.driver in wanted.drivers])
        if wanted.pools:
            in_pool = [i for i in items if i.id.pool in wanted.pools or str(i.slice.pool) in wanted.pools]
            items = keep(f"in {_or('pool', wanted.pools)}", in_pool)
        if wanted.nodes:
            items = keep(f"on {_or('node', wanted.nodes)}", [i for i in items if self._is_on(i, wanted.nodes)])
        if wanted.selector is not None:
            items = keep("with the selector", self._selected(items, wanted.selector))
        classes = self._classes(items)
        if wanted.classes:
            names = frozenset(wanted.classes)
            both = [(i, c) for i, c in zip(items, classes, strict=True) if not names.isdisjoint(c)]
            items = keep(f"of {_or('class', wanted.classes)}", [i for i, _ in both])
            classes = [c for _, c in both]
        rows = [self._row(item, names) for item, names in zip(items, classes, strict=True)]
        if wanted.free:
            rows = [row for row in rows if row.state == FREE]
            narrowed.append(("free", len(rows)))
        if wanted.tainted:
            rows = [row for row in rows if row.taints]
            narrowed.append(("tainted", len(rows)))
        return Inventory(tuple(rows), tuple(narrowed), tuple(dict.fromkeys(self._notes)))

    def _all(self) -> Iterator[Published]:
        """Every device, by pool and slice: of the newest generation, of the one a node sees, or else an obsolete one.

        An invalid pool may publish a device twice; both are listed.
        """
        view = self._view
        old: dict[PoolID, int] = {}
        slices = sorted(self._cycle.index.slices, key=lambda entry: (entry.pool, entry.name))
        for pool, entries in groupby(slices, key=lambda entry: entry.pool):
            left: list[ResourceSlice] = []
            names: set[str] = set()
            # What a node sees comes before a newer generation that no node sees.
            for entry in sorted(entries, key=lambda entry: entry.name not in view.slice_nodes):
                items = view.by_slice.get(entry.name, ())
                if not items:
                    left.append(entry)
                elif len(self._generations[pool]) == 1:
                    yield from items
                else:
                    yield from (item for item in items if item.id.device not in names)
                    names.update(item.id.device for item in items)
            for entry in left:
                for device in entry.devices:
                    if pool in view.obsolete and device.name not in names:
                        names.add(device.name)
                        yield Published(DeviceID(pool.driver, pool.name, device.name), device, entry)
                    else:
                        old[pool] = old.get(pool, 0) + 1
        for pool, count in sorted(old.items()):
            self._notes.append(
                f"{amount(count)} in older slices of pool {pool} {are(count)} left out: "
                f"generation {view.newest[pool]} is newer"
            )

    def _is_on(self, item: Published, names: Sequence[str]) -> bool:
        place = self._place(item)
        return place.named in names or any(name in place.nodes for name in names)

    def _place(self, item: Published) -> _Place:
        shared = not item.slice.per_device_node_selection
        known = self._places.get(item.slice.name) if shared else None
        if known is not None:
            return known
        scope = item.slice.scope if shared else item.device.scope
        nodes = tuple(self._view.nodes_of(item))
        where = scope.node_name or (nodes[0] if len(nodes) == 1 and nodes[0] != ANY_NODE else str(scope))
        place = _Place(nodes, where, scope.node_name, self._problem(item, nodes))
        if shared:
            self._places[item.slice.name] = place
        return place

    def _selected(self, items: Sequence[Published], selector: Program) -> list[Published]:
        verdicts = selector.evaluate_devices([item.device for item in items])
        errors = [(i, v) for i, v in zip(items, verdicts, strict=True) if isinstance(v, EvaluationError)]
        if errors:
            item, error = errors[0]
            self._notes.append(
                f"--selector fails on {len(errors):,} devices, which are left out; on {item.id}, for instance: {error}"
            )
        return [item for item, verdict in zip(items, verdicts, strict=True) if verdict is True]

    def _classes(self, items: Sequence[Published]) -> list[tuple[str, ...]]:
        """For each device the classes that select it, in the order of their names."""
        from kubectl_dra.cel.columns import DeviceTable

        table = DeviceTable([item.device for item in items])
        matching: list[list[str]] = [[] for _ in items]
        for name in sorted(self._snapshot.classes):
            alive = [True] * len(items)
            errors: list[tuple[int, EvaluationError]] = []
            for expression in self._snapshot.classes[name].selectors:
                program = self._cycle.selectors.program(expression) if expression is not None else None
                if program is None or isinstance(program, CompileError):
                    self._notes.append(f"DeviceClass {name} selects nothing: a selector of it does not compile")
                    alive = [False] * len(items)
                    break
                for index, verdict in enumerate(program.evaluate_devices(table)):
                    if verdict is not True and alive[index]:
                        alive[index] = False
                        if verdict is not False:
                            errors.append((index, verdict))
            if errors:
                index, error = errors[0]
                self._notes.append(
                    f"DeviceClass {name} fails on {len(errors):,} devices; on {items[index].id}, for instance: {error}"
                )
            for index, matches in enumerate(alive):
                if matches:
                    matching[index].append(name)
        # Few combinations occur, so each is kept once.
        shared: dict[tuple[str, ...], tuple[str, ...]] = {}
        return [shared.setdefault(names, names) for names in map(tuple, matching)]

    def _row(self, item: Published, classes: tuple[str, ...]) -> DeviceRow:
        place = self._place(item)
        taints = item.device.taints
        if self._unseen_rules:
            rules = [rule.taint for rule in self._unseen_rules if rule.selects(*item.id)]
            taints = (*taints, *rules)
        state, reason = self._state(item, place)
        holders = self._cycle.state.holders.get(item.id, ())
        consumed = self._cycle.state.consumed.get(item.id, _NOTHING) if holders else _NOTHING
        return DeviceRow(
            item.id,
            item.device,
            item.slice,
            place.nodes,
            place.where,
            classes,
            state,
            reason,
            taints,
            holders,
            consumed,
        )

    def _state(self, item: Published, place: _Place) -> tuple[str, str]:
        state = self._cycle.state
        if place.problem:
            return UNUSABLE, place.problem
        if item.device.consumes_counters and not self._cycle.features.partitionable_devices:
            return UNUSABLE, "it uses shared counters, and the feature DRAPartitionableDevices is off"
        if item.id in state.exclusive:
            return HELD, ""
        if item.id in state.shared:
            return SHARED, _usage(item.device, state.consumed.get(item.id, _NOTHING))
        if item.device.consumes_counters and (short := self._short_counter(item)):
            return BLOCKED, short
        if self._cycle.features.device_taints:
            for taint in item.device.taints:
                if taint.effect in BLOCKING_EFFECTS:
                    return TAINTED, f"{taint} ({taint_owner(taint)})"
        if self._claims_hidden:
            return UNKNOWN, "not all ResourceClaims could be read"
        return FREE, ""

    def _problem(self, item: Published, nodes: Sequence[str]) -> str:
        """What keeps the scheduler from all devices of this place; empty where nothing does."""
        view, pool_id = self._view, item.slice.pool
        if view.pool_error is not None:
            return view.pool_error.message
        newest = view.newest[pool_id]
        if item.slice.generation < newest and not nodes:
            return f"generation {item.slice.generation} is obsolete: other nodes have generation {newest} of the pool"
        pool = view.pool_seen.get(pool_id)
        if pool is not None and pool.incomplete:
            return f"the pool is incomplete: {pool.found} of {pool.expected} slices"
        if pool is not None and pool.invalid:
            return f"the pool is invalid: {pool.invalid}"
        if not nodes and self._snapshot.nodes:
            scope = item.device.scope if item.slice.per_device_node_selection else item.slice.scope
            return f"there is no node {scope.node_name}" if scope.node_name else f"no node sees it ({scope})"
        return ""

    def _short_counter(self, item: Published) -> str:
        """The counter that devices in use leave too little of, in words; empty where all suffice."""
        pool = self._view.pool_seen.get(item.slice.pool)
        if pool is None:
            return ""
        left = self._counters.get(pool.id)
        if left is None:
            left = self._counters[pool.id] = available_counters(pool, self._cycle.state)
        for consumption in item.device.consumes_counters:
            counters = left.get(consumption.counter_set, {})
            for name, needed in consumption.counters.items():
                rest = counters.get(name)
                if rest is not None and rest < needed:
                    return f"needs {needed} of counter {name} in {consumption.counter_set}, {max(rest, ZERO)} left"
        return ""


ANY_NODE: Final = "(any node)"
_NOTHING: Mapping[str, Quantity] = {}
_MATTERS: Final = ("ResourceSlice", "ResourceClaim", "DeviceClass", "DeviceTaintRule", "Node")


def taint_owner(taint: DeviceTaint) -> str:
    """Who sets a taint: the driver in its slice, or a DeviceTaintRule."""
    return f"DeviceTaintRule {taint.rule}" if taint.rule else "driver"


def _usage(device: Device, consumed: Mapping[str, Quantity]) -> str:
    parts = [
        f"{name} {used} of {device.capacity[name].get('value', '0')} used"
        for name, used in consumed.items()
        if used and name in device.capacity
    ]
    return ", ".join(parts)


def _nodes(snapshot: Snapshot, cycle: Cycle) -> list[Node]:
    """The nodes; where none were read, those that slices name, else one that stands for all."""
    if snapshot.nodes:
        return list(snapshot.nodes.values())
    names = {entry.scope.node_name for entry in cycle.index.slices}
    for entry in cycle.index.slices:
        if entry.per_device_node_selection:
            names.update(device.scope.node_name for device in entry.devices)
    return [Node(name=name) for name in sorted(names - {""})] or [Node(name=ANY_NODE)]


def _check_names(snapshot: Snapshot, nodes: Sequence[str], wanted: Wanted) -> None:
    """Raises InputError for a name that does not exist, with those that it may stand for."""
    pools = {entry.pool for entry in snapshot.slices}
    scopes = {entry.scope.node_name for entry in snapshot.slices} - {""}
    for kind, asked, exist in (
        ("driver", wanted.drivers, {pool.driver for pool in pools}),
        ("node", wanted.nodes, {*nodes, *scopes}),
        ("pool", wanted.pools, {pool.name for pool in pools} | {str(pool) for pool in pools}),
        ("class", wanted.classes, set(snapshot.classes)),
    ):
        for name in asked:
            if name in exist:
                continue
            near = nearest(name, sorted(exist))
            some = sorted(other for other in exist if "/" not in other)[:3]
            hint = f"; nearest: {', '.join(near)}" if near else (f"; there are: {', '.join(some)}" if some else "")
            raise InputError(f"--{kind}: there is no {_TITLES[kind]} {name}{hint}")


_TITLES = {"driver": "driver that publishes devices called", "node": "node", "pool": "pool", "class": "DeviceClass"}


def _gap_notes(snapshot: Snapshot) -> Iterator[str]:
    """What was not read and shows in the list."""
    for gap in snapshot.gaps:
        if gap.kind not in _MATTERS or (gap.kind == "DeviceTaintRule" and gap.reason in (ABSENT, NOT_SERVED)):
            continue
        if gap.reason == ABSENT:
            yield f"no {gap.kind} in the snapshot"
        else:
            yield f"not seen: {gap}"


def _or(kind: str, names: Sequence[str]) -> str:
    return f"{kind} {' or '.join(names)}"
