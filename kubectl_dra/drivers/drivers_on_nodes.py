"""Joins what drivers publish for nodes with the pods in which they run: how each driver is on each node.

It takes one pass over the pods and the slices. What could not be read is a gap of the result, never a guess.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.plugins import DaemonSet, PluginSpec
from kubectl_dra.api.shared_devices import TIMES
from kubectl_dra.api.slices import PoolID, ResourceSlice, newest_slices
from kubectl_dra.api.taints import BLOCKING_EFFECTS, DeviceTaint, DeviceTaintRule, distinct
from kubectl_dra.cluster.claim_relation import waiting_for
from kubectl_dra.cluster.snapshot import ABSENT, Gap, Key, Snapshot
from kubectl_dra.cluster.time_read import Moment, moment
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.drivers.concerns import held_unpublished, not_published
from kubectl_dra.drivers.daemons import (
    REPLICAS,
    daemon_state,
    failing_replicas,
    left_out,
    missing_nodes,
    node_of,
    replica_state,
)
from kubectl_dra.drivers.driver_pods import (
    Looks,
    pods_of_drivers,
)
from kubectl_dra.drivers.hardware import NVIDIA, kind_of, part_off, promised, unserved, with_hardware
from kubectl_dra.drivers.health import (
    SEVERITY,
    DaemonState,
    DriverPod,
    DriverState,
    NodeDriver,
    PoolCount,
    failing_calls,
    seconds_since,
    usual_count,
)

_DRIVER_TERM: Final = re.compile(r"""device\.driver\s*==\s*(["'])(?P<driver>[^"'\\]{1,63})\1""")
NAMED_LIKES: Final = 3
PUBLISHES_SECONDS: Final = 30
"""Seconds that a driver may take from its start until it publishes."""
COMES_BACK_SECONDS: Final = 60
"""Seconds its slices may be away after the kubelet's start, which deletes them; 26 to 56 s were measured."""
_NOTHING: Final = PluginSpec()
"""What is known of what runs in pods that were never made."""
_FEW: Final = 4
"""Among so few nodes what one publishes itself counts when it is asked what is usual."""


class NodeDrivers(NamedTuple):
    """The drivers of a cluster, worst first, and what could not be read of them."""

    rows: tuple[NodeDriver, ...]
    gaps: tuple[Gap, ...] = ()

    def of(self, driver: str, node: str) -> NodeDriver | None:
        """One driver on one node."""
        return next((row for row in self.rows if row.driver == driver and row.node == node), None)

    def broken(self, driver: str = "") -> tuple[NodeDriver, ...]:
        """Rows of drivers, or of this one, that need a repair."""
        return tuple(row for row in self.rows if row.state.broken and driver in ("", row.driver))


def _row(
    driver: str,
    node: str,
    slices: Sequence[ResourceSlice],
    pools: Mapping[PoolID, Sequence[ResourceSlice]],
    rules: Sequence[DeviceTaintRule],
) -> NodeDriver:
    """What a driver publishes for a node, in these slices and others of the same pools."""
    own = newest_slices(slices)
    newest = [entry for entries in own.values() for entry in entries]
    counts = (PoolCount(p.name, pools[p][0].generation, len(pools[p]), pools[p][0].slice_count) for p in own)
    incomplete = [count for count in counts if count.found != count.expected]
    tainted = [taints for entry in newest for taints in _blocked(entry, rules)]
    return NodeDriver(
        driver,
        node,
        DriverState.UNKNOWN,
        devices=sum(len(entry.devices) for entry in newest),
        slices=len(newest),
        pools=tuple(pool.name for pool in own),
        generation=max(entry.generation for entry in newest),
        missing_slices=sum(max(count.expected - count.found, 0) for count in incomplete),
        incomplete=incomplete[0] if incomplete else None,
        created=max(entry.creation_timestamp for entry in newest),
        tainted=len(tainted),
        taints=distinct(taint for taints in tainted for taint in taints),
    )


def _blocked(entry: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> Iterator[Sequence[DeviceTaint]]:
    """The taints of each device of a slice that any keep from new claims: the driver's own and those of rules."""
    if any(device.taints for device in entry.devices):
        entry = entry.exact((TIMES,))
    elif not rules:
        return
    for device, name in zip(entry.devices, entry.names, strict=True):
        of_rules = (rule.taint for rule in rules if rule.selects(entry.driver, entry.pool.name, name))
        if blocking := [taint for taint in (*device.taints, *of_rules) if taint.effect in BLOCKING_EFFECTS]:
            yield blocking


def joined(snapshot: Snapshot) -> NodeDrivers:
    """Every driver on every node that it publishes for, runs on, or should run on.

    Of nodes that are only supposed nobody saw how a driver is there.
    """
    return snapshot.real.derived(_joined)


def _joined(snapshot: Snapshot) -> NodeDrivers:
    published: dict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for entry in snapshot.slices:
        if node := entry.scope.node_name:
            published[entry.driver, node].append(entry)
    named = {driver for driver, _ in published} | set(_asked_for(snapshot))
    plugins = [pod for pod in snapshot.pods.values() if pod.plugin is not None and not pod.finished]
    daemons: Mapping[Key, DaemonSet] = snapshot.others.get("DaemonSet", {})
    looks = Looks(named)
    pods = pods_of_drivers(snapshot, plugins, published, looks)
    rows: dict[tuple[str, str], NodeDriver] = {}
    pools = newest_slices(snapshot.slices)
    for key, slices in published.items():
        rows[key] = _row(*key, slices, pools, snapshot.taint_rules)
    for key, pod in pods.items():
        rows[key] = replace(rows.get(key) or NodeDriver(*key, DriverState.UNKNOWN), pod=pod)
    for key, count in _held_elsewhere(snapshot).items():
        rows.setdefault(key, NodeDriver(*key, DriverState.GONE, in_use=count))
    sets = _daemons(snapshot, daemons, looks, pods)
    for driver, node in _without_pods(snapshot, daemons, sets, looks):
        if (driver, node) not in pods:
            rows.setdefault((driver, node), NodeDriver(driver, node, DriverState.NO_POD))
    rows |= {(row.driver, row.node): row for row in _left_out(snapshot, rows, sets, looks)}
    for driver in named - {driver for driver, _ in rows}:
        if driver in sets:
            rows[driver, ""] = NodeDriver(driver, "", DriverState.NO_POD)
    waiting = _claims_waiting(snapshot)
    if not snapshot.is_gap("ResourceSlice"):
        rows |= {(row.driver, row.node): row for row in _nowhere(snapshot, {driver for driver, _ in rows}, waiting)}
    judged = _judged(snapshot, rows, sets)
    wanted: Counter[str] = Counter()
    for name, count in waiting.items():
        # Classes are called after the driver, or by its vendor: those that the cluster has change no order.
        known = catalogue().of_class(name)
        wanted[known.name if known is not None else name] += count

    def place(row: NodeDriver) -> tuple[int, int, str, str]:
        # Of those that are broken alike, the driver that people wait for is the one to look at.
        return SEVERITY[row.state], -wanted[row.driver] if row.state.broken else 0, row.driver, row.node

    return NodeDrivers(tuple(sorted(judged, key=place)), _gaps(snapshot, waiting))


def _claims_waiting(snapshot: Snapshot) -> Counter[str]:
    """By class: how many claims without devices ask for one of it."""
    return Counter(
        name
        for claim in snapshot.claims.values()
        if claim.allocation is None
        for name in {alternative.device_class for alternative in claim.alternatives()}
    )


def _waiting_pod(snapshot: Snapshot, classes: Collection[str]) -> Key | None:
    """The first pod of claims without devices that ask for one of these classes."""
    for claim in snapshot.claims.values():
        asks = any(alternative.device_class in classes for alternative in claim.alternatives())
        for pod in waiting_for(claim, snapshot) if asks and claim.allocation is None else ():
            return pod.metadata.namespace, pod.metadata.name
    return None


def classes_by_driver(snapshot: Snapshot) -> Mapping[str, Sequence[str]]:
    """The classes whose selectors name a driver, in their order."""
    classes: dict[str, list[str]] = defaultdict(list)
    for device_class in snapshot.classes.values():
        for driver in dict.fromkeys(named_in(device_class.selectors)):
            classes[driver].append(device_class.name)
    return classes


def _gaps(snapshot: Snapshot, waiting: Counter[str]) -> tuple[Gap, ...]:
    # Classes say for which drivers claims wait that are nowhere.
    wanted = ("DeviceClass",) if waiting else ()
    gaps = snapshot.unread(("ResourceSlice", "Node", "Pod", "DaemonSet", *wanted))
    # Only why a pod is missing stands in DaemonSets, and many files have none.
    return tuple(gap for gap in gaps if gap.kind != "DaemonSet" or gap.reason != ABSENT)


def _nowhere(snapshot: Snapshot, known: Collection[str], waiting: Counter[str]) -> Iterator[NodeDriver]:
    """Drivers that classes or ``waiting`` claims want, and that neither publish nor run anywhere."""
    publishing = {slice_.driver for slice_ in snapshot.slices}
    wanted = dict(classes_by_driver(snapshot))
    # The chart that turns a part on brings its class.
    wanted.setdefault(NVIDIA, [NVIDIA] if NVIDIA in waiting else [])
    for driver in sorted(wanted.keys() - publishing - {*known}):
        classes = tuple(sorted(wanted[driver]))
        claims = sum(waiting[name] for name in classes)
        there = with_hardware(snapshot.nodes.values(), driver)
        pod = _waiting_pod(snapshot, classes) if claims else None
        row = NodeDriver(
            driver, "", DriverState.IDLE, wanted_by=classes, claims=claims, hardware=there, waiting_pod=pod
        )
        off = part_off(driver, snapshot.nodes.values(), publishing) if driver == NVIDIA and classes else None
        if off is not None and off.other and off.nodes:
            for node in off.nodes:
                yield replace(row, node=node, state=DriverState.PART_OFF, other_part=off.other)
        elif classes:
            yield row


def _held_elsewhere(snapshot: Snapshot) -> Mapping[tuple[str, str], int]:
    """Number of devices, by driver and node, that claims hold of unpublished pools called like a node."""
    if snapshot.is_gap("ResourceSlice"):
        return {}
    missing = not_published(snapshot.claims.values(), snapshot)
    pools = (result.device[:2] for _, result, slices in missing if not slices)
    return Counter(pool for pool in pools if pool[1] in snapshot.nodes)


def named_in(selectors: Iterable[str | None]) -> Iterator[str]:
    """The drivers that selectors name."""
    for text in selectors:
        for match in _DRIVER_TERM.finditer(text or ""):
            yield match["driver"]


def _asked_for(snapshot: Snapshot) -> Iterator[str]:
    """The drivers that classes name."""
    for device_class in snapshot.classes.values():
        yield from named_in(device_class.selectors)


class _Set(NamedTuple):
    """The DaemonSet that makes a driver's pods, as an object if it was read; or the ReplicaSet, of which none is."""

    state: DaemonState | None
    spec: DaemonSet | None = None


def _daemons(
    snapshot: Snapshot,
    daemons: Mapping[Key, DaemonSet],
    looks: Looks,
    pods: Mapping[tuple[str, str], DriverPod],
) -> dict[str, _Set]:
    """What makes the pods of each driver."""
    out: dict[str, _Set] = {}
    for (_, name), daemon in daemons.items():
        if not daemon.is_plugin:
            continue
        for served in looks.of(daemon.spec.template.spec, name):
            out.setdefault(served.driver, _Set(daemon_state(daemon, snapshot), daemon))
    for (driver, _), pod in pods.items():
        if driver not in out and pod.owner_kind == REPLICAS:
            out[driver] = _Set(replica_state(pod.namespace, pod.owner, snapshot))
        if driver not in out and pod.owner and (known := daemons.get((pod.namespace, pod.owner))) is not None:
            out[driver] = _Set(daemon_state(known, snapshot), known)
    for namespace, name in failing_replicas(snapshot):
        for served in looks.of(_NOTHING, name):
            out.setdefault(served.driver, _Set(replica_state(namespace, name, snapshot)))
    return out


def _without_pods(
    snapshot: Snapshot, daemons: Mapping[Key, DaemonSet], sets: Mapping[str, _Set], looks: Looks
) -> Iterator[tuple[str, str]]:
    """Drivers whose DaemonSet wants a pod on a node that has none."""
    if snapshot.is_gap("Pod") or snapshot.is_gap("Node"):
        return
    on: dict[Key, set[str]] = defaultdict(set)
    for pod in snapshot.pods.values():
        if pod.plugin is not None and not pod.finished and (owner := pod.metadata.controller()) is not None:
            on[pod.metadata.namespace, owner.name].add(node_of(pod))
    for driver, daemon_set in sets.items():
        if daemon_set.spec is not None:
            meta = daemon_set.spec.metadata
            for node in missing_nodes(daemon_set.spec, snapshot.nodes.values(), on[meta.namespace, meta.name]):
                yield driver, node


def bare_nodes(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Drivers and nodes that have their hardware, as labels say, and on which nothing of the vendor is found."""
    rows = {(row.driver, row.node): row for row in joined(snapshot).rows}
    for driver, node in unserved(snapshot.real.nodes, rows, {driver for driver, _ in rows}):
        yield driver, node.name


def _left_out(
    snapshot: Snapshot, rows: Mapping[tuple[str, str], NodeDriver], sets: Mapping[str, _Set], looks: Looks
) -> Iterator[NodeDriver]:
    """The nodes that have the hardware of a driver or slices of it, no pod of it, and no DaemonSet that wants one."""
    if snapshot.is_gap("Pod"):
        return
    # A DaemonSet that wants no pod at all is told as such.
    specs = {name: own.spec for name, own in sets.items() if own.spec is not None and own.spec.status.desired != 0}
    every: dict[str, list[DaemonSet]] = {name: [spec] for name, spec in specs.items()}
    for (_, name), daemon in snapshot.others.get("DaemonSet", {}).items():
        for served in looks.of(daemon.spec.template.spec, name) if daemon.is_plugin else ():
            every.setdefault(served.driver, []).append(daemon)
    bare = (NodeDriver(name, node.name, DriverState.LEFT_OUT) for name, node in unserved(snapshot.nodes, rows, specs))
    abandoned = (row for row in rows.values() if row.pod is None and row.driver in specs)
    for row in (*bare, *abandoned):
        node = snapshot.nodes.get(row.node)
        reasons = [left_out(daemon, node) for daemon in every[row.driver]] if node is not None else []
        if reasons and None not in reasons:
            yield replace(row, left_out=reasons[0])


def _judged(
    snapshot: Snapshot, rows: Mapping[tuple[str, str], NodeDriver], sets: Mapping[str, _Set]
) -> Iterator[NodeDriver]:
    """The rows with their states, which depend on those of their likes."""
    at = moment(snapshot)
    pods_known = not snapshot.is_gap("Pod")
    by_kind: dict[tuple[str, object], list[NodeDriver]] = defaultdict(list)
    running: set[str] = set()
    publishing: set[str] = set()
    kinds = {name: kind_of(node) for name, node in snapshot.nodes.items()}
    for row in rows.values():
        if row.devices:
            by_kind[row.driver, kinds.get(row.node)].append(row)
            publishing.add(row.driver)
        if row.pod is not None:
            running.add(row.driver)
    usual = {key: usual_count([row.devices for row in alike]) for key, alike in by_kind.items()}
    slices_known = not snapshot.is_gap("ResourceSlice")
    held: Mapping[tuple[str, str], int] | None = None
    calls = failing_calls(snapshot)
    for row in rows.values():
        node = snapshot.nodes.get(row.node)
        key = row.driver, kinds.get(row.node)
        # What nodes of no known kind have in common says little about their hardware.
        alike = by_kind.get(key, ())
        likes = tuple(like.node for like in alike[: NAMED_LIKES + 1] if like.node != row.node)
        common = usual.get(key, 0)
        if len(alike) < _FEW:
            common = usual_count([like.devices for like in alike if like.node != row.node])
        daemon_set = sets.get(row.driver)
        row = replace(
            row,
            usual=common,
            likes=likes[:NAMED_LIKES],
            labelled=kinds.get(row.node) is not None,
            daemon=daemon_set.state if daemon_set is not None else None,
            pods_read=pods_known,
        )
        if row.wanted_by:
            wait = DriverState.SILENT if row.claims and row.state is DriverState.IDLE else row.state
            yield replace(row, state=wait)
            continue
        if row.state is DriverState.LEFT_OUT:
            yield row
            continue
        if snapshot.lacks_node(row.node):
            # A pod of it, or a slice, is left over.
            yield replace(row, state=DriverState.NODE_DOWN, node_gone=True)
            continue
        state = _state(row, node, slices_known, pods_known and row.driver in running, kinds.get(row.node) is not None)
        failing = calls.get((row.driver, row.node))
        if failing is not None and state in (_ANSWERS if failing.said else _QUIET):
            yield replace(row, state=failing.state, failing=failing)
            continue
        quiet = state is DriverState.SILENT or (state is DriverState.IDLE and not row.slices)
        if quiet and _publishes_soon(row, node, at):
            state = DriverState.STARTING
        elif state is DriverState.IDLE and (row.driver not in publishing or promised(node, row.driver)):
            state = DriverState.SILENT
        if state in (DriverState.SILENT, DriverState.FEWER) and row.slices:
            held = held_unpublished(snapshot) if held is None else held
            in_use = held.get((row.driver, row.node), 0)
            if in_use and row.devices + in_use >= row.usual:
                # Some drivers take devices in use out of their slices.
                state, row = DriverState.HEALTHY, replace(row, in_use=in_use)
        down = node.ready_since if node is not None and state is DriverState.NODE_DOWN else ""
        yield replace(row, state=state, down_since=down)


_QUIET: Final = (DriverState.UNKNOWN, DriverState.NO_POD, DriverState.HEALTHY, DriverState.NOT_READY)
"""States that do not explain why the kubelet does not reach a driver."""
_ANSWERS: Final = (DriverState.UNKNOWN, DriverState.HEALTHY, DriverState.NOT_READY)
"""States in which a driver can answer."""


def _publishes_soon(row: NodeDriver, node: Node | None, at: Moment) -> bool:
    """Whether a driver that runs has had no time to publish: it has just started, or the kubelet has, which deletes all
    slices of its node then.
    """
    ready = node.ready_since if node is not None else ""
    starts = ((row.pod.since if row.pod is not None else "", PUBLISHES_SECONDS), (ready, COMES_BACK_SECONDS))
    return any(time and 0 <= seconds_since(time, at) < limit for time, limit in starts)


def _state(row: NodeDriver, node: Node | None, slices_known: bool, pods_known: bool, sure: bool) -> DriverState:
    pod = row.pod
    if node is not None and node.ready is False:
        return DriverState.NODE_DOWN
    if pod is None and row.state is DriverState.GONE:
        return DriverState.GONE
    if pod is None and (pods_known or row.state is DriverState.NO_POD):
        return DriverState.NO_POD
    if pod is None:
        return DriverState.INCOMPLETE if row.incomplete is not None else DriverState.UNKNOWN
    if pod.state in (DriverState.CRASHING, DriverState.NOT_STARTING, DriverState.ENDING, DriverState.STARTING):
        return pod.state
    if row.incomplete is not None:
        return DriverState.INCOMPLETE
    if not row.devices and slices_known:
        return DriverState.SILENT if row.usual and (sure or not row.slices) else DriverState.IDLE
    if row.devices < row.usual and sure:
        return DriverState.FEWER
    return DriverState.NOT_READY if pod.state is DriverState.NOT_READY else DriverState.HEALTHY
