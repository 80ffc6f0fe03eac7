"""What depends on a driver of a node while it is away: the claims that it serves there, and the pods that use them.

The kubelet calls the driver before a pod's containers start and after they have ended (pkg/kubelet/cm/dra). In between
it needs nothing of it: pods that run keep their devices while the driver restarts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import owner_of
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.cluster.claim_relation import ClaimRelation, consumers_of
from kubectl_dra.cluster.snapshot import Gap, Snapshot
from kubectl_dra.drivers.health import NodeDriver


class WhileAway(StrEnum):
    """What becomes of a pod while the driver of its node is away."""

    RUNS = "runs"
    """Its containers run on."""
    WAITS = "waits"
    """It has its devices and cannot start before the driver is back."""
    HANGS = "hangs"
    """It is being deleted and cannot end before the driver is back."""
    UNKNOWN = "unknown"
    """It was not read."""


class PodOfDriver(NamedTuple):
    """A pod that uses devices of a driver on a node, and what becomes of it."""

    namespace: str
    name: str
    outcome: WhileAway
    owner: str = ""


class ClaimOfDriver(NamedTuple):
    """A claim with devices of a driver on a node, and the pods that use it."""

    driver: str
    node: str
    namespace: str
    name: str
    devices: tuple[DeviceID, ...]
    pods: tuple[PodOfDriver, ...]


class Update(NamedTuple):
    """How the DaemonSet of a driver replaces its pod on a node: ``surge`` starts the new pod before the old one ends.

    Then nobody waits, if the driver supports two instances of itself on a node, which the API does not say.
    """

    driver: str
    namespace: str
    name: str
    strategy: str
    surge: bool


class DriverUsers(NamedTuple):
    """The claims that a restart concerns, how the node's drivers are updated, and what could not be read."""

    claims: tuple[ClaimOfDriver, ...]
    gaps: tuple[Gap, ...]
    updates: tuple[Update, ...] = ()

    def pods(self, *outcomes: WhileAway) -> tuple[PodOfDriver, ...]:
        """The pods of some outcomes, each once."""
        pod_of_drivers = (pod for claim in self.claims for pod in claim.pods if pod.outcome in outcomes)
        return tuple(dict.fromkeys(pod_of_drivers))


def drain_check(snapshot: Snapshot, node: str, driver: str = "") -> DriverUsers:
    """Who uses devices of a node's drivers, or of one of them."""
    pools = {slice_.pool for slice_ in snapshot.slices if slice_.scope.node_name == node}
    claims = tuple(_claims(snapshot, node, driver, pools))
    return DriverUsers(claims, snapshot.unread(("ResourceClaim", "ResourceSlice", "Pod")))


def updates_of(rows: Iterable[NodeDriver]) -> tuple[Update, ...]:
    """How the DaemonSets of drivers replace their pods, as far as they were read."""
    daemons = ((row.driver, row.daemon) for row in rows)
    return tuple(
        Update(driver, daemon.namespace, daemon.name, daemon.update, daemon.surge)
        for driver, daemon in daemons
        if daemon is not None and daemon.kind == "DaemonSet"
    )


def _claims(snapshot: Snapshot, node: str, driver: str, pools: set[PoolID]) -> Iterator[ClaimOfDriver]:
    for claim in snapshot.claims.values():
        by_driver: dict[str, list[DeviceID]] = {}
        for result in claim.results:
            if PoolID(*result.device[:2]) in pools and driver in ("", result.device.driver):
                by_driver.setdefault(result.device.driver, []).append(result.device)
        for name, devices in by_driver.items():
            meta = claim.metadata
            pods = tuple(_pods(claim, snapshot))
            yield ClaimOfDriver(name, node, meta.namespace, meta.name, tuple(devices), pods)


def _pods(claim: ResourceClaim, snapshot: Snapshot) -> Iterator[PodOfDriver]:
    for use in consumers_of(claim, snapshot.pods).entries:
        if not use.relation.of_pod or use.relation.stale:
            continue
        owner = owner_of(use.pod) if use.pod is not None else None
        outcome = _OUTCOMES.get(use.relation, WhileAway.UNKNOWN if use.pod is None else WhileAway.WAITS)
        name = f"{owner.kind}/{owner.name}" if owner is not None else ""
        yield PodOfDriver(claim.metadata.namespace, use.entry.name, outcome, name)


_OUTCOMES = {
    ClaimRelation.RUNNING: WhileAway.RUNS,
    ClaimRelation.STARTING: WhileAway.WAITS,
    ClaimRelation.ENDING: WhileAway.HANGS,
}
