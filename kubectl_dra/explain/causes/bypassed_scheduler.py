"""The pod was bound to a node without going through the scheduler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.relation import relation_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look
from kubectl_dra.explain.phrase import ObjectName, Subject, named, say
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.scene.clock import SCHEDULER, under_way

BOUND_BY_HAND = CauseKind(code="bypassed-scheduler", family=Family.POD, look=Look.POD)


def _bound(question: Question, snapshot: Snapshot, _: Sequence[Finding]) -> Iterator[Finding]:
    pod = question.pod
    if pod is None or not pod.node_name or pod.finished:
        return
    unallocated = [
        entry.claim
        for entry in question.claims
        if entry.claim is not None and entry.claim.allocation is None and not entry.hypothetical
    ]
    scheduled = pod.condition("PodScheduled")
    if unallocated and not (scheduled and scheduled.status == "True" and scheduled.reason):
        text = "the pod was bound to node {node} without the scheduler, so nobody allocates {claims}"
        yield Finding(
            BOUND_BY_HAND,
            say(text, node=pod.node_name, claims=[claim.key for claim in unallocated]),
            (
                Evidence(Subject("Pod", named("Pod", pod)), "spec.nodeName", ObjectName("Node", pod.node_name)),
                Evidence(
                    Subject("ResourceClaim", named("ResourceClaim", unallocated[0])), "status.allocation", "not set"
                ),
            ),
            # Claims are read beside the pods: what was written just before the pod was bound may have been missed.
            under_way=under_way(SCHEDULER, scheduled.last_transition_time if scheduled else "", snapshot),
        )
    yield from _misplaced(pod, question.existing_claims, snapshot)


def _misplaced(pod: Pod, claims: Sequence[ResourceClaim], snapshot: Snapshot) -> Iterator[Finding]:
    """The pod's node is one where its allocated claim cannot be used."""
    node = snapshot.nodes.get(pod.node_name)
    if node is None or pod.phase not in ("", "Pending"):
        return
    for claim in claims:
        if claim.allocation is None or relation_of(claim, pod).listed or claim.allocation.usable_on(node):
            continue
        selector = claim.allocation.node_selector
        text = "the pod was bound to node {node} without the scheduler, but claim {claim} is allocated for {selector}"
        yield Finding(
            BOUND_BY_HAND,
            say(text, node=node.name, claim=claim.key, selector=str(selector)),
            (
                Evidence(Subject("Pod", named("Pod", pod)), "spec.nodeName", ObjectName("Node", node.name)),
                Evidence(
                    Subject("ResourceClaim", named("ResourceClaim", claim)),
                    "status.allocation.nodeSelector",
                    str(selector),
                ),
            ),
            claim=claim.key,
        )
        return


FINDERS = (Finder(When.QUESTION, _bound, 60),)
