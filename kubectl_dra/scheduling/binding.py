"""Pods get their nodes: the best of those that pass all filters, and the cluster after."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Attempt
from kubectl_dra.allocation.budgets import PLACED_POD, Budget
from kubectl_dra.allocation.features import Features
from kubectl_dra.api.behaviour import IMAGE_VOLUMES_COUNT
from kubectl_dra.api.claims import Consumer, ResourceClaim
from kubectl_dra.api.pods import ExtendedClaimStatus, Pod
from kubectl_dra.cluster.claim_relation import relation_of
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.scheduling.chain import Chain, order
from kubectl_dra.scheduling.dynamic_resources import DynamicResources, DynamicResourcesScore, preference
from kubectl_dra.scheduling.framework import MAX, ClusterState, NodeState, ScorePlugin
from kubectl_dra.scheduling.inter_pod_affinity import InterPodAffinityScore
from kubectl_dra.scheduling.node_resources import BalancedAllocation, FitScore
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.pod_topology_spread import PodTopologySpreadScore
from kubectl_dra.scheduling.profile import Effect, Point, Profile
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.simple_filters import NodeAffinityScore, TaintTolerationScore
from kubectl_dra.scheduling.volume_binding import VolumeBindingScore

# ImageLocality: nodes that already have more of the pod's images, by size, score higher.


_MIB: Final = 1 << 20
_LEAST, _MOST_EACH = 23 * _MIB, 1000 * _MIB


class ImageLocality(ScorePlugin):
    """The plugin for one pod."""

    name = PluginName.IMAGE_LOCALITY

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        volumes = [volume.image.reference for volume in pod.spec.volumes if volume.image is not None]
        self._images = [_full_name(name) for name in (*(container.image for container in pod.containers), *volumes)]
        self._places = len(pod.containers)
        if state.release in IMAGE_VOLUMES_COUNT:
            self._places += len(volumes)
        self._sizes: dict[str, int] = {}
        self._nodes_with: dict[str, set[str]] = {name: set() for name in self._images}
        for node in state.nodes.values():
            for image in node.node.status.images:
                for name in image.names:
                    if name in self._nodes_with:
                        self._nodes_with[name].add(node.name)
                        self._sizes.setdefault(name, image.size_bytes)
        self.skipped = not self._sizes

    def scores(self) -> Mapping[str, int]:
        return {node.name: self._score(node.name) for node in self.nodes}

    def _score(self, node: str) -> int:
        total = len(self.state.nodes)
        size = 0
        for image in self._images:
            having = self._nodes_with[image]
            if node in having:
                # An image that few nodes have counts less, so that pods do not all go there.
                size += int(self._sizes[image] * (len(having) / total))
        most = _MOST_EACH * self._places
        return MAX * (min(max(size, _LEAST), most) - _LEAST) // (most - _LEAST)


def _full_name(image: str) -> str:
    return f"{image}:latest" if image.rfind(":") <= image.rfind("/") else image


# Which of them wins.

_KINDS: Final[Mapping[str, type[ScorePlugin]]] = {
    kind.name: kind
    for kind in (
        TaintTolerationScore,
        NodeAffinityScore,
        FitScore,
        VolumeBindingScore,
        PodTopologySpreadScore,
        InterPodAffinityScore,
        BalancedAllocation,
        ImageLocality,
    )
}
_ALL_UP_TO: Final = 100
"""With fewer nodes than this the scheduler examines all of them; with more it stops when it has found enough."""

NodeScores = Mapping[PluginName, int]
"""A node's points by plugin, including weights; plugins that do not score the pod are absent."""


class BestNodes(Struct, frozen=True):
    """The nodes from which the scheduler takes one, at random if there are several.

    ``scores`` covers all feasible nodes; empty if there was no choice. ``enough``: in a large cluster the
    scheduler stops after this many feasible nodes. Which ones depends on where it last stopped, so the best
    is unknown. ``unknown``: what affects the choice but is not modelled.
    """

    nodes: tuple[str, ...]
    scores: Mapping[str, NodeScores] = field(default_factory=dict)
    enough: int = 0
    unknown: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether it is certain that one of these nodes wins."""
        return bool(self.nodes) and not self.unknown


def best_nodes(
    pod: Pod,
    state: ClusterState,
    feasible: Sequence[NodeState],
    device_preference: Mapping[str, int] = MappingProxyType({}),
    candidates: int | None = None,
) -> BestNodes:
    """The nodes with the highest score. A feasible node nominated for the pod takes precedence.

    ``device_preference`` is ``dynamic_resources.preference`` of all claims together, by node. ``candidates``
    is the number of nodes that PreFilter left (None: all).
    """
    names = [node.name for node in feasible]
    nominated = pod.status.nominated_node_name
    if nominated in names:
        return BestNodes((nominated,))
    if len(names) <= 1:
        return BestNodes(tuple(names))
    enough = _enough(len(state.nodes) if candidates is None else candidates, state.profile)
    if enough is not None and len(names) > enough:
        return BestNodes((), enough=enough)
    names_here = state.profile.plugins[Point.SCORE]
    plugins = [kind(pod, state, feasible) for name in names_here if (kind := _KINDS.get(name)) is not None]
    if PluginName.DYNAMIC_RESOURCES in names_here:
        plugins.append(DynamicResourcesScore(pod, state, feasible, device_preference))
    scores: dict[str, dict[PluginName, int]] = {name: {} for name in names}
    for plugin in plugins:
        if not plugin.skipped:
            for name, score in plugin.scores().items():
                scores[name][plugin.name] = score * state.profile.weights[plugin.name]
    totals = {name: sum(points.values()) for name, points in scores.items()}
    best = max(totals.values())
    return BestNodes(
        tuple(name for name in names if totals[name] == best),
        scores,
        unknown=tuple(dict.fromkeys(_unknown(plugins, state.profile, pod))),
    )


def _unknown(plugins: Sequence[ScorePlugin], profile: Profile, pod: Pod) -> Iterator[str]:
    yield from profile.unknown(Effect.SCORES, pod)
    yield from (plugin.inexact for plugin in plugins if plugin.inexact)


def _enough(nodes: int, profile: Profile) -> int | None:
    """Number of feasible nodes that the scheduler looks for; None means all."""
    if nodes < _ALL_UP_TO:
        return None
    percent = profile.percentage or max(50 - nodes // 125, 5)
    return max(nodes * percent // 100, _ALL_UP_TO)


# The node on which an attempt ends: the best of those that accept the pod.


def winner(outcome: Outcome) -> BestNodes:
    """The best node, or several that tie; empty if no node accepts the pod.

    If the scheduler gives back a claim first, this is the node of the attempt after that.
    """
    if outcome.next is not None:
        return winner(outcome.next)
    return winner_among(outcome.chain, outcome.feasible)


def winner_among(chain: Chain, feasible: Sequence[str]) -> BestNodes:
    """The best of the nodes that pass all filters of the chain."""
    nodes = [chain.state.nodes[name] for name in feasible]
    candidates = None if chain.among is None else len(chain.among)
    return best_nodes(chain.pod, chain.state, nodes, _device_preference(chain, feasible), candidates)


def _device_preference(chain: Chain, feasible: Sequence[str]) -> dict[str, int]:
    """For each node, how close its devices are to the first choices of the pod's claims, allocated ones included."""
    devices = chain.devices
    if devices is None:
        return {}
    allocated = sum(map(preference, devices.allocated))
    return {name: allocated + sum(map(preference, devices.given_on(chain.state.nodes[name].node))) for name in feasible}


# Pods get their nodes: the cluster after, with the pod and the devices of its claims, and what chance decides.

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
