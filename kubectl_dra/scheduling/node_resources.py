"""NodeResourcesFit: free cpu, memory, ephemeral storage, huge pages, extended resources and pods; and its score."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import structs

from kubectl_dra.allocation.extended_resources import class_by_resource
from kubectl_dra.allocation.features import Features
from kubectl_dra.api.behaviour import BALANCE_COMPARED
from kubectl_dra.api.meta import Amount
from kubectl_dra.api.pod_resources import pod_level
from kubectl_dra.api.pods import Container, Pod
from kubectl_dra.scheduling.amounts import Amounts, Rules, pod_amounts
from kubectl_dra.scheduling.framework import MAX, ClusterState, NodeState, Plugin, ScorePlugin, along
from kubectl_dra.scheduling.plugin_args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    ResourceWeight,
    ScoringStrategy,
)
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection

PODS: Final = "pods"
_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")


class TooManyPods(Reason, frozen=True):
    """The node already has its maximum number of pods."""

    TEXT = "Too many pods"
    used: int
    capacity: int


class Insufficient(Reason, frozen=True):
    """Too little of a resource is left; cpu in thousandths, everything else in whole units."""

    TEXT = "Insufficient {resource}"
    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def free(self) -> int:
        """What is left: zero if more is used than the node has."""
        return max(0, self.capacity - self.used)

    @property
    def never(self) -> bool:
        """Whether even the empty node would have too little."""
        return self.requested > self.capacity


class NodeResourcesFit(Plugin):
    """Refuses nodes with too little left. A node lacks every resource that it does not list.

    A node that was never stored (it has no UID) and lists nothing is assumed to have enough.
    """

    name = PluginName.NODE_RESOURCES_FIT

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self.requested = {
            name: amount
            for name, amount in pod_amounts(pod, state.rules._replace(resize=False, pod_level_resize=False)).items()
            if amount > 0 and counted(name)
        }
        args = state.profile.args.fit
        groups = args.ignored_resource_groups
        for name in [name for name in self.requested if "/" in name and "kubernetes.io/" not in name]:
            if name in args.ignored_resources or name.partition("/")[0] in groups:
                del self.requested[name]
        self._by_devices = class_by_resource(state.snapshot.classes).keys() & self.requested.keys()
        if not Features.from_gates(state.gates).extended_resources:
            self._by_devices = set()

    def filter(self, node: NodeState) -> Rejection | None:
        allocatable = node.allocatable
        if not allocatable and not node.node.metadata.uid:
            return None
        reasons: list[Reason] = []
        resolvable = True
        limit = allocatable.get(PODS, 0)
        if len(node.pods) + 1 > limit:
            reasons.append(TooManyPods(len(node.pods), limit))
        for name, amount in self.requested.items():
            capacity = allocatable.get(name, 0)
            if name in self._by_devices and not capacity:
                continue
            used = node.requested.get(name, 0)
            if amount > capacity - used:
                reasons.append(lack := Insufficient(name, amount, used, capacity))
                resolvable = resolvable and not lack.never
        return Rejection(self.name, tuple(reasons), resolvable=resolvable) if reasons else None


def counted(resource: str) -> bool:
    """Whether the scheduler counts the resource: Kubernetes' known ones, and all with a domain."""
    return resource in _NATIVE or "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


# NodeResourcesFit and NodeResourcesBalancedAllocation: how much of cpu and memory is used, and how evenly.

_RESOURCES: Final = ("cpu", "memory")
_ASSUMED: Final[Mapping[str, Amount]] = {"cpu": "100m", "memory": "200Mi"}
"""The amounts assumed for a container without requests; only for scores."""
_OF_CONTAINERS_ALONE: Final = Rules(pod_level=False, resize=False, pod_level_resize=False)
"""NodeResourcesFit scores the pod itself like this, because its gates do not reach the scorer (NewFit of
fit.go, 1.34 to 1.37).
"""
_C = TypeVar("_C", bound=Container)
Share = Callable[[int, int], int]
"""The score of one resource, from what is used and what the node has."""


class FitScore(ScorePlugin):
    """Score by what is left or used of each resource, by the strategy of the profile."""

    name = PluginName.NODE_RESOURCES_FIT

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        strategy = state.profile.args.fit.scoring_strategy
        self._resources = strategy.resources
        self._share = _share(strategy)
        self._some_may_not_count = strategy.type not in (LEAST_ALLOCATED, MOST_ALLOCATED)
        self._own = pod_amounts(_with(pod, _ASSUMED), _OF_CONTAINERS_ALONE)
        self.inexact = _served_by_devices(self._resources, self._own, state, nodes)

    def scores(self) -> Mapping[str, int]:
        rules = self.state.rules
        own = self._own
        names = [name for name, _ in _counted(self._resources, own)]
        out = {}
        for node in self.nodes:
            used = {name: own.get(name, 0) + node.requested.get(name, 0) for name in names}
            for pod in filter(_lacks_requests, node.pods):
                _add(used, pod_amounts(_with(pod, _assumed_for(pod)), rules), 1)
                _add(used, pod_amounts(pod, rules), -1)
            out[node.name] = self._score(used, node.allocatable)
        return out

    def _score(self, used: Amounts, allocatable: Amounts) -> int:
        total = weights = 0
        for name, weight in _counted(self._resources, self._own):
            if capacity := allocatable.get(name, 0):
                share = self._share(used.get(name, 0), capacity)
                if share or not self._some_may_not_count:
                    total += share * weight
                    weights += weight
        if not weights:
            return 0
        return math.floor(total / weights + 0.5) if self._some_may_not_count else total // weights


class BalancedAllocation(ScorePlugin):
    """Scores higher the closer the used fractions of cpu and memory are with the pod.

    Since 1.36 the change of that balance counts. Pods that request neither are not scored.
    """

    name = PluginName.NODE_RESOURCES_BALANCED_ALLOCATION

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        self._own = pod_amounts(pod, state.rules)
        resources = state.profile.args.balanced_allocation.resources
        self.skipped = not any(self._own.get(resource.name) for resource in resources)
        self._names = [name for name, _ in _counted(resources, self._own)]
        self.inexact = _served_by_devices(resources, self._own, state, nodes)

    def scores(self) -> Mapping[str, int]:
        return {node.name: self._score(node) for node in self.nodes}

    def _score(self, node: NodeState) -> int:
        after = {name: node.requested.get(name, 0) + self._own.get(name, 0) for name in self._names}
        balance = self._balance(after, node.allocatable)
        if self.state.release not in BALANCE_COMPARED:
            return balance
        half = MAX // 2
        return half + (half + balance - self._balance(node.requested, node.allocatable)) // 2

    def _balance(self, used: Mapping[str, int], allocatable: Amounts) -> int:
        parts = [
            min(used.get(name, 0) / capacity, 1.0) for name in self._names if (capacity := allocatable.get(name, 0))
        ]
        return int((1 - _deviation(parts)) * MAX)


def _deviation(parts: Sequence[float]) -> float:
    """The standard deviation, computed in the scheduler's order of operations to get the same floats."""
    if len(parts) < 2:
        return 0.0
    if len(parts) == 2:
        return abs((parts[0] - parts[1]) / 2)
    total = 0.0
    for part in parts:
        total += part
    mean, squares = total / len(parts), 0.0
    for part in parts:
        squares = squares + (part - mean) * (part - mean)
    return math.sqrt(squares / len(parts))


def _share(strategy: ScoringStrategy) -> Share:
    if strategy.type == LEAST_ALLOCATED:
        return lambda used, capacity: max(capacity - used, 0) * MAX // capacity
    if strategy.type == MOST_ALLOCATED:
        return lambda used, capacity: min(used, capacity) * MAX // capacity
    ratio = strategy.requested_to_capacity_ratio
    shape = [(point.utilization, point.score * 10) for point in (ratio.shape if ratio is not None else ())]
    return lambda used, capacity: along(shape, MAX if used > capacity else used * MAX // capacity)


def _counted(resources: Sequence[ResourceWeight], own: Amounts) -> list[tuple[str, int]]:
    """The resources that count for a pod, with their weights; scalar ones only if it requests them."""
    return [
        (resource.name, resource.weight or 1)
        for resource in resources
        if own.get(resource.name) or not _scalar(resource.name)
    ]


def _scalar(resource: str) -> bool:
    return "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))


def _served_by_devices(
    resources: Sequence[ResourceWeight], own: Amounts, state: ClusterState, nodes: Sequence[NodeState]
) -> str:
    """A scored resource that devices serve on some node, which is not modelled here."""
    scalars = [name for name, _ in _counted(resources, own) if _scalar(name)]
    if not scalars or not Features.from_gates(state.gates).extended_resources:
        return ""
    served = class_by_resource(state.snapshot.classes).keys() & set(scalars)
    return next((name for name in served if any(not node.allocatable.get(name, 0) for node in nodes)), "")


def _add(into: Amounts, amounts: Mapping[str, int], times: int) -> None:
    for name in _RESOURCES:
        into[name] = into.get(name, 0) + times * amounts.get(name, 0)


def _lacks_requests(pod: Pod) -> bool:
    """Whether any container requests no cpu or no memory."""
    return any(
        name not in container.resources.requests
        for entries in (pod.spec.containers, pod.spec.init_containers)
        for container in entries
        for name in _RESOURCES
    )


def _assumed_for(pod: Pod) -> Mapping[str, Amount]:
    """The assumed requests of an existing pod: none if its pod-level requests include the resource."""
    if not pod_level(pod, "requests"):
        return _ASSUMED
    requested = pod_amounts(pod)
    return {name: amount for name, amount in _ASSUMED.items() if name not in requested}


def _with(pod: Pod, assumed: Mapping[str, Amount]) -> Pod:
    """The pod with these requests in all containers that lack the resource."""
    spec = pod.spec
    return structs.replace(
        pod,
        spec=structs.replace(
            spec,
            containers=tuple(_with_requests(container, assumed) for container in spec.containers),
            init_containers=tuple(_with_requests(container, assumed) for container in spec.init_containers),
        ),
    )


def _with_requests(container: _C, assumed: Mapping[str, Amount]) -> _C:
    requests = {**assumed, **container.requests}
    return structs.replace(container, resources=structs.replace(container.resources, requests=requests))
