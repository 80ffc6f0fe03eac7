"""Pods and claims that the scheduler has nothing to decide about: other schedulers, groups, no consumer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Event, Snapshot
from kubectl_dra.explain.causes import pod as causes
from kubectl_dra.explain.diagnosis import Cause, Evidence
from kubectl_dra.wording import amount

DEFAULT_SCHEDULER = "default-scheduler"
_WAITS_FOR_GROUP = re.compile(r"\bgang\b|\bpod group\b")


def ignored(pod: Pod, snapshot: Snapshot) -> Iterator[Cause]:
    """The cause of a pod that names another scheduler, which has left no trace on it."""
    name = pod.scheduler_name
    if name == DEFAULT_SCHEDULER or pod.condition("PodScheduled") is not None:
        return
    if any(event.reason == "FailedScheduling" for event in _events(pod, snapshot)):
        return
    yield Cause(
        causes.OTHER_SCHEDULER,
        f"the pod asks for scheduler {name}, and no scheduler has looked at it yet",
        (
            Evidence(f"Pod {pod.key}", "spec.schedulerName", name),
            Evidence(f"Pod {pod.key}", "status.conditions", "no PodScheduled"),
        ),
        f"Check that {name} runs and supports ResourceClaims, or name {DEFAULT_SCHEDULER} in a new pod.",
    )


def waiting_for_group(pod: Pod, snapshot: Snapshot) -> Iterator[Cause]:
    """The cause of a pod that the scheduler holds back for the other members of its group."""
    if not pod.pod_group:
        return
    condition = pod.condition("PodScheduled")
    said = [condition.message] if condition is not None else []
    said += [event.message for event in _events(pod, snapshot)]
    message = next((text for text in reversed(said) if _WAITS_FOR_GROUP.search(text)), "")
    if not message:
        return
    members = [
        other
        for other in snapshot.pods.values()
        if other.pod_group == pod.pod_group and other.metadata.namespace == pod.metadata.namespace
    ]
    placed = sum(1 for other in members if other.node_name)
    yield Cause(
        causes.POD_GROUP,
        f"the pod waits for its group {pod.pod_group}: {amount(len(members), 'member')} known, {placed} of them placed",
        (
            Evidence(f"Pod {pod.key}", "spec.schedulingGroup.podGroupName", pod.pod_group),
            Evidence("the scheduler", "says", message),
        ),
        causes.POD_GROUP.fix,
    )


def of_group(pod: Pod, entry: str, snapshot: Snapshot) -> Cause:
    """The cause of a claim entry that neither the pod nor, as far as it can be seen, its group has a claim for."""
    kind = causes.GROUP_CLAIM
    owned = [
        claim.key
        for claim in snapshot.claims.values()
        for owner in claim.metadata.owners
        if owner.kind == "PodGroup" and claim.metadata.namespace == pod.metadata.namespace
    ]
    return Cause(
        kind,
        f'no claim is known for entry "{entry}": the pod is in group {pod.pod_group}, whose status names it',
        (
            Evidence(f"Pod {pod.key}", "spec.schedulingGroup.podGroupName", pod.pod_group),
            Evidence(f"Pod {pod.key}", "status.resourceClaimStatuses", f"no entry {entry}"),
            Evidence(f"PodGroup {pod.pod_group}", "status.resourceClaimStatuses", "not seen: PodGroups are not read"),
            Evidence("ResourceClaims", "owned by PodGroups here", ", ".join(sorted(owned)) or "none"),
        ),
        f"kubectl get podgroup -n {pod.metadata.namespace} {pod.pod_group} -o yaml",
    )


def consumers(claim: ResourceClaim, snapshot: Snapshot) -> list[Pod]:
    """The pods that refer to a claim: by name, or because it was made for them."""
    name = claim.metadata.name
    return [
        pod
        for (namespace, _), pod in snapshot.pods.items()
        if namespace == claim.metadata.namespace
        and (
            any(entry.claim_name == name for entry in pod.claims)
            or name in pod.claim_statuses.values()
            or name == pod.extended_resource_claim
        )
    ]


def nobody(claim: ResourceClaim) -> Cause:
    """The cause of a claim that fits, but that no pod refers to."""
    return Cause(
        causes.NOBODY_CONSUMES,
        f"no pod in namespace {claim.metadata.namespace} uses claim {claim.metadata.name}",
        (Evidence(f"Pods in {claim.metadata.namespace}", "spec.resourceClaims", f"none names {claim.metadata.name}"),),
        causes.NOBODY_CONSUMES.fix,
        claim=claim.key,
    )


def _events(pod: Pod, snapshot: Snapshot) -> tuple[Event, ...]:
    return snapshot.events_about("Pod", pod.metadata.namespace, pod.metadata.name)
