"""A pod whose containers run, though its devices are on another node, or nobody allocated any: it was bound by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX, amount_of, class_by_resource, resources_of
from kubectl_dra.api.behaviour import IMPLICIT_PASSED_OVER
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.on_node import started
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, say, subject

WITHOUT = CauseKind(
    code="runs-without-its-devices", family=Family.NODE, look=Look.POD, state="runs without its devices"
)


def devices_elsewhere(pod: Pod, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> dict[DeviceID, str]:
    """The allocated devices of a pod that only another node publishes, and that node.

    The kubelet does not compare its node with the allocation, and the claim controller reserves a claim that is
    allocated for whatever pod has a node.
    """
    if not pod.node_name:
        return {}
    homes = snapshot.derived(_nodes_by_pool)
    out: dict[DeviceID, str] = {}
    for claim in claims:
        for result in claim.results:
            there = homes.get(PoolID(result.device.driver, result.device.pool), frozenset())
            if there and "" not in there and pod.node_name not in there:
                out[result.device] = min(there)
    return out


def _nodes_by_pool(snapshot: Snapshot) -> Mapping[PoolID, Set[str]]:
    """The nodes that publish a pool; an empty name stands for more than one node at once."""
    nodes: dict[PoolID, set[str]] = {}
    for slice_ in snapshot.slices:
        nodes.setdefault(slice_.pool, set()).add(slice_.scope.node_name)
    return nodes


def _elsewhere(analysis: Analysis) -> Iterator[Finding]:
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None or not started(pod) or pod.metadata.deletion_timestamp:
        return
    elsewhere = devices_elsewhere(pod, analysis.allocated, snapshot)
    if not elsewhere:
        return
    device, home = next(iter(elsewhere.items()))
    text = "it was bound to node {node} without the scheduler, and device {device} is on node {home}"
    words = {"node": ObjectName("Node", pod.node_name), "device": device, "home": ObjectName("Node", home)}
    yield Finding(
        WITHOUT,
        say(text, **words),
        (
            Evidence(subject("Pod", pod), "spec.nodeName", ObjectName("Node", pod.node_name)),
            Evidence(Subject("device", device), "is published for", ObjectName("Node", home)),
        ),
    )


def _never_allocated(analysis: Analysis) -> Iterator[Finding]:
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None or not started(pod) or pod.extended_resource_claim or pod.metadata.deletion_timestamp:
        return
    resources = unserved(pod, snapshot)
    if not resources or not analysis.view.cycle.features.extended_resources:
        return
    text = "it was bound to node {node} without the scheduler, so nobody allocated {resources:some}"
    release = analysis.scheduler.release
    words = {"node": ObjectName("Node", pod.node_name), "resources": resources, "release": str(release)}
    remedy = None
    if release in IMPLICIT_PASSED_OVER and all(name.startswith(IMPLICIT_PREFIX) for name in resources):
        text = (
            "nobody allocated {resources:some}: the scheduler of {release} places pods on nodes as if they did not ask "
            "for such an implicit extended resource"
        )
        change = (
            "Create the pod again with a ResourceClaim, or give the class an extendedResourceName and ask for that; "
            "schedulers of later releases allocate implicit ones, too."
        )
        remedy = Remedy(change)
    yield Finding(
        WITHOUT,
        say(text, **words),
        (
            Evidence(subject("Pod", pod), "status.extendedResourceClaimStatus", "not set"),
            Evidence(Subject("Node", words["node"]), say("status.allocatable of {resources:some}", **words), "none"),
        ),
        remedy,
    )


def unserved(pod: Pod, snapshot: Snapshot) -> tuple[str, ...]:
    """The extended resources of a pod that a class serves, and no device plugin of its node does."""
    node = snapshot.nodes.get(pod.node_name)
    if node is None:
        return ()
    classes = snapshot.derived(_served)
    return tuple(name for name in resources_of(pod) if name in classes and not amount_of(node.allocatable.get(name)))


def _served(snapshot: Snapshot) -> Set[str]:
    return class_by_resource(snapshot.classes).keys()


FINDERS = (
    Finder(When.PLACED, _elsewhere, -6),
    Finder(When.SCENE, _never_allocated, 10),
)
