"""The pod belongs to a group: it waits for the others, or for the group's claim."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Look, Remedy
from kubectl_dra.explain.phrase import Subject, say
from kubectl_dra.explain.question.resolve import Question

_WAITS_FOR_GROUP = re.compile(r"\bgang\b|\bpod group\b")
"""What kube-scheduler writes of such a pod."""

POD_GROUP = CauseKind(
    code="waiting-for-pod-group",
    title="The pod waits for the other pods of its group",
    why="Pods of one group are scheduled together: until enough members exist and all of them fit, none is scheduled.",
    fix="Create the missing members, and explain those that are pending: one that does not fit holds back all.",
    seen_as="waiting for minCount pods from a gang …, or pod group is unschedulable",
    family=Family.POD,
    look=Look.POD,
    passes=True,
)
GROUP_CLAIM = CauseKind(
    code="pod-group-claim-unknown",
    title="The claim belongs to the pod group, which has not named it",
    why="Pods of one group can share a claim made for the group. Its name stands in the status of the PodGroup, and "
    "the claim is owned by the PodGroup: until both are so, the scheduler leaves the pod out of its queue. "
    "PodGroups themselves are not read here.",
    fix="Look at the status of the PodGroup, and check that the feature gates DRAWorkloadResourceClaims and "
    "GenericWorkload are on.",
    seen_as="nothing; the scheduler's log says: not created yet, or neither Pod nor PodGroup … is the owner",
    family=Family.POD,
    look=Look.POD,
)


def _waiting(question: Question, snapshot: Snapshot, _: Sequence[Finding]) -> Iterator[Finding]:
    """The scheduler holds the pod back for the other members of its group."""
    pod = question.pod
    if pod is None or not pod.pod_group or pod.node_name or pod.finished:
        return
    condition = pod.condition("PodScheduled")
    said = [condition.message] if condition is not None else []
    said += [event.message for event in snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)]
    message = next((text for text in reversed(said) if _WAITS_FOR_GROUP.search(text)), "")
    if not message:
        return
    members = [
        other
        for other in snapshot.pods.values()
        if other.pod_group == pod.pod_group and other.metadata.namespace == pod.metadata.namespace
    ]
    yield Finding(
        POD_GROUP,
        say(
            "the pod waits for its group {group}: {members:member} known, {placed} of them placed",
            group=pod.pod_group,
            members=len(members),
            placed=sum(1 for other in members if other.node_name),
        ),
        (
            Evidence(Subject("Pod", pod.key), "spec.schedulingGroup.podGroupName", pod.pod_group),
            Evidence("the scheduler", "says", message),
        ),
    )


def claim_unknown(pod: Pod, entry: str, snapshot: Snapshot) -> Finding:
    """A claim entry that neither the pod nor, as far as it can be seen, its group has a claim for."""
    owned = [
        claim.key
        for claim in snapshot.claims.values()
        for owner in claim.metadata.owners
        if owner.kind == "PodGroup" and claim.metadata.namespace == pod.metadata.namespace
    ]
    return Finding(
        GROUP_CLAIM,
        say(
            'no claim is known for entry "{entry}": the pod is in group {group}, whose status names it',
            entry=entry,
            group=pod.pod_group,
        ),
        (
            Evidence(Subject("Pod", pod.key), "spec.schedulingGroup.podGroupName", pod.pod_group),
            Evidence(Subject("Pod", pod.key), "status.resourceClaimStatuses", say("no entry {entry}", entry=entry)),
            Evidence(
                Subject("PodGroup", pod.pod_group),
                "status.resourceClaimStatuses",
                "not seen: PodGroups are not read",
            ),
            Evidence("ResourceClaims", "owned by PodGroups here", say("{owned: else none}", owned=sorted(owned))),
        ),
        Remedy(
            say(
                "kubectl get podgroup -n {namespace} {group} -o yaml",
                namespace=pod.metadata.namespace,
                group=pod.pod_group,
            )
        ),
    )


KINDS = (POD_GROUP, GROUP_CLAIM)
FINDERS = (Finder(When.QUESTION, _waiting, 30),)
