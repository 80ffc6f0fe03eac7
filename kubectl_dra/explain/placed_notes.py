"""Notes about a pod on its node with which nothing is wrong: who acts next, and what may happen to its devices."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.allocation.extended_resources import amount_of, resources_of
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.claim_relation import claims_of, relation_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.causes.on_node import ANSWER, drivers_of, names_given, started
from kubectl_dra.explain.eviction import DeviceTaints
from kubectl_dra.explain.phrase import ObjectName, Phrase, named, say


def placed_notes(analysis: Analysis) -> Iterator[Phrase]:
    """What is to be known of a pod that has a node and its devices; nothing of another."""
    pod = analysis.pod
    if pod is None or not pod.node_name or pod.finished or pod.metadata.deletion_timestamp:
        return
    snapshot, claims = analysis.snapshot, analysis.allocated
    held = [device for claim in claims if relation_of(claim, pod).listed for device in claim.devices]
    yield from _of_plugins(pod, snapshot)
    yield from _starting(pod, drivers_of(claims))
    if started(pod):
        cycle = analysis.view.cycle
        yield from _tainted(held, DeviceTaints(snapshot, cycle.features, cycle.rules))
        yield from _given_twice(pod, held, snapshot)


def _of_plugins(pod: Pod, snapshot: Snapshot) -> Iterator[Phrase]:
    """Extended resources that a device plugin of the node serves."""
    node = snapshot.nodes.get(pod.node_name)
    served = [name for name in resources_of(pod) if node is not None and amount_of(node.allocatable.get(name))]
    if served and not pod.extended_resource_claim:
        text = "a device plugin of node {node} serves {resources:some 3}; the API does not say with which devices"
        yield say(text, node=ObjectName("Node", pod.node_name), resources=served)


def _starting(pod: Pod, drivers: tuple[str, ...]) -> Iterator[Phrase]:
    """Notes on controllers that act on a pod that was just placed."""
    since = pod.status.start_time
    if pod.phase not in ("", "Pending") or not since or not drivers:
        return
    words = {"node": ObjectName("Node", pod.node_name), "since": since, "drivers": drivers}
    if pod.condition("PodReadyToStartContainers").status == "True":
        yield say("its devices are prepared, and the kubelet of node {node} starts its containers", **words)
        return
    text = (
        "the kubelet of node {node} has had it since {since} and waits for driver {drivers:some} to prepare the "
        "devices; after {seconds:second} it would say so"
    )
    yield say(text, seconds=int(ANSWER.total_seconds()), **words)


def _tainted(held: list[DeviceID], taints: DeviceTaints) -> Iterator[Phrase]:
    """A taint without NoExecute lets the pod run on; of one with it a cause says that the pod is evicted."""
    for device in held:
        for taint in taints.of(device):
            if taint.effect == "NoSchedule":
                text = "device {device} is tainted: {taint}{by}{since}; the pod keeps it, and no other pod gets it"
                by = say(" by DeviceTaintRule {rule}", rule=taint.rule) if taint.rule else " by its driver"
                since = say(" since {time}", time=taint.time_added) if taint.time_added else ""
                yield say(text, device=device, taint=str(taint), by=by, since=since)
                break


def _given_twice(pod: Pod, held: list[DeviceID], snapshot: Snapshot) -> Iterator[Phrase]:
    """Another pod of the node was started with a device of this name, and no claim of it has that device any more."""
    names = {device.device: device for device in held}
    for other in snapshot.pods.values():
        if other is pod or other.node_name != pod.node_name or not started(other):
            continue
        shared = names_given(other) & names.keys()
        if not shared:
            continue
        own = {device.device for claim in claims_of(other, snapshot) for device in claim.devices}
        for name in sorted(shared - own):
            text = (
                "pod {other} runs on node {node} with {device}, too, and has lost its claim: both use it until that "
                "pod is deleted"
            )
            node = ObjectName("Node", pod.node_name)
            yield say(text, other=named("Pod", other), device=names[name], node=node)
