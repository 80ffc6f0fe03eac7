"""What happened to a pod on its node: it was refused, runs without its devices, or lost its claim or the node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import timedelta
from typing import Final

from kubectl_dra.allocation.extended_resources import IMPLICIT_PREFIX, amount_of, class_by_resource, resources_of
from kubectl_dra.api.behaviour import IMPLICIT_PASSED_OVER
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.meta import OUT_OF
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import MAKES_AGAIN, Pod, owner_of
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CommandLine, deleting, kubectl
from kubectl_dra.drivers.concerns import not_published
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.registry import Finder, QuestionContext, When
from kubectl_dra.explain.clock import SCHEDULER, under_way
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Subject, by_name, named, nodes_named, say, subject
from kubectl_dra.explain.question.resolve import ClaimEntry, Question, Unresolved

DOES_NOT_START: Final = "has its devices but does not start"

# The kubelet refused the pod.

REJECTED = CauseKind(code="pod-rejected-by-kubelet", family=Family.NODE, look=Look.ONE_NODE, ends_pod=True)
_REASONS: Final = frozenset(
    (
        *("UnexpectedAdmissionError", "TopologyAffinityError", "NodeAffinity", "NodeName", "NodePorts"),
        *(
            "NodeUnschedulable",
            "TaintToleration",
            "InvalidNodeInfo",
            "PodOSNotSupported",
            "PodOSSelectorNodeLabelDoesNotMatch",
        ),
        *("PodFeatureUnsupported", "PodLevelResourcesNotAdmittedReason", "InPlacePodVerticalScalingNotAdmittedReason"),
        *("SysctlForbidden", "AppArmor", "NodeShutdown", "SupplementalGroupsPolicyNotSupported"),
    )
)
"""Reasons of pods that the kubelet did not take, besides ``OutOf`` and a resource (pkg/kubelet/lifecycle)."""


def rejected(pod: Pod) -> bool:
    """Whether the kubelet of the pod's node refused it, so that it never ran."""
    reason = pod.status.reason
    return pod.phase == "Failed" and (reason.startswith(OUT_OF) or reason in _REASONS)


def rejection(pod: Pod) -> Finding:
    """The kubelet's refusal, in its own words, and what they mean."""
    from kubectl_dra.data.messages import understood

    owner, own = owner_of(pod), subject("Pod", pod)
    again = "The pod never runs again: delete it, and create it again once the node has what it asks for{unbound}."
    if owner is not None and owner.kind in MAKES_AGAIN:
        again = "Nothing needs to be done: {owner} creates the next pod. If that is refused too, look at the reason."
    text, said = again, "{pod} was refused by the kubelet of node {node}: {reason}"
    words: dict[str, object] = {"node": ObjectName("Node", pod.node_name), "reason": pod.status.reason}
    words |= {"said": pod.status.message, "owner": str(owner)}
    by_hand = not (pod.extended_resource_claim or pod.status.reason == "UnexpectedAdmissionError")
    words["unbound"] = ", or without spec.nodeName so that the scheduler finds a node" if by_hand else ""
    facts = [Evidence(own, "status.reason", pod.status.reason), Evidence(own, "status.phase", pod.phase)]
    known = understood(f"{pod.status.reason} {pod.status.message}")
    # Whether it is a defect depends on the kubelet's release and on who serves the resource: see known_defects.py.
    if known is not None and not known.entry.known:
        facts.insert(0, Evidence("the kubelet", "means", known.means))
        text = "{do} {again}"
        words |= {"do": known.do, "again": say(again, **words)}
    summary = say(f"{said}, {{said}}" if pod.status.message else said, pod="the pod", **words)
    return Finding(REJECTED, summary, tuple(facts), Remedy(say(text, **words)))


# The pod has started, and its claim is gone or no longer allocated.

LOST = CauseKind(
    code="claim-lost-while-running", family=Family.NODE, look=Look.PODS_ON_NODE, state="runs, but has lost its claim"
)
_ID: Final = re.compile(r"=([^=]+)$")
"""The device's part of a CDI name: drivers end it with the name of the device, as far as they are known."""


def started(pod: Pod) -> bool:
    """Whether the pod's containers have been started on its node, so that its devices were prepared once."""
    return bool(pod.node_name) and pod.phase == "Running"


def devices_given(pod: Pod) -> tuple[str, ...]:
    """What the kubelet says the containers were given, as the driver calls it."""
    return tuple(
        dict.fromkeys(
            resource.resource_id
            for status in (*pod.status.init_container_statuses, *pod.status.container_statuses)
            for device_status in status.allocated_resources_status
            if device_status.name.startswith("claim:")
            for resource in device_status.resources
        )
    )


def names_given(pod: Pod) -> frozenset[str]:
    """The names of these devices."""
    return frozenset(match[1] for identifier in devices_given(pod) if (match := _ID.search(identifier)))


def lost_claims(question: Question, *, unread: bool) -> list[ClaimEntry]:
    """The entries of a pod that was started whose claims are gone or not allocated any more.

    ``unread``: not all claims of its namespace were read.
    """
    pod = question.pod
    if pod is None or not started(pod) or pod.finished:
        return []
    # A claim that nobody read may be there.
    gone = () if unread else (Unresolved.CLAIM_MISSING, Unresolved.MADE_CLAIM_GONE)
    return [
        claim_entry
        for claim_entry in question.claims
        if claim_entry.unresolved in gone
        or (claim_entry.claim is not None and claim_entry.claim.allocation is None and not claim_entry.hypothetical)
    ]


def _lost(context: QuestionContext) -> Iterator[Finding]:
    pod = context.question.pod
    if pod is None:
        return
    # Claims are read beside the pods: what was written just before the pod was bound may have been missed.
    normal = under_way(SCHEDULER, pod.condition("PodScheduled").last_transition_time, context.snapshot)
    unread = context.snapshot.is_gap("ResourceClaim", context.question.namespace)
    for lost in lost_claims(context.question, unread=unread):
        claim = f"{context.question.namespace}/{lost.name or (lost.claim.metadata.name if lost.claim else '')}"
        how = "is no longer allocated" if lost.claim is not None else "does not exist any more"
        given = devices_given(pod)
        own = subject("Pod", pod)
        facts = [Evidence(own, "status.phase", pod.phase)]
        if given:
            facts.append(Evidence(own, "devices that its containers were given", say("{given:some}", given=given)))
        facts.extend(_next_holders(pod, context.snapshot))
        text = (
            "the pod was started on node {node} with the devices of claim {claim}, which {how}: the scheduler "
            "considers them free and may give them to the next pod"
        )
        change = "Delete the pod, so that it is placed again with its claim; until then two pods may use one device."
        yield Finding(
            LOST,
            say(text, node=ObjectName("Node", pod.node_name), claim=claim, how=how),
            tuple(facts),
            Remedy(change),
            claim=claim if lost.claim is not None else "",
            under_way=normal,
        )


def _next_holders(pod: Pod, snapshot: Snapshot) -> Iterator[Evidence]:
    """Claims for which a device of that name on the same node is allocated by now."""
    names = names_given(pod)
    for claim in snapshot.claims.values():
        for result in claim.results:
            if result.device.device in names and any(
                consumer.resource == "pods"
                and (other := snapshot.pods.get((claim.metadata.namespace, consumer.name))) is not None
                and other.node_name == pod.node_name
                for consumer in claim.reserved_for
            ):
                users = say("claim {claim}", claim=named("ResourceClaim", claim))
                yield Evidence(Subject("device", result.device), "is allocated to", users)


# The node of a pod that runs is lost.

NODE_LOST = CauseKind(
    code="node-lost", family=Family.NODE, look=Look.ONE_NODE, state="is reported as running, but its node is lost"
)


def _node_lost(analysis: Analysis) -> Iterator[Finding]:
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None or pod.finished or pod.metadata.deletion_timestamp or pod.phase in ("", "Pending"):
        return
    if not analysis.allocated:
        return
    since = unready_since(pod.node_name, snapshot)
    if since is None:
        return
    node = ObjectName("Node", pod.node_name)
    text = "node {node} is not ready, so nobody knows whether it runs"
    if pod.node_name not in snapshot.nodes:
        text = "there is no node {node} any more"
    elif since:
        text = "node {node} has not been ready since {since}, so nobody knows whether it runs"
    yield Finding(
        NODE_LOST,
        say(text, node=node, since=since),
        tuple(node_away(pod.node_name, snapshot)),
        end_by_force(pod, snapshot),
        next=None if pod.node_name in snapshot.nodes else NextStep(Look.NODES),
    )


def node_away(name: str, snapshot: Snapshot) -> Iterator[Evidence]:
    """Evidence that a node does not answer, or is gone."""
    node = snapshot.nodes.get(name)
    if node is not None and node.ready is False:
        yield from node_troubles(node)
    elif snapshot.lacks_node(name):
        yield Evidence("the cluster", "has no node of this name any more", name)


def end_by_force(pod: Pod, snapshot: Snapshot) -> Remedy:
    """What to see of a node that does not answer, or is gone, before its pod is deleted without its word.

    The pod's containers may run there all the same.
    """
    node = ObjectName("Node", pod.node_name)
    text = (
        "Bring node {node} and its kubelet back: only they know whether pod {pod} still runs. Delete the pod by force "
        "only if you know that the machine is off: its devices are held until then."
    )
    look = kubectl("describe", kind="node", name=pod.node_name)
    if pod.node_name not in snapshot.nodes:
        text = (
            "See whether the machine of node {node} is off: a Node can be deleted while its containers run on. If it "
            "is, delete the pod by force, or wait: kube-controller-manager does so after a while."
        )
        look = kubectl("get", "nodes")
    return Remedy(say(text, node=node, pod=pod.key), commands=(look, by_force(pod)))


def by_force(pod: Pod) -> CommandLine:
    """The command that deletes a pod without the word of its node."""
    return deleting("pod", pod.metadata.name, pod.metadata.namespace, "--force", "--grace-period=0")


def unready_since(name: str, snapshot: Snapshot) -> str | None:
    """Time since when a node is not ready, empty if it does not say or is gone; None if it is ready or unknown."""
    node = snapshot.nodes.get(name)
    if node is None:
        return "" if snapshot.lacks_node(name) else None
    if node.ready is not False:
        return None
    return node.ready_since


def may_be_lost(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether a pod that was started may be on a lost node, which was not read."""
    return started(pod) and pod.node_name not in snapshot.nodes and snapshot.is_gap("Node")


def node_troubles(node: Node | None) -> Iterator[Evidence]:
    """What a node says is wrong with it, in its kubelet's words."""
    for condition in node.troubles if node is not None else ():
        said = ", ".join(filter(None, (condition.reason, condition.message)))
        text = "{status}{since}{said}"
        since = say(" since {since}", since=condition.last_transition_time) if condition.last_transition_time else ""
        value = say(text, status=condition.status, since=since, said=say(": {said}", said=said) if said else "")
        own = by_name("Node", node.name if node is not None else "")
        yield Evidence(own, say("condition {kind}", kind=condition.type), value)


# The driver behind devices, as the API shows it.


def drivers_of(claims: Sequence[ResourceClaim]) -> tuple[str, ...]:
    """The drivers of the allocated devices."""
    return tuple(sorted({device.driver for claim in claims for device in claim.devices}))


def withdrawn(claims: Sequence[ResourceClaim], snapshot: Snapshot) -> tuple[DeviceID, ...]:
    """Allocated devices that their pool, which is published, does not have any more."""
    return tuple(result.device for _, result, slices in not_published(claims, snapshot) if slices)


ANSWER: Final = timedelta(seconds=45)
"""Time-out of the kubelet's call of a driver, after which it reports the failure and calls again."""


def containers_ended(pod: Pod) -> str:
    """Time when the last container of a pod ended; empty while one may run, or if it is unknown."""
    ended = [status.state.terminated for status in pod.status.container_statuses]
    if not ended or any(terminated is None for terminated in ended):
        return ""
    return max(terminated.finished_at for terminated in ended if terminated is not None)


# A pod whose containers run, though its devices are on another node, or nobody allocated any: it was bound by hand.

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
    here, there = nodes_named((pod.node_name, home))
    words = {"node": here, "device": device, "home": there}
    facts = (
        Evidence(subject("Pod", pod), "spec.nodeName", here),
        Evidence(Subject("device", device), "is published for", there),
    )
    yield Finding(WITHOUT, say(text, **words), facts)


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
    facts = (
        Evidence(subject("Pod", pod), "status.extendedResourceClaimStatus", "not set"),
        Evidence(by_name("Node", pod.node_name), say("status.allocatable of {resources:some}", **words), "none"),
    )
    yield Finding(WITHOUT, say(text, **words), facts, remedy)


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
    Finder(When.QUESTION, _lost, -10),
    Finder(When.PLACED, _node_lost, -5),
    Finder(When.PLACED, _elsewhere, -6),
    Finder(When.SCENE, _never_allocated, 10),
)
