"""The pod waits for others: its group, the group's claim, or the daemon of its ComputeDomain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from msgspec.structs import replace

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import PodGroup
from kubectl_dra.cluster.cluster import key_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import as_written
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look, NextStep
from kubectl_dra.explain.causes.on_node import DOES_NOT_START
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.clock import CLAIM_CONTROLLER, GROUP_MAKER, UnderWay, under_way
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, Words, by_key, named, pods_named, say, subject
from kubectl_dra.neighbours.operators import (
    DOMAIN,
    LABEL,
    DomainNode,
    MissingLink,
    domain_of,
    domain_state,
    gone_domain,
)
from kubectl_dra.scheduling.gang_scheduling import (
    GroupMissing,
    GroupNotInWorkload,
    Placed,
    PriorityDiffers,
    TooFewPeers,
    kept_out,
)
from kubectl_dra.scheduling.reasons import Reason

_WAITS_FOR_GROUP = re.compile(r"\bgang\b|\bpod group\b")
"""What kube-scheduler writes of such a pod."""

POD_GROUP = CauseKind(code="waiting-for-pod-group", family=Family.POD, look=Look.POD, passes=True)
GROUP_CLAIM = CauseKind(code="pod-group-claim-unknown", family=Family.POD, look=Look.POD)


def _waiting(analysis: Analysis) -> Iterator[Finding]:
    """The scheduler keeps the pod out of its queue because of its group, or reports an attempt with the group."""
    pod, outcome = analysis.question.waiting_pod, analysis.pod_outcome
    if pod is None or not (pod.pod_group or pod.spec.workload_ref):
        return
    said = _said(pod, analysis.snapshot)
    quoted = (Evidence("the scheduler", "says", said),) if said else ()
    rejection = kept_out(outcome.pod, outcome.state) if outcome is not None else None
    for reason in rejection.reasons if rejection is not None else ():
        if isinstance(reason, TooFewPeers):
            yield replace(_too_few(pod, reason, quoted), under_way=_being_made(pod, analysis.snapshot))
            return
        if isinstance(reason, PriorityDiffers):
            yield _other_priority(pod, reason, quoted)
            return
        if isinstance(reason, GroupMissing | GroupNotInWorkload) and not _was_tried(pod, reason):
            yield replace(_no_group(pod, reason, quoted), under_way=_being_made(pod, analysis.snapshot))
            return
    placed = analysis.together
    if isinstance(placed, Placed) and outcome is not None:
        # Where the pod fits nowhere by itself, the causes are those of any pod.
        if not placed.fits and (pod.key in placed.nodes or outcome.fits):
            yield _does_not_fit(pod, placed, quoted)
        elif placed.fits and pod.key in placed.refused and outcome.fits:
            text = (
                "the group {group} fits without it: {count:pod} {count:has|have} a node then, and none is left for "
                "this one"
            )
            summary = say(text, group=placed.gang.name, count=placed.count)
            refused = Evidence(subject("Pod", pod), "fits nowhere then", placed.refused[pod.key].message)
            yield Finding(POD_GROUP, summary, (_membership(pod), *_places(placed), refused, *quoted))
    elif said:
        yield _group_waits(pod, analysis.snapshot, quoted)


def _being_made(pod: Pod, snapshot: Snapshot) -> UnderWay | None:
    """A controller makes the pods of a group, and the group, one after the other."""
    return under_way(GROUP_MAKER, pod.metadata.creation_timestamp, snapshot)


def _does_not_fit(pod: Pod, placed: Placed, quoted: tuple[Evidence, ...]) -> Finding:
    """Too few pods of the gang fit together; the first that does not is named."""
    text = "only {count:,} of the {minimum:pod} that its group {group} wants fit together{where}"
    where: Words = ""
    if placed.domains:
        where = say(" in one domain of {key}", key=placed.gang.topology[0])
    elif placed.gang.topology:
        where = say(": no node has the label {key}", key=placed.gang.topology[0])
    summary = say(text, count=placed.count, minimum=placed.gang.minimum, group=placed.gang.name, where=where)
    first = next(iter(placed.refused), "")
    facts = [_membership(pod), *_places(placed)]
    if first:
        # Without a message it fits, but in another domain.
        refused = placed.refused[first].message or say("only outside of {domain}", domain=placed.domain)
        facts.append(Evidence(Subject("Pod", by_key("Pod", first)), "fits nowhere then", refused))
    evicting = placed.evicting
    if evicting is not None and evicting.preemption is not None:
        best = evicting.preemption.best[0]
        names = [named("Pod", victim) for victim in best.victims]
        victims = say("{victims:some} on {node}", victims=names, node=ObjectName("Node", best.node))
        facts.append(Evidence("the scheduler", say("may evict for {pod}", pod=named("Pod", evicting.pod)), victims))
    change = "Make room for {first}, or ask for less in the pods of the group." if first else POD_GROUP.fix
    return Finding(POD_GROUP, summary, (*facts, *quoted), Remedy(say(change, first=first)))


def _places(placed: Placed) -> Iterator[Evidence]:
    """Where the pods of a gang are or would be placed."""
    group = Subject("PodGroup", placed.gang.name)
    yield Evidence(group, "gang.minCount", say("{minimum:,}", minimum=placed.gang.minimum))
    if placed.domains:
        domains = say("{domains:some}", domains=list(placed.domains))
        yield Evidence(group, say("domains of {key} tried", key=placed.gang.topology[0]), domains)
    yield from placed_there(group, placed)


def placed_there(about: Subject, placed: Placed) -> Iterator[Evidence]:
    """The pods of a group that have a node, and where others fit together."""
    if placed.bound:
        yield Evidence(about, "pods that have a node", say("{pods:some}", pods=pods_named(placed.bound)))
    if placed.nodes:
        places = [
            say("{pod} on {node}", pod=by_key("Pod", key), node=ObjectName("Node", node))
            for key, node in placed.nodes.items()
        ]
        yield Evidence(about, "pods that fit together", say("{places:some}", places=places))


def _was_tried(pod: Pod, reason: Reason) -> bool:
    """Whether the scheduler knew the group when it last examined the pod; then the group merely was not read."""
    condition = pod.condition("PodScheduled")
    return bool(condition.message) and condition.message != reason.words


def _said(pod: Pod, snapshot: Snapshot) -> str:
    """The scheduler's last message about the pod's group."""
    condition = pod.condition("PodScheduled")
    said = [condition.message] if condition.type else []
    said += [event.message for event in snapshot.events_about("Pod", *key_of(pod))]
    return next((text for text in reversed(said) if _WAITS_FOR_GROUP.search(text)), "")


def _too_few(pod: Pod, reason: TooFewPeers, quoted: tuple[Evidence, ...]) -> Finding:
    count = len(reason.peers)
    text = (
        "the pod waits for its group {group}: {minimum:pod} {minimum:is|are} scheduled together, {count:,} "
        "{count:exists|exist}"
    )
    summary = say(text, group=reason.group, minimum=reason.minimum, count=count)
    group = Subject("Workload" if pod.spec.workload_ref else "PodGroup", reason.group)
    facts = (
        _membership(pod),
        Evidence(group, "gang.minCount", say("{minimum:,}", minimum=reason.minimum)),
        Evidence(group, "pods that have not ended", say("{peers:some}", peers=pods_named(reason.peers))),
    )
    missing = reason.minimum - count
    remedy = Remedy(say("Create {missing:more pod} of the group, or lower its minCount.", missing=missing))
    return Finding(POD_GROUP, summary, (*facts, *quoted), remedy)


def _other_priority(pod: Pod, reason: PriorityDiffers, quoted: tuple[Evidence, ...]) -> Finding:
    text = "the scheduler tries no pod of its group {group}: {pod} has priority {priority}, the group {wanted}"
    name = by_key("Pod", reason.pod)
    words = {"group": reason.group, "priority": reason.priority, "wanted": reason.wanted}
    facts = (
        _membership(pod),
        Evidence(Subject("PodGroup", reason.group), "spec.priority", reason.wanted),
        Evidence(Subject("Pod", name), "spec.priority", reason.priority),
    )
    change = "Create the group and its pods anew with one priorityClassName: since 1.37 all have the same priority."
    return Finding(POD_GROUP, say(text, pod=Subject("pod", name), **words), (*facts, *quoted), Remedy(change))


def _no_group(pod: Pod, reason: GroupMissing | GroupNotInWorkload, quoted: tuple[Evidence, ...]) -> Finding:
    if isinstance(reason, GroupMissing):
        missing = Subject(reason.kind, reason.name)
        summary = say("the pod waits for {missing}, which does not exist", missing=missing)
        remedy = Remedy(say("Create {missing}, or correct the name in the pod.", missing=missing))
    else:
        values = {"group": reason.group, "workload": reason.workload}
        summary = say("the pod waits for group {group}, which Workload {workload} does not have", **values)
        remedy = Remedy(say("Add group {group} to Workload {workload}, or correct the name in the pod.", **values))
    return Finding(POD_GROUP, summary, (_membership(pod), *quoted), remedy)


def _group_waits(pod: Pod, snapshot: Snapshot, quoted: tuple[Evidence, ...]) -> Finding:
    """The cause, from the scheduler's own text alone."""
    members = [
        other
        for other in snapshot.pods.values()
        if other.pod_group == pod.pod_group and other.metadata.namespace == pod.metadata.namespace
    ]
    placed = sum(1 for other in members if other.node_name)
    text = "the pod waits for its group {group}: {members:member} known, {placed} of them placed"
    summary = say(text, group=pod.pod_group, members=len(members), placed=placed)
    return Finding(POD_GROUP, summary, (_membership(pod), *quoted))


def _membership(pod: Pod) -> Evidence:
    """The field in which the pod names its group."""
    if reference := pod.spec.workload_ref:
        value = say("{workload}/{group}", workload=reference.name, group=reference.pod_group)
        return Evidence(subject("Pod", pod), "spec.workloadRef", value)
    return Evidence(subject("Pod", pod), "spec.schedulingGroup.podGroupName", pod.pod_group)


def _named_by_group(pod: Pod, snapshot: Snapshot) -> Words:
    """The claims named in the status of the pod's group."""
    if snapshot.is_gap("PodGroup", pod.metadata.namespace):
        return "not seen: no PodGroups were read"
    group: PodGroup | None = snapshot.others.get("PodGroup", {}).get((pod.metadata.namespace, pod.pod_group))
    if group is None:
        return "there is no such PodGroup"
    entries = [f"{status.name}: {status.resource_claim_name}" for status in group.status.resource_claim_statuses]
    return say("{entries: else none}", entries=entries)


def claim_unknown(pod: Pod, name: str, snapshot: Snapshot) -> Finding:
    """A claim entry for which neither the pod nor (as far as visible) its group has a claim."""
    owned = [
        claim.key
        for claim in snapshot.claims.values()
        for owner in claim.metadata.owners
        if owner.kind == "PodGroup" and claim.metadata.namespace == pod.metadata.namespace
    ]
    look = as_written("podgroup", pod.pod_group, pod.metadata.namespace)
    own, field = subject("Pod", pod), "status.resourceClaimStatuses"
    text = 'no claim is known for entry "{entry}": the pod is in group {group}, whose status names it'
    facts = (
        Evidence(own, "spec.schedulingGroup.podGroupName", pod.pod_group),
        Evidence(own, field, say("no entry {entry}", entry=name)),
        Evidence(Subject("PodGroup", pod.pod_group), field, _named_by_group(pod, snapshot)),
        Evidence("ResourceClaims", "owned by PodGroups here", say("{owned: else none}", owned=sorted(owned))),
    )
    remedy = Remedy("Look at the status of the group.", commands=(look,))
    waits = under_way(CLAIM_CONTROLLER, pod.metadata.creation_timestamp, snapshot)
    return Finding(GROUP_CLAIM, say(text, entry=name, group=pod.pod_group), facts, remedy, under_way=waits)


# The pod waits for its ComputeDomain: a link is missing between the pod and the daemon on its node.

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


def _waits(analysis: Analysis, *, labelled: bool) -> Iterator[Finding]:
    """``labelled``: the node is, and its daemon is what the claim waits for; else the driver's plugin has not labelled
    it, and what the kubelet says of that plugin comes first.
    """
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
    nodes = [node for node in state.nodes if node.pods]
    ready = sum(node.missing is MissingLink.NONE for node in nodes)
    words = say("on {ready:,} of {count:node} with its pods", ready=ready, count=len(nodes))
    name = ObjectName(DOMAIN, domain.metadata.name, domain.metadata.namespace)
    yield Finding(
        NOT_READY,
        say(text, domain=name, lack=lack(own, domain.metadata.uid)),
        (Evidence(Subject("ComputeDomain", name), "daemons ready", words),),
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


FINDERS = (
    Finder(When.SCENE, _waiting, 5),
    Finder(When.PLACED, partial(_waits, labelled=True), -11),
    Finder(When.PLACED, partial(_waits, labelled=False), 5),
)
