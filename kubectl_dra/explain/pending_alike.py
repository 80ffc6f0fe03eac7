"""What waits for devices: pods, and claims that no pod uses."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from kubectl_dra.allocation.extended_resources import amount_of, class_by_resource, resources_of
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod, PodSpec
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cluster.claim_relation import waiting_for
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.on_node import devices_elsewhere, may_be_lost, unready_since, unserved
from kubectl_dra.explain.settings import Settings


class PodProgress(IntEnum):
    """Progress of a pod, the least first."""

    NO_NODE = 0
    NOT_STARTED = 1
    IN_DOUBT = 2
    """It runs, and something is wrong with its node, its claims or its devices."""
    ENDING = 3
    RUNS = 4
    ENDED = 5

    @property
    def hangs(self) -> bool:
        """Whether there is something to explain."""
        return self < PodProgress.RUNS


def progress_of(pod: Pod, snapshot: Snapshot) -> PodProgress:
    """Progress of a pod of a cluster."""
    if pod.finished:
        return PodProgress.ENDED
    if pod.metadata.deletion_timestamp:
        return PodProgress.ENDING
    if not pod.node_name:
        return PodProgress.NO_NODE
    if pod.phase != "Running":
        return PodProgress.NOT_STARTED
    return PodProgress.IN_DOUBT if _in_doubt(pod, snapshot) else PodProgress.RUNS


def not_running_with(claim: ResourceClaim, snapshot: Snapshot) -> Pod | None:
    """The pod on its node that does not run with the devices of a claim, or of which that is in doubt, and so answers
    for it; None if there is none.

    Of several it is the one that has come least far, and of these the first by name.
    """
    pods = waiting_for(claim, snapshot) if claim.allocation is not None else []
    late = [(progress_of(pod, snapshot), pod.metadata.name, pod) for pod in pods if pod.node_name]
    stuck = [entry for entry in late if entry[0] in (PodProgress.NOT_STARTED, PodProgress.IN_DOUBT)]
    return min(stuck, key=lambda entry: entry[:2])[2] if stuck else None


def waiting(snapshot: Snapshot, settings: Settings, manifest: Snapshot | None = None) -> Iterator[Pod | ResourceClaim]:
    """Pods that wait for devices, then pending claims that no pod uses, in all namespaces.

    With a ``manifest`` its pods and claims alone, as they are in the cluster.
    """
    yield from pods_waiting(snapshot, settings, manifest)
    used: set[tuple[str, str]] = set()
    for (space, _), pod in (manifest or snapshot).pods.items():
        if not pod.finished:
            used |= {(space, name) for name in pod.claim_names}
    for key in (manifest or snapshot).claims:
        claim = snapshot.claims[key]
        if claim.allocation is None and key not in used:
            yield claim


def pods_with_devices(snapshot: Snapshot, settings: Settings) -> Iterator[Pod]:
    """Pods that have not ended and need devices, or have them."""
    yield from pods_waiting(snapshot, settings)
    yield from (pod for pod in snapshot.pods.values() if pod.node_name and pod.claims and not pod.finished)


def pods_waiting(snapshot: Snapshot, settings: Settings, manifest: Snapshot | None = None) -> Iterator[Pod]:
    """Pods without a node that need devices, in all namespaces; with a ``manifest`` its own alone."""
    backed = _backed(snapshot, settings)
    for pod in (manifest or snapshot).pods.values():
        # One that is being deleted is not queued, and is shown as well: a cause says what keeps it.
        if not pod.node_name and not pod.finished and (pod.claims or not backed.isdisjoint(resources_of(pod))):
            yield pod


def placed(snapshot: Snapshot) -> Iterator[Pod]:
    """Pods with claims that have a node and that something may keep from starting, running or ending."""
    served = class_by_resource(snapshot.classes).keys()
    # Most pods need no devices, and those of a workload share one spec.
    needs = ByIdentity[PodSpec, bool]()
    for pod in snapshot.pods.values():
        if not pod.node_name or pod.finished:
            continue
        if needs.get(pod.spec) is None:
            needs.put(pod.spec, bool(pod.claims) or not served.isdisjoint(resources_of(pod)))
        if not (needs.get(pod.spec) or pod.extended_resource_claim):
            continue
        if not (pod.claims or pod.extended_resource_claim or unserved(pod, snapshot)):
            continue
        if progress_of(pod, snapshot).hangs:
            yield pod


def _in_doubt(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether a pod that runs has an unhealthy device, a lost node, a claim that is gone or not allocated, or no device
    where it should have one.
    """
    if unready_since(pod.node_name, snapshot) is not None or may_be_lost(pod, snapshot):
        return True
    if any(
        resource.health == "Unhealthy"
        for status in pod.status.container_statuses
        for device_status in status.allocated_resources_status
        for resource in device_status.resources
    ):
        return True
    if not pod.extended_resource_claim and unserved(pod, snapshot):
        return True
    claims = [snapshot.claims.get((pod.metadata.namespace, name)) for name in pod.claim_names]
    if any(claim is None or claim.allocation is None for claim in claims):
        return True
    return bool(devices_elsewhere(pod, [claim for claim in claims if claim is not None], snapshot))


def _backed(snapshot: Snapshot, settings: Settings) -> frozenset[str]:
    """Extended resources that a class offers; while the feature is off, those that no device plugin offers."""
    names = class_by_resource(snapshot.classes).keys()
    if settings.scheduler.features.extended_resources:
        return frozenset(names)
    nodes = snapshot.nodes.values()
    return frozenset(name for name in names if not any(amount_of(node.allocatable.get(name)) for node in nodes))
