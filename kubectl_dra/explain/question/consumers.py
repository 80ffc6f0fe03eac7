"""The pods that use a claim."""

from __future__ import annotations

from typing import Final

from kubectl_dra.api.claims import Consumer, ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.phrase import ObjectName, Phrase, say

DEFAULT_SCHEDULER = "default-scheduler"


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


_KINDS: Final = {"pods": "Pod", "podgroups": "PodGroup"}


def consumers_named(claim: ResourceClaim) -> list[Phrase]:
    """The pods for which a claim is reserved, according to its status."""
    return [
        say("{resource} {name:bare}", resource=entry.resource, name=_named(claim, entry))
        for entry in claim.reserved_for
    ]


def _named(claim: ResourceClaim, entry: Consumer) -> ObjectName | str:
    kind = _KINDS.get(entry.resource)
    return ObjectName(kind, entry.name, claim.metadata.namespace) if kind else entry.name


def reserved(pod: Pod, claim: ResourceClaim) -> bool:
    """Whether the claim lists the pod, or its group, as a consumer."""
    for entry in claim.reserved_for:
        if entry.resource == "pods" and (
            entry.uid == pod.metadata.uid if entry.uid and pod.metadata.uid else entry.name == pod.metadata.name
        ):
            return True
        if entry.resource == "podgroups" and entry.name == pod.pod_group:
            return True
    return False
