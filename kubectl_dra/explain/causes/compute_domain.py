"""The pod waits for its ComputeDomain: a link is missing between the pod and the daemon on its node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_dra.api.pods import Pod
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.pod_does_not_start import DOES_NOT_START
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, Words, named, say
from kubectl_dra.neighbours.operators import (
    DOMAIN,
    LABEL,
    DomainNode,
    DomainState,
    MissingLink,
    domain_of,
    domain_state,
    gone_domain,
)

NOT_READY = CauseKind(code="compute-domain-not-ready", family=Family.NODE, look=Look.PODS_ON_NODE, state=DOES_NOT_START)
_LACKS: Final = {
    MissingLink.LABEL: "node {node} has no label {label}={uid}: the driver's plugin has not picked up the claim",
    MissingLink.OTHER_DOMAIN: "node {node} is labelled for another domain, and a node serves one at a time",
    MissingLink.DAEMON: "DaemonSet computedomain-daemon-{uid} has no pod on node {node}{taints}",
    MissingLink.DAEMON_RUNS: "daemon {daemon} on node {node} does not run{why}",
    MissingLink.DAEMON_READY: "daemon {daemon} on node {node} runs, but does not report that it is ready",
    MissingLink.UNSEEN: "whether node {node} has a daemon could not be read",
}
_STEPS: Final = {
    MissingLink.LABEL: "Look at driver compute-domain.nvidia.com on the node, and at its log about the claim.",
    MissingLink.OTHER_DOMAIN: "End the pods of the other domain on that node, or place these pods on other nodes.",
    MissingLink.DAEMON: (
        "See what keeps the DaemonSet's pod from the node (a taint that it does not tolerate, an image, a quota): "
        "kubectl describe it in the driver's namespace."
    ),
    MissingLink.DAEMON_RUNS: "Repair what keeps the daemon's pod: its image, its node's NVIDIA driver, its own claim.",
    MissingLink.DAEMON_READY: (
        "Read the daemon's log: IMEX waits for its peers (their network, the ports, the same driver release) or for "
        "the NVLink fabric of the node."
    ),
    MissingLink.UNSEEN: "Read pods of all namespaces and nodes.",
}


_ANEW: Final = (
    "Create the ComputeDomain again, and then the pod: its claim is for the old one. Delete the pod by hand if nothing "
    "else replaces it."
)


def lack(node: DomainNode, uid: str) -> Words:
    """What the node lacks first, in a sentence."""
    daemon = node.daemon
    return say(
        _LACKS[node.missing],
        node=ObjectName("Node", node.name),
        label=LABEL,
        uid=uid,
        daemon=named("Pod", daemon) if daemon is not None else "",
        why=say(": {said}", said=said) if daemon is not None and (said := words_of(daemon)) else "",
        taints=say(" (taints there: {taints})", taints=list(node.taints)) if node.taints else "",
    )


def step(node: DomainNode) -> str:
    """What to do about it."""
    return _STEPS[node.missing]


def words_of(pod: Pod) -> str:
    """Why a pod does not run, in the words of its containers or its condition."""
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if status.state.waiting is not None:
            return ": ".join(filter(None, (status.state.waiting.reason, status.state.waiting.message)))
    scheduled = pod.condition("PodScheduled")
    if scheduled.status == "False":
        return scheduled.message or scheduled.reason
    return "" if pod.phase == "Running" else pod.phase


def next_step(node: DomainNode) -> NextStep | None:
    """What to look at next."""
    if node.daemon is None:
        return NextStep(Look.ONE_NODE, node.name)
    meta = node.daemon.metadata
    if node.missing is MissingLink.DAEMON_READY:
        return NextStep(Look.LOG, meta.name, meta.namespace)
    return NextStep(Look.POD, meta.name, meta.namespace)


def _lacks_daemon(analysis: Analysis) -> Iterator[Finding]:
    """The node is labelled, and the daemon is what the claim waits for."""
    yield from _waits(analysis, labelled=True)


def _lacks_label(analysis: Analysis) -> Iterator[Finding]:
    """The driver's plugin has not labelled the node: what the kubelet says of that plugin comes first."""
    yield from _waits(analysis, labelled=False)


def _waits(analysis: Analysis, *, labelled: bool) -> Iterator[Finding]:
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None or not pod.node_name or pod.phase not in ("", "Pending"):
        return
    if pod.condition("PodReadyToStartContainers").status == "True":
        return
    domain = domain_of(pod, snapshot)
    if domain is None:
        gone = "" if labelled else gone_domain(pod, snapshot)
        if gone:
            yield Finding(NOT_READY, _gone(gone), (), Remedy(_ANEW))
        return
    state = domain_state(domain, snapshot)
    own = next((node for node in state.nodes if node.name == pod.node_name), None)
    if own is None or own.missing in (MissingLink.NONE, MissingLink.UNSEEN):
        return
    if labelled == (own.missing is MissingLink.LABEL):
        return
    text = "ComputeDomain {domain} is not ready on its node: {lack}"
    name = ObjectName(DOMAIN, domain.metadata.name, domain.metadata.namespace)
    yield Finding(
        NOT_READY,
        say(text, domain=name, lack=lack(own, domain.metadata.uid)),
        tuple(_facts(state, name)),
        Remedy(step(own)),
        next=next_step(own),
    )


def _gone(uid: str) -> Phrase:
    text = (
        "the ComputeDomain whose channel its claim is for (UID {uid}) no longer exists, so that no daemon ever starts"
    )
    return say(text, uid=uid)


def domain_notes(analysis: Analysis) -> Iterator[Phrase]:
    """Note that a pod without a node, or one that is ending, is for a domain that is gone."""
    pod, snapshot = analysis.pod, analysis.snapshot
    if pod is None or pod.finished or (pod.node_name and not pod.metadata.deletion_timestamp):
        return
    if gone := gone_domain(pod, snapshot):
        text = "{gone}, and the driver gives up claims for it with an error" if pod.node_name else "{gone}"
        yield say(text, gone=_gone(gone))


def _facts(state: DomainState, name: ObjectName) -> Iterator[Evidence]:
    nodes = [node for node in state.nodes if node.pods]
    ready = sum(node.missing is MissingLink.NONE for node in nodes)
    words = say("on {ready:,} of {count:node} with its pods", ready=ready, count=len(nodes))
    yield Evidence(Subject("ComputeDomain", name), "daemons ready", words)


FINDERS = (Finder(When.PLACED, _lacks_daemon, -10), Finder(When.PLACED, _lacks_label, 5))
