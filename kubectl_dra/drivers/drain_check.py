"""What depends on a driver of a node while it is away: the claims that it serves there, and the pods that use them.

The kubelet calls the driver before a pod's containers start and after they have ended (pkg/kubelet/cm/dra). In between
it needs nothing of it: pods that run keep their devices while the driver restarts. It calls the driver of the pod's
node, wherever the devices are. A device plugin is asked when a pod comes to the node, and never when one ends
(pkg/kubelet/cm/devicemanager).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from kubectl_dra.allocation.extended_resources import amount_of, resources_of
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pod_resources import pod_requests
from kubectl_dra.api.pods import Pod, owner_of
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.cluster.claim_relation import ClaimRelation, consumers_of, placed_unreserved, waiting_for
from kubectl_dra.cluster.snapshot import Gap, Key, Snapshot
from kubectl_dra.drivers.drivers_on_nodes import NodeDrivers, classes_by_driver
from kubectl_dra.drivers.hardware import served_by
from kubectl_dra.drivers.health import NodeDriver


class WhileAway(StrEnum):
    """What becomes of a pod while the driver of its node is away."""

    RUNS = "runs"
    """Its containers run on."""
    WAITS = "waits"
    """It has its devices and cannot start before the driver is back."""
    HANGS = "hangs"
    """It is being deleted and cannot end before the driver is back."""
    MAY_FAIL = "may-fail"
    """It is on the node and has not started, and whether the device plugin gave it its devices is unknown."""
    LOST = "lost"
    """Its node is not ready: whether it runs is unknown, and its kubelet ends no pod."""
    UNKNOWN = "unknown"
    """It was not read."""


class PodOfDriver(NamedTuple):
    """A pod that uses devices of a driver on a node, and what becomes of it. ``ends``: it is being deleted, and its
    grace period ends then.
    """

    namespace: str
    name: str
    outcome: WhileAway
    owner: str = ""
    ends: str = ""


class ClaimOfDriver(NamedTuple):
    """A claim with devices of a driver on a node, and the pods that use it. ``awaited``: others are going to."""

    driver: str
    node: str
    namespace: str
    name: str
    devices: tuple[DeviceID, ...]
    pods: tuple[PodOfDriver, ...]
    awaited: bool = False

    @property
    def unused(self) -> bool:
        """Whether its devices are held by a claim that no pod uses."""
        return not self.pods and not self.awaited


class PluginUser(NamedTuple):
    """A pod on a node, and how much it has of a resource of which a device plugin is in charge there."""

    resource: str
    amount: int
    pod: PodOfDriver


class Update(NamedTuple):
    """Replacement of a driver's pod on a node by its DaemonSet: ``surge`` starts the new pod before the old one ends.

    Then nobody waits, if the driver supports two instances of itself on a node, which the API does not say.
    """

    driver: str
    namespace: str
    name: str
    strategy: str
    surge: bool


class DriverUsers(NamedTuple):
    """The claims that a restart concerns, how the node's drivers are updated, and what could not be read.

    ``of_plugins`` are the pods that have devices of a device plugin, ``beside`` those without any that a drain of the
    node evicts as well. ``rows`` is how the drivers are there, and ``awaiting`` are the keys of pods without a node
    that ask for devices of drivers which are broken there, by driver. ``down``: the node is not ready, or not there.
    ``free``: so many devices of the node new pods may get, or shares of them. ``absent``: no driver is
    there, or none of those that were ``asked`` about.
    """

    claims: tuple[ClaimOfDriver, ...]
    gaps: tuple[Gap, ...]
    updates: tuple[Update, ...] = ()
    of_plugins: tuple[PluginUser, ...] = ()
    beside: tuple[PodOfDriver, ...] = ()
    rows: tuple[NodeDriver, ...] = ()
    awaiting: Mapping[str, tuple[Key, ...]] = MappingProxyType({})
    down: bool = False
    free: int = 0
    absent: bool = False
    asked: tuple[str, ...] = ()

    def pods(self, *outcomes: WhileAway) -> tuple[PodOfDriver, ...]:
        """The pods of some outcomes, each once: what one with several claims waits for first decides."""
        worst: dict[tuple[str, str], PodOfDriver] = {}
        for pod in (*(pod for claim in self.claims for pod in claim.pods), *(user.pod for user in self.of_plugins)):
            known = worst.setdefault((pod.namespace, pod.name), pod)
            if _WORST.index(pod.outcome) < _WORST.index(known.outcome):
                worst[pod.namespace, pod.name] = pod
        return tuple(pod for pod in worst.values() if pod.outcome in outcomes)

    def of_driver(self, driver: str) -> DriverUsers:
        """What concerns one driver alone."""
        return self._replace(claims=tuple(claim for claim in self.claims if claim.driver == driver), of_plugins=())

    @property
    def unused(self) -> tuple[ClaimOfDriver, ...]:
        """The claims with devices of the node that no pod uses."""
        return tuple(claim for claim in self.claims if claim.unused)

    def row(self, driver: str) -> NodeDriver | None:
        """State of a driver on the node; None if it is not there."""
        return next((row for row in self.rows if row.driver == driver), None)


_WORST: Final = (
    WhileAway.HANGS,
    WhileAway.WAITS,
    WhileAway.UNKNOWN,
    WhileAway.LOST,
    WhileAway.MAY_FAIL,
    WhileAway.RUNS,
)


def drain_check(snapshot: Snapshot, node: str, driver: str = "") -> DriverUsers:
    """Users of devices of a node's drivers, or of one of them and of the device plugin of the same vendor."""
    # Whether its pods run is known of a node that is ready, and what DRA serves of their resources shows in it.
    kinds = ("ResourceClaim", "ResourceSlice", "Pod", "Node")
    on_node = [pod for pod in snapshot.pods.values() if pod.node_name == node and not pod.finished]
    claims, users = tuple(_claims(snapshot, node, driver)), tuple(_of_plugins(snapshot, node, on_node, driver))
    known = snapshot.nodes.get(node)
    down = snapshot.lacks_node(node) if known is None else known.ready is False
    if down:
        claims = tuple(claim._replace(pods=tuple(map(_lost, claim.pods))) for claim in claims)
        users = tuple(user._replace(pod=_lost(user.pod)) for user in users)
    return DriverUsers(claims, snapshot.unread(kinds), of_plugins=users, down=down)


def _lost(pod: PodOfDriver) -> PodOfDriver:
    """A pod on a node that is not ready: what is recorded of it as running need not be so."""
    return pod._replace(outcome=WhileAway.LOST) if pod.outcome in (WhileAway.RUNS, WhileAway.MAY_FAIL) else pod


def evicted_beside(users: DriverUsers, snapshot: Snapshot, node: str) -> Iterator[PodOfDriver]:
    """The pods of a node that its drain evicts and that use none of its devices (kubectl drain: filters.go)."""
    own = {(pod.namespace, pod.name) for pod in users.pods(*WhileAway)}
    for pod in snapshot.pods.values():
        meta, owner = pod.metadata, pod.metadata.controller()
        if pod.node_name != node or pod.finished or (meta.namespace, meta.name) in own:
            continue
        if owner is None or owner.kind not in ("DaemonSet", "Node"):
            yield _using(pod, WhileAway.RUNS)


def is_absent(drivers: NodeDrivers, snapshot: Snapshot) -> bool:
    """Whether none of these drivers, which were looked for on a node, is there."""
    # Devices of no node may be served by a driver that nobody sees there.
    anywhere = any(not slice_.scope.node_name for slice_ in snapshot.slices)
    return not drivers.rows and not drivers.gaps and not snapshot.unread(("Node",)) and not anywhere


def awaiting(rows: Iterable[NodeDriver], snapshot: Snapshot) -> Mapping[str, tuple[Key, ...]]:
    """The keys of pods without a node whose claims ask for devices of drivers that are broken, by driver."""
    broken = {row.driver for row in rows if row.state.broken and row.failing is None}
    found: dict[str, tuple[Key, ...]] = {}
    by_driver = classes_by_driver(snapshot)
    for driver in sorted(broken):
        classes = by_driver.get(driver, ())
        keys = {
            (pod.metadata.namespace, pod.metadata.name)
            for claim in snapshot.claims.values()
            if claim.allocation is None and any(request.device_class in classes for request in claim.alternatives())
            for pod in waiting_for(claim, snapshot)
            if not pod.node_name
        }
        if keys:
            found[driver] = tuple(sorted(keys))
    return found


def updates_of(rows: Iterable[NodeDriver]) -> tuple[Update, ...]:
    """Update strategies of the drivers' DaemonSets, as far as they have one and it was read."""
    daemons = ((row.driver, row.daemon) for row in rows if row.pod is not None)
    return tuple(
        Update(driver, daemon.namespace, daemon.name, daemon.update, daemon.surge)
        for driver, daemon in daemons
        if daemon is not None and daemon.kind == "DaemonSet"
    )


def _claims(snapshot: Snapshot, node: str, driver: str) -> Iterator[ClaimOfDriver]:
    """Claims with devices of the node's pools, or that are used by pods on the node."""
    published = {entry.pool: entry.scope.node_name for entry in snapshot.slices}
    for claim in snapshot.claims.values():
        users = [(pod, on) for pod, on in _pods(claim, snapshot) if on in ("", node)]
        here = any(on for _, on in users)
        unseen = any(pod.outcome is WhileAway.UNKNOWN for pod, _ in users)
        by_driver: dict[str, list[DeviceID]] = {}
        for result in claim.results:
            pool = PoolID(*result.device[:2])
            # A pool that nobody publishes any more is called like its node, as drivers do.
            of_node = published.get(pool, pool.name)
            if here or of_node == node or (unseen and not of_node):
                by_driver.setdefault(result.device.driver, []).append(result.device)
        for name, devices in by_driver.items():
            if driver in ("", name):
                meta = claim.metadata
                pods = tuple(pod for pod, _ in users)
                awaited = not pods and bool(waiting_for(claim, snapshot))
                yield ClaimOfDriver(name, node, meta.namespace, meta.name, tuple(devices), pods, awaited)


def _pods(claim: ResourceClaim, snapshot: Snapshot) -> Iterator[tuple[PodOfDriver, str]]:
    """The pods that use a claim, each with its node; without one where that is not known."""
    if claim.allocation is not None and not claim.reserved_for:
        for pod in placed_unreserved(claim, waiting_for(claim, snapshot)):
            yield _using(pod, WhileAway.WAITS), pod.node_name
    for use in consumers_of(claim, snapshot.pods).entries:
        if use.relation is ClaimRelation.GROUP:
            yield from _members(claim, use.entry.name, snapshot)
        if not use.relation.of_pod or use.relation.stale:
            continue
        outcome = _OUTCOMES.get(use.relation, WhileAway.UNKNOWN if use.pod is None else WhileAway.WAITS)
        on = use.pod.node_name if use.pod is not None else ""
        ends = use.pod.metadata.deletion_timestamp if use.pod is not None else ""
        yield PodOfDriver(claim.metadata.namespace, use.entry.name, outcome, _owner(use.pod), ends), on


def _using(pod: Pod, outcome: WhileAway) -> PodOfDriver:
    meta = pod.metadata
    return PodOfDriver(meta.namespace, meta.name, outcome, _owner(pod), meta.deletion_timestamp)


def _members(claim: ResourceClaim, group: str, snapshot: Snapshot) -> Iterator[tuple[PodOfDriver, str]]:
    """The pods of a PodGroup that use its claim."""
    for pod in snapshot.pods.values():
        meta = pod.metadata
        in_group = (meta.namespace, pod.pod_group) == (claim.metadata.namespace, group)
        if in_group and not pod.finished and pod.node_name and claim.metadata.name in pod.claim_names:
            ends, runs = bool(meta.deletion_timestamp), pod.phase in ("Running", "Unknown")
            outcome = WhileAway.HANGS if ends else WhileAway.RUNS if runs else WhileAway.WAITS
            yield _using(pod, outcome), pod.node_name


def _of_plugins(snapshot: Snapshot, node: str, on_node: Iterable[Pod], driver: str) -> Iterator[PluginUser]:
    """Pods with extended resources for which the scheduler made no claim."""
    offered = snapshot.nodes[node].allocatable if node in snapshot.nodes else {}
    for pod in on_node:
        for resource in resources_of(pod):
            if driver and served_by(resource) != driver:
                continue
            # One node offers a resource by its device plugin or by DRA, never by both.
            if pod.extended_resource_claim and not amount_of(offered.get(resource)):
                continue
            runs = pod.phase in ("Running", "Unknown") or bool(pod.metadata.deletion_timestamp)
            outcome = WhileAway.RUNS if runs else WhileAway.MAY_FAIL
            yield PluginUser(resource, pod_requests(pod)[resource].value(), _using(pod, outcome))


def _owner(pod: Pod | None) -> str:
    owner = owner_of(pod) if pod is not None else None
    return f"{owner.kind}/{owner.name}" if owner is not None else ""


_OUTCOMES = {
    ClaimRelation.RUNNING: WhileAway.RUNS,
    ClaimRelation.STARTING: WhileAway.WAITS,
    ClaimRelation.ENDING: WhileAway.HANGS,
}
