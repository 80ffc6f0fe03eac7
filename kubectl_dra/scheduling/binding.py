"""The cluster after the scheduler gave a pod its node: the pod is there, and its claims have devices."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from kubectl_dra.allocation.features import Features
from kubectl_dra.api.claims import Allocation, Consumer, ResourceClaim
from kubectl_dra.api.pods import ExtendedClaimStatus, NodeResourcesOfClaim, Pod
from kubectl_dra.cluster.moment import moment
from kubectl_dra.cluster.relation import relation_of
from kubectl_dra.scheduling.chain import Chain
from kubectl_dra.scheduling.framework import ClusterState


def bound(pod: Pod, node: str, chain: Chain, state: ClusterState) -> ClusterState:
    """The cluster after the pod was given a node that the chain, made for it, lets pass."""
    claims, stored = list(_reserved(pod, node, chain)), chain.state.snapshot.claims
    status = structs.replace(pod.status, node_allocatable_resource_claim_statuses=_taken(node, chain))
    for name in (claim.metadata.name for claim in claims):
        if (pod.metadata.namespace, name) not in stored:
            status = structs.replace(status, extended_resource_claim_status=ExtendedClaimStatus(name))
    there = structs.replace(pod, node_name=node, status=status)
    return state.moved(state.cluster.editing(there, *claims))


def takes_no_pod(claim: ResourceClaim, features: Features) -> bool:
    """Whether the scheduler fails to add a further pod to a claim, whatever its filters say.

    It adds the timestamp that the allocation lacks, and the API server refuses every change of an allocation
    (bindClaim in dynamicresources.go, ValidateResourceClaimStatusUpdate).
    """
    return features.binding_conditions and claim.allocation is not None and not claim.allocation.timestamp


def _taken(node: str, chain: Chain) -> tuple[NodeResourcesOfClaim, ...]:
    """What the pod's devices take of the node, as its status says it from then on."""
    devices = chain.devices
    return () if devices is None else devices.taken_on(chain.state.nodes[node].node).claims


def _reserved(pod: Pod, node: str, chain: Chain) -> Iterator[ResourceClaim]:
    """The claims of the pod as they are when it has the node: allocated, and reserved for it.

    The claim for extended resources is called as the pod: it has no name before it is made.
    """
    devices = chain.devices
    if devices is None:
        return
    user = Consumer("pods", pod.metadata.name, pod.metadata.uid)
    for claim in devices.claims:
        if claim.allocation is not None and not relation_of(claim, pod, groups=False).listed:
            yield structs.replace(claim, reserved_for=(*claim.reserved_for, user))
    attempt = devices.attempts.get(node)
    if attempt is None:
        return
    stored, now = chain.state.snapshot.claims, str(moment(chain.state.snapshot))
    for claim, result in zip(devices.claims_on(chain.state.nodes[node].node), attempt.results, strict=True):
        allocation = structs.replace(Allocation.from_json(result.to_json()), timestamp=now)
        made = structs.replace(claim, allocation=allocation, reserved_for=(*claim.reserved_for, user))
        if (claim.metadata.namespace, claim.metadata.name) not in stored:
            made = structs.replace(made, metadata=structs.replace(claim.metadata, name=pod.metadata.name))
        yield made
