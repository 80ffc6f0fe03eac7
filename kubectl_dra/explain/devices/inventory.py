"""Every published device: where it is, which classes select it, who holds it, and whether it can be given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from msgspec import Struct

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Counters, Device, DeviceID, PoolID, ResourceSlice
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cel import CompileError, EvaluationError, Program
from kubectl_dra.cluster.cluster import ANY_NODE, Cluster
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.command import kubectl
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.drivers.hardware import plugin_offer
from kubectl_dra.errors import InputError, UndeterminedError
from kubectl_dra.explain.devices.device_state import (
    NO_DRAWS,
    NOTHING,
    DeviceState,
    DeviceStates,
    Superseded,
    Unpublished,
    draws_of,
    unpublished,
)
from kubectl_dra.explain.devices.wanted import Wanted, check_names, is_called, near_names, single_names
from kubectl_dra.explain.driver_words import driver_notes, twice_notes
from kubectl_dra.explain.funnel.device_view import DeviceView, PublishedDevice
from kubectl_dra.explain.phrase import Phrase, Words, nodes_named, say
from kubectl_dra.explain.unread_kind import UNKNOWN, NotSeen, Stake, Unread, not_read, unread_devices, unread_of
from kubectl_dra.text import did_you_mean


class DeviceRow(NamedTuple):
    """One device as it is listed.

    ``nodes`` see its slice and may use it; ``where`` says so in words: a node's name, or which nodes. ``classes``
    are the DeviceClasses that select it. ``reason`` tells why the state is what it is, empty for free. ``holders``
    are the claims that hold it or shares of it, ``consumed`` what those shares take, by capacity. ``also_tainted``:
    taints keep it from new claims, though its state is another one; ``also_unusable``: it is held and unusable.
    ``unserved``: why a pod that gets what is left of it does not start. ``draws``: of a division of hardware the part
    of each counter set that it needs, a part of 1.
    """

    id: DeviceID
    device: Device
    slice: ResourceSlice
    nodes: Sequence[str]
    where: str
    classes: tuple[str, ...]
    state: DeviceState
    reason: Words
    taints: tuple[DeviceTaint, ...]
    holders: tuple[ResourceClaim, ...]
    consumed: Mapping[str, Quantity]
    also_tainted: bool = False
    unserved: Words = ""
    also_unusable: bool = False
    draws: Mapping[str, float] = NO_DRAWS

    @property
    def used_part(self) -> float:
        """Part of a shared device that is taken, from 0 to 1, by its most used capacity; of others 0 or 1."""
        if self.device.allow_multiple_allocations and self.state is not DeviceState.HELD:
            return max((_part(self.device, name, used) for name, used in self.consumed.items()), default=0.0)
        return float(self.state is DeviceState.HELD)

    @property
    def has_room(self) -> bool:
        """Whether some of it is left for a request."""
        if self.state is DeviceState.SHARED:
            return not self.also_tainted and not self.unserved and self.used_part < 1
        return self.state is DeviceState.FREE


def _part(device: Device, name: str, used: Quantity) -> float:
    try:
        total = Quantity.parse(device.capacity[name].get("value", "0")).approximate_float()
    except (KeyError, ValueError):
        return 0.0
    return min(1.0, max(0.0, used.approximate_float() / total)) if total else 1.0


class Inventory(Struct, frozen=True):
    """The devices listed, by driver, pool and slice.

    ``narrowed`` says how each part of ``Wanted`` reduced them: (what was kept, how many), all devices first. ``unread``
    are the kinds without which it is unknown what is listed, or in which state it is. ``unpublished`` are devices of
    the whole cluster that cannot be listed, because claims hold them and no slice has them.
    """

    rows: tuple[DeviceRow, ...]
    narrowed: tuple[tuple[str, int], ...]
    notes: tuple[Words, ...]
    unread: tuple[Unread, ...] = ()
    unpublished: tuple[Unpublished, ...] = ()
    superseded: tuple[Superseded, ...] = ()

    @property
    def all_read(self) -> bool:
        """Whether no device is published but those that were read."""
        return not not_read("ResourceSlice", self.unread)

    def states(self) -> dict[DeviceState, int]:
        """The number of devices per state, only those that occur, in the order of ``DeviceState``."""
        return states_of(self.rows)

    def node_count(self) -> int:
        """The number of nodes that see one of the devices."""
        return node_count_of(self.rows)


def states_of(rows: Iterable[DeviceRow]) -> dict[DeviceState, int]:
    """The number of these devices per state, only those that occur, in the order of ``DeviceState``."""
    counts = Counter(row.state for row in rows)
    return {state: counts[state] for state in DeviceState if counts[state]}


def node_count_of(rows: Iterable[DeviceRow]) -> int:
    """The number of nodes that see one of these devices."""
    # Devices of one slice share one list of nodes.
    lists = {id(row.nodes): row.nodes for row in rows}
    return len({name for names in lists.values() for name in names} - {ANY_NODE})


class SlicesNotRead(UndeterminedError):
    """The ResourceSlices of the cluster could not be read, such as for want of permission."""


def take_inventory(snapshot: Snapshot, cycle: Cycle, wanted: Wanted, notes: Iterable[Words] = ()) -> Inventory:
    """Lists the devices of a snapshot; ``cycle`` is its scheduling cycle, ``notes`` what making it noted.

    Raises:
        InputError: a driver, node, pool or class is asked for that does not exist.
        SlicesNotRead: without them there are no devices to list.
    """
    gap = snapshot.missing("ResourceSlice")
    if gap is not None and gap.reason != ABSENT:
        raise SlicesNotRead(f"{gap}, so which devices exist is unknown{gap.help}")
    return _Listing(snapshot, cycle, wanted, notes).inventory()


class _Listing:
    """The devices of one snapshot, on their way through what is wanted."""

    def __init__(self, snapshot: Snapshot, cycle: Cycle, wanted: Wanted, notes: Iterable[Words]) -> None:
        self._snapshot = snapshot
        self._cycle = cycle
        self._wanted = wanted
        self._unread = unread_devices(snapshot)
        self._notes: list[Words] = [*notes, *driver_notes(snapshot), *twice_notes(snapshot), *snapshot.notes]
        self._notes += [*self._unread, *map(NotSeen, snapshot.unread(("DeviceClass",)))]
        nodes = Cluster(snapshot).nodes
        check_names(snapshot, [node.name for node in nodes], wanted)
        self._view = DeviceView(cycle, nodes, {})
        self._superseded: list[Superseded] = []
        self._totals: dict[PoolID, Mapping[str, Counters]] = {}
        self._states = DeviceStates(snapshot, cycle, self._view)
        # The scheduler of some releases does not see DeviceTaintRules: they are shown all the same.
        self._unseen_rules = snapshot.taint_rules if cycle.index.slices is snapshot.slices else ()

    def inventory(self) -> Inventory:
        wanted = self._wanted
        items = list(self._all())
        narrowed = [("published", len(items))]

        def keep(what: str, kept: list[PublishedDevice]) -> list[PublishedDevice]:
            narrowed.append((what, len(kept)))
            return kept

        if wanted.drivers:
            items = keep(f"of {_or('driver', wanted.drivers)}", [i for i in items if i.id.driver in wanted.drivers])
        if wanted.pools:
            in_pool = [i for i in items if i.id.pool in wanted.pools or str(i.slice.pool) in wanted.pools]
            items = keep(f"in {_or('pool', wanted.pools)}", in_pool)
        if wanted.nodes:
            items = keep(f"on {_or('node', wanted.nodes)}", [i for i in items if self._is_on(i, wanted.nodes)])
        if wanted.devices:
            items = keep(f"called {' or '.join(wanted.devices)}", self._called(items, wanted.devices))
        if wanted.selector is not None:
            items = keep("with the selector", self._selected(items, wanted.selector))
        classes = self._classes(items)
        if wanted.classes:
            names = frozenset(wanted.classes)
            both = [(i, c) for i, c in zip(items, classes, strict=True) if not names.isdisjoint(c)]
            items = keep(f"of {_or('class', wanted.classes)}", [i for i, _ in both])
            classes = [c for _, c in both]
        rows = [self._row(item, names) for item, names in zip(items, classes, strict=True)]
        if wanted.namespace:
            rows = [row for row in rows if any(c.metadata.namespace == wanted.namespace for c in row.holders)]
            narrowed.append((f"held by claims of namespace {wanted.namespace}", len(rows)))
        known = rows
        if wanted.free:
            if unsure := [row for row in rows if row.state is DeviceState.UNKNOWN]:
                self._notes.append(say("whether {count:device} {count:is|are} free is unknown", count=len(unsure)))
            rows = [row for row in rows if row.state is DeviceState.FREE]
            narrowed.append(("free", len(rows)))
        if wanted.tainted:
            rows = [row for row in rows if row.taints]
            narrowed.append(("tainted", len(rows)))
        lost = unpublished(self._snapshot)
        self._notes.extend(group.words for group in lost)
        self._notes.extend(self._cordoned(rows))
        self._notes.extend(self._of_plugins(rows))
        return Inventory(
            tuple(rows),
            tuple(narrowed),
            tuple(dict.fromkeys(self._notes)),
            tuple(self._deciding(known)),
            lost,
            tuple(self._superseded),
        )

    def _cordoned(self, rows: Sequence[DeviceRow]) -> Iterator[Phrase]:
        """Free devices of nodes that take no new pods."""
        away = {name for name, node in self._snapshot.nodes.items() if node.unschedulable}
        free = [row for row in rows if row.state is DeviceState.FREE and row.nodes and away.issuperset(row.nodes)]
        if free:
            names = sorted({name for row in free for name in row.nodes})
            text = "{count:free device} {count:is|are} on cordoned {nodes:some}, where no new pod comes"
            yield say(text, count=len(free), nodes=nodes_named(names))

    def _of_plugins(self, rows: Sequence[DeviceRow]) -> Iterator[Phrase]:
        """Nodes whose devices a device plugin offers as well."""
        nodes = self._snapshot.nodes
        places = {(row.id.driver, row.nodes[0]) for row in rows if len(row.nodes) == 1 and row.nodes[0] in nodes}
        offered: dict[str, list[str]] = {}
        for driver, name in sorted(places):
            if (offer := plugin_offer(nodes[name], driver)) is not None:
                offered.setdefault(offer[0], []).append(name)
        for resource, names in offered.items():
            text = "a device plugin offers {resource} on {nodes:some}, too: the same device may be handed out twice"
            yield say(text, resource=resource, nodes=nodes_named(names))

    def _deciding(self, rows: Sequence[DeviceRow]) -> Iterator[Unread]:
        """What was not read and matters for what is listed; ``rows`` are those before their states chose among them."""
        open_ = self._wanted.free and any(row.state is DeviceState.UNKNOWN for row in rows)
        wanted = {"ResourceClaim": bool(self._wanted.namespace), "DeviceTaintRule": self._wanted.tainted}
        for unread in self._unread:
            if unread.gap.kind == "ResourceSlice" or open_ or wanted.get(unread.gap.kind):
                yield unread
        if self._wanted.classes:
            yield from unread_of((Stake("DeviceClass", "", UNKNOWN["DeviceClass"]),), self._snapshot)

    def _all(self) -> Iterator[PublishedDevice]:
        """Every device, by pool and slice: of the newest generation, of the one a node sees, or else an obsolete one.

        An invalid pool may publish a device twice; both are listed.
        """
        view = self._view
        old: dict[DeviceID, int] = {}
        slices = sorted(self._cycle.index.slices, key=lambda slice_: (slice_.pool, slice_.name))
        for pool, entries in groupby(slices, key=lambda slice_: slice_.pool):
            unseen: list[ResourceSlice] = []
            names: set[str] = set()
            own = list(entries)
            several = len({entry.generation for entry in own}) > 1
            # What a node sees comes before a newer generation that no node sees.
            for entry in sorted(own, key=lambda slice_: slice_.name not in view.slice_nodes):
                items = view.by_slice.get(entry.name, ())
                if not items:
                    unseen.append(entry)
                elif several:
                    yield from (item for item in items if item.id.device not in names)
                    names.update(item.id.device for item in items)
                else:
                    yield from items
            for slice_ in unseen:
                for position, (device, name) in enumerate(zip(slice_.devices, slice_.names, strict=True)):
                    if pool in view.obsolete and name not in names:
                        names.add(name)
                        yield PublishedDevice(device, slice_, position)
                    else:
                        old.setdefault(DeviceID(pool.driver, pool.name, name), slice_.generation)
        current = {item.id for item in view.published} if old else set()
        self._superseded += [
            Superseded(id, generation, view.newest[PoolID(id.driver, id.pool)])
            for id, generation in sorted(old.items())
            if id not in current
        ]
        left_out = Counter(PoolID(superseded.id.driver, superseded.id.pool) for superseded in self._superseded)
        for pool, count in sorted(left_out.items()):
            text = "{count:device} in older slices of pool {pool} {count:is|are} left out: generation {newest} is newer"
            self._notes.append(say(text, count=count, pool=pool, newest=view.newest[pool]))

    def _is_on(self, item: PublishedDevice, names: Sequence[str]) -> bool:
        place = self._states.place(item)
        return place.named in names or any(name in place.nodes for name in names)

    def _called(self, items: Sequence[PublishedDevice], words: Sequence[str]) -> list[PublishedDevice]:
        """The devices with these names. Raises InputError for a name that no device has."""
        meant: set[DeviceID] = set()
        for name in (name for word in words for name in single_names(word)):
            ids = [item.id for item in items if is_called(item.id, self._states.place(item).where, name)]
            if not ids:
                for gap in self._snapshot.unread(("ResourceSlice",)):
                    raise UndeterminedError(f"{gap}, so whether there is a device {name} is unknown{gap.help}")
                for old in self._superseded:
                    if is_called(old.id, old.id.pool, name):
                        raise InputError(str(old))
                if (absent := self._unpublished_there(name, items)) is not None:
                    raise absent
                near = near_names(name, (item.id for item in items))
                hint = f"; {did_you_mean(near)}" if near else ""
                lost = (id for group in unpublished(self._snapshot) for id in group.devices)
                held = next((id for id in lost if is_called(id, id.pool, name)), None)
                raise self._held_unpublished(held) if held else InputError(f"no device is called {name}{hint}")
            meant.update(ids)
        return [item for item in items if item.id in meant]

    def _held_unpublished(self, device: DeviceID) -> InputError:
        """Of a device that is held and not published: by which claim."""
        (meta, *_) = (claim.metadata for claim in self._snapshot.claims.values() if device in claim.devices)
        holder = f"claim {meta.namespace}/{meta.name}"
        error = InputError(f"{holder} holds device {device}, which no ResourceSlice has")
        error.commands = (("Next", kubectl("dra", "explain", kind="claim", name=meta.name, namespace=meta.namespace)),)
        return error

    def _unpublished_there(self, name: str, items: Sequence[PublishedDevice]) -> InputError | None:
        """Error for a device name on a node without devices, with the driver that would publish them; else None."""
        node = name.rpartition("/")[0].rpartition("/")[2]
        if node not in self._snapshot.nodes or any(self._is_on(item, (node,)) for item in items):
            return None
        error = InputError(f"no device is called {name}: no driver publishes any for node {node}")
        wanted = (row for row in joined(self._snapshot).rows if row.node == node or node in row.hardware)
        if (row := next(wanted, None)) is not None:
            error = InputError(f"no device is called {name}: driver {row.driver} publishes none for node {node}")
            error.commands = (("Next", kubectl("dra", "explain", kind="driver", name=row.driver)),)
        return error

    def _selected(self, items: Sequence[PublishedDevice], selector: Program) -> list[PublishedDevice]:
        verdicts = selector.evaluate_devices([item.device for item in items])
        errors = [(i, v) for i, v in zip(items, verdicts, strict=True) if isinstance(v, EvaluationError)]
        if errors:
            item, error = errors[0]
            text = "--selector fails on {count:,} devices, which are left out; on {device}, for instance: {error}"
            self._notes.append(say(text, count=len(errors), device=item.id, error=str(error)))
        return [item for item, verdict in zip(items, verdicts, strict=True) if verdict is True]

    def _classes(self, items: Sequence[PublishedDevice]) -> list[tuple[str, ...]]:
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
                    text = "DeviceClass {name} selects nothing: a selector of it does not compile"
                    self._notes.append(say(text, name=name))
                    alive = [False] * len(items)
                    break
                for index, verdict in enumerate(program.evaluate_devices(table)):
                    if verdict is not True and alive[index]:
                        alive[index] = False
                        if verdict is not False:
                            errors.append((index, verdict))
            if errors:
                index, error = errors[0]
                text = "DeviceClass {name} fails on {count:,} devices; on {device}, for instance: {error}"
                self._notes.append(say(text, name=name, count=len(errors), device=items[index].id, error=str(error)))
            for index, matches in enumerate(alive):
                if matches:
                    matching[index].append(name)
        # Few combinations occur, so each is kept once.
        shared: dict[tuple[str, ...], tuple[str, ...]] = {}
        return [shared.setdefault(names, names) for names in map(tuple, matching)]

    def _row(self, item: PublishedDevice, classes: tuple[str, ...]) -> DeviceRow:
        place = self._states.place(item)
        taints = item.device.taints
        if self._unseen_rules:
            rules = [rule.taint for rule in self._unseen_rules if rule.selects(*item.id)]
            taints = (*taints, *rules)
        state, reason = self._states.state(item, place)
        holders = self._cycle.state.holders.get(item.id, ())
        consumed = self._cycle.state.consumed.get(item.id, NOTHING) if holders else NOTHING
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
            state is not DeviceState.TAINTED and bool(self._states.blocking(item)),
            self._states.unserved(item, place) if state in _GIVEN else "",
            state is DeviceState.HELD and bool(self._states.unusable(item, place)),
            draws_of(item.device, self._counters(item.slice.pool)) if item.device.consumes_counters else NO_DRAWS,
        )

    def _counters(self, pool: PoolID) -> Mapping[str, Counters]:
        """The counter sets of a pool, each with what it has of each counter."""
        if pool not in self._totals:
            self._totals[pool] = {
                counter_set.name: counter_set.counters
                for slice_ in self._cycle.index.by_pool[pool]
                for counter_set in slice_.shared_counters
            }
        return self._totals[pool]


_GIVEN = (DeviceState.UNSERVED, DeviceState.SHARED)
"""States of devices of which the scheduler gives something."""


def _or(kind: str, names: Sequence[str]) -> str:
    return f"{kind} {' or '.join(names)}"
