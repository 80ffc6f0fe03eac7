"""The pod is placed and its claims are allocated, but the node does not start it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.relation import relation_of
from kubectl_dra.cluster.snapshot import Event, Snapshot
from kubectl_dra.explain import confirm
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import ObjectName, Subject, named, say
from kubectl_dra.explain.scene.clock import CLAIM_CONTROLLER, under_way
from kubectl_dra.explain.scene.holders import consumers_named
from kubectl_dra.explain.trial import Trial

# What the kubelet writes: its own words are all that tells.
_UNREGISTERED = re.compile(r"not registered|registered DRA plugins|no registered DRA|DRA driver \S+ not found")
_NO_ANSWER = re.compile(r"connection error|connection refused|transport: Error while dialing|code = Unavailable")
"""The kubelet knows the driver's socket, but nobody listens there."""
_NOT_ALLOWED = re.compile(r"is not allowed to use ResourceClaim")
_LEAD = re.compile(r"^((Failed to )?prepare dynamic resources: )+")
"""What every such event starts with."""

DOES_NOT_START = "has its devices but does not start"

NOT_REGISTERED = CauseKind(
    code="driver-not-registered",
    title="The node's kubelet does not know the driver",
    why="Devices are prepared by the driver's plugin on the node, which registers with the kubelet. ResourceSlices "
    "outlive a driver, so the scheduler can still place pods where nobody prepares their devices.",
    fix="Start or restart the driver's pod on the node. If the driver is gone for good, delete its ResourceSlices.",
    seen_as="FailedPrepareDynamicResources: … DRA driver … is not registered",
    normal="For seconds while the driver on the node restarts.",
    confirm=(
        confirm.Check("`FailedPrepareDynamicResources`: the driver is not registered.", confirm.EVENTS),
        confirm.DRIVER_POD,
    ),
    family=Family.NODE,
    look=Look.PODS_ON_NODE,
    state=DOES_NOT_START,
)
NO_ANSWER = CauseKind(
    code="driver-not-answering",
    title="The node's driver does not answer the kubelet",
    why=(
        "The driver once registered with the kubelet, but now nobody listens on its socket: its pod on the node is "
        "gone, restarting or hung. Its ResourceSlices stay, so the scheduler still places pods there."
    ),
    fix="Look at the driver's pod on the node, and start or restart it. If the driver is gone for good, delete its "
    "ResourceSlices.",
    seen_as="FailedPrepareDynamicResources: … code = Unavailable … connection refused",
    normal="For seconds while the driver on the node restarts.",
    confirm=(
        confirm.Check("`FailedPrepareDynamicResources`: nobody answers at the driver's socket.", confirm.EVENTS),
        confirm.DRIVER_POD,
    ),
    family=Family.NODE,
    look=Look.PODS_ON_NODE,
    state=DOES_NOT_START,
)
PREPARE_FAILED = CauseKind(
    code="prepare-failed",
    title="The driver could not prepare the devices on the node",
    why=(
        "The claim is allocated, so scheduling is done. The driver's plugin on the node returned an error, and the "
        "kubelet keeps trying."
    ),
    fix="Do what the driver's error says: it is about the claim's configuration, or about the device. More is in the "
    "log of the driver's pod on that node.",
    seen_as="FailedPrepareDynamicResources: NodePrepareResources failed for ResourceClaim …",
    normal="A single failure is normal, because the kubelet tries again. Repeated failures are not.",
    confirm=(
        confirm.Check("`FailedPrepareDynamicResources`, with the driver's words.", confirm.EVENTS),
        confirm.Check(
            "What the driver writes on that node.",
            "kubectl logs -n DRIVERNAMESPACE DRIVERPOD --all-containers --tail=50",
        ),
    ),
    family=Family.NODE,
    look=Look.PODS_ON_NODE,
    state=DOES_NOT_START,
)
NOT_RESERVED = CauseKind(
    code="claim-not-reserved",
    title="The claim is not reserved for the pod",
    why=(
        "A pod may use an allocated claim only if status.reservedFor lists it. The scheduler adds the pod; for a "
        "pod bound without the scheduler, kube-controller-manager does so once the claim is allocated."
    ),
    fix="Let the scheduler place the pod. If it did, find out who removed the reservation.",
    seen_as="FailedPrepareDynamicResources: pod … is not allowed to use ResourceClaim …",
    normal="Between allocation and reservation, for less than a second.",
    confirm=(
        confirm.Check("The pod is not listed.", confirm.CONSUMERS),
        confirm.Check("`FailedPrepareDynamicResources`: the pod is not allowed to use the claim.", confirm.EVENTS),
    ),
    family=Family.NODE,
    look=Look.PODS_ON_NODE,
    state=DOES_NOT_START,
)
DRIVER_GONE = CauseKind(
    code="slices-outlive-driver",
    title="The node is not ready, and its ResourceSlices are left over",
    why=(
        "ResourceSlices remain when a driver or its node dies, and the scheduler still places pods there. Nobody "
        "prepares the devices."
    ),
    fix="Bring the node and its driver back, or delete the ResourceSlices of the node; then delete the pod so that it"
    " is placed again.",
    seen_as="FailedPrepareDynamicResources on the node",
    normal="Never for long, because the scheduler keeps placing pods there.",
    confirm=(
        confirm.Check("The node is not ready.", "kubectl get node NODE"),
        confirm.Check("Its slices are still there.", "kubectl get resourceslices --field-selector spec.nodeName=NODE"),
    ),
    family=Family.NODE,
    look=Look.PODS_ON_NODE,
    state=DOES_NOT_START,
)


def _on_node(trial: Trial) -> Iterator[Finding]:
    pod, snapshot, claims = trial.question.pod, trial.scene.snapshot, trial.scene.allocated
    if pod is None or pod.phase not in ("", "Pending"):
        return
    bound = pod.condition("PodScheduled")
    since = bound.last_transition_time if bound is not None else ""
    for claim in claims:
        if not relation_of(claim, pod).listed:
            yield replace(_not_reserved(claim), under_way=under_way(CLAIM_CONTROLLER, since, snapshot))
    events = [
        event
        for event in snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
        if event.reason == "FailedPrepareDynamicResources"
        and (not event.uid or not pod.metadata.uid or event.uid == pod.metadata.uid)
    ]
    node = snapshot.nodes.get(pod.node_name)
    lost = node is None and bool(snapshot.nodes) and not snapshot.is_gap("Node")
    gone = lost or (node is not None and node.ready is False)
    facts = (*_node_state(node), *_drivers(pod.node_name, claims, snapshot))
    if events and not _NOT_ALLOWED.search(events[-1].message):
        yield _not_prepared(pod, events[-1], gone, facts)
    elif not events and gone:
        summary = say("node {node} is not ready, so nobody starts the pod there", node=pod.node_name)
        yield Finding(DRIVER_GONE, summary, facts)


def _not_reserved(claim: ResourceClaim) -> Finding:
    consumers = consumers_named(claim)
    listed = say("{consumers: else nobody}", consumers=consumers)
    return Finding(
        NOT_RESERVED,
        say("claim {claim} is allocated, but not reserved for this pod", claim=claim.key),
        (Evidence(Subject("ResourceClaim", named("ResourceClaim", claim)), "status.reservedFor", listed),),
        claim=claim.key,
    )


def _not_prepared(pod: Pod, event: Event, gone: bool, facts: Sequence[Evidence]) -> Finding:
    kind, text = PREPARE_FAILED, "on node {node} the driver could not prepare the devices: {message}"
    silent, unknown = _NO_ANSWER.search(event.message), _UNREGISTERED.search(event.message)
    if gone and (silent or unknown):
        kind, text = (
            DRIVER_GONE,
            "node {node} is gone or not ready, and its ResourceSlices are left over: {message}",
        )
    elif silent:
        kind, text = NO_ANSWER, "the driver on node {node} does not answer the kubelet: {message}"
    elif unknown:
        kind, text = NOT_REGISTERED, "the kubelet of node {node} does not know the driver: {message}"
    return Finding(
        kind,
        say(text, node=pod.node_name, message=_LEAD.sub("", event.message)),
        (Evidence(Subject("Event on Pod", named("Pod", pod)), event.reason, event.message), *facts),
    )


def _node_state(node: Node | None) -> Iterator[Evidence]:
    if node is not None and node.ready is False:
        yield Evidence(Subject("Node", ObjectName("Node", node.name)), "condition Ready", "not True")


def _drivers(node: str, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Iterator[Evidence]:
    """What the drivers of the allocated devices still publish for the node."""
    drivers = {
        result.device.driver for claim in claims for result in (claim.allocation.results if claim.allocation else ())
    }
    for driver in sorted(drivers):
        own = [entry for entry in snapshot.slices if entry.driver == driver and entry.scope.node_name == node]
        created = sorted(entry.creation_timestamp for entry in own if entry.creation_timestamp)
        text = "{count:ResourceSlice}, the newest created at {time}" if created else "{count:ResourceSlice}"
        value = say(text, count=len(own), time=created[-1] if created else "")
        yield Evidence(
            Subject("driver", driver), say("publishes for node {node}", node=ObjectName("Node", node)), value
        )


FINDERS = (Finder(When.PLACED, _on_node),)
