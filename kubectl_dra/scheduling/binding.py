"""Pods get their nodes: the cluster after, with the pod and the devices of its claims, and what chance decides."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Attempt
from kubectl_dra.allocation.budgets import PLACED_POD, Budget
from kubectl_dra.allocation.features import Features
from kubectl_dra.api.claims import Consumer, ResourceClaim
from kubectl_dra.api.pods import ExtendedClaimStatus, Pod
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.scheduling.chain import order
from kubectl_dra.scheduling.dynamic_resources import DynamicResources
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.outcome import Outcome

T = TypeVar("T")


def bound(pod: Pod, node: str, state: ClusterState, attempt: Attempt | None) -> ClusterState:
    """The cluster after the pod was given a node that accepts it, with the devices of an attempt if it needs any."""
    there, claims = replace(pod, node_name=node), list[ResourceClaim]()
    if DynamicResources in order(state.profile):
        devices = DynamicResources(pod, state, made={node: attempt} if attempt is not None else {})
        claims = list(_reserved(pod, node, devices))
        resources = devices.taken_on(state.nodes[node].node).claims
        there = replace(there, status=replace(pod.status, node_allocatable_resource_claim_statuses=resources))
    for name in (claim.metadata.name for claim in claims):
        if (pod.metadata.namespace, name) not in state.snapshot.claims:
            there = replace(
                there, status=replace(there.status, extended_resource_claim_status=ExtendedClaimStatus(name))
            )
    return state.moved(state.cluster.editing(there, *claims))


def takes_no_pod(claim: ResourceClaim, features: Features) -> bool:
    """Whether the scheduler fails to add a further pod to a claim, whatever its filters say.

    It adds the timestamp that the allocation lacks, and the API server refuses every change of an allocation
    (bindClaim in dynamicresources.go, ValidateResourceClaimStatusUpdate).
    """
    return features.binding_conditions and claim.allocation is not None and not claim.allocation.timestamp


def _reserved(pod: Pod, node: str, devices: DynamicResources) -> Iterator[ResourceClaim]:
    """The claims of the pod as they are when it has the node: allocated, and reserved for it.

    The claim for extended resources is called as the pod: it has no name before it is made.
    """
    user = Consumer("pods", pod.metadata.name, pod.metadata.uid)
    for claim in devices.claims:
        if claim.allocation is not None and not relation_of(claim, pod, groups=False).listed:
            yield replace(claim, reserved_for=(*claim.reserved_for, user))
    snapshot = devices.state.snapshot
    stored, now = snapshot.claims, str(moment(snapshot))
    for claim in devices.given_on(devices.state.nodes[node].node):
        allocation = replace(claim.allocation, timestamp=now) if claim.allocation is not None else None
        reserved = replace(claim, allocation=allocation, reserved_for=(*claim.reserved_for, user))
        if (claim.metadata.namespace, claim.metadata.name) not in stored:
            reserved = replace(reserved, metadata=replace(claim.metadata, name=pod.metadata.name))
        yield reserved


class Chance:
    """The choices of one try: any, by ``random``, or always the first. ``taken``: another choice was possible."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random
        self.taken = False

    @staticmethod
    def of_try(number: int) -> Chance:
        """Always the first in try 0, any in the others."""
        return Chance(Random(number) if number else None)

    @property
    def always_first(self) -> bool:
        """Whether it takes the first of each."""
        return self._random is None

    def of(self, choices: Sequence[T]) -> T:
        """One of them."""
        self.taken = self.taken or len(choices) > 1
        return choices[0] if self._random is None else self._random.choice(choices)

    def in_order(self, pods: Sequence[Pod], turn: Callable[[Pod], Any]) -> list[Pod]:
        """The pods by their turns; those with equal ones come in any order."""
        self.taken = self.taken or len({turn(pod) for pod in pods}) < len(pods)
        # Whichever of them is asked about, the first try is the same.
        mixed = sorted(pods, key=lambda pod: pod.key)
        if self._random is not None:
            self._random.shuffle(mixed)
        return sorted(mixed, key=turn)


# Pods one after the other: each gets its node in the cluster with those before it.


Choose = Callable[[Sequence[str]], str]
"""Takes one of several nodes that are as good."""


class TurnTaken(NamedTuple):
    """What came of one pod: the attempt, its node (empty if none takes it), and the cluster after."""

    outcome: Outcome
    node: str
    state: ClusterState


def place(
    pod: Pod, state: ClusterState, budget: Budget, choose: Choose, within: Container[str] | None = None
) -> TurnTaken:
    """Gives a pod one of its best nodes, after unused claims were deallocated; ``within``: only of these."""
    from kubectl_dra.scheduling.scoring import winner_among

    outcome = Outcome(pod, state, budget)
    while outcome.next is not None:
        outcome = outcome.next
    feasible = tuple(name for name in outcome.feasible if within is None or name in within)
    if not feasible:
        return TurnTaken(outcome, "", state)
    budget.charge(PLACED_POD)
    best = winner_among(outcome.chain, feasible)
    node = choose([name for name in best.nodes or feasible if name in feasible])
    return TurnTaken(outcome, node, bound(pod, node, outcome.state, outcome.devices.on(node)))
