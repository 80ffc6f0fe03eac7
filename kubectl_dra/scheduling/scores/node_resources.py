"""NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation: cpu and memory left, and their balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from msgspec import structs

from kubectl_dra.api.pod_resources import pod_level
from kubectl_dra.api.pods import Container, Pod
from kubectl_dra.api.wire import Amount
from kubectl_dra.scheduling.amounts import Amounts, Rules, pod_amounts
from kubectl_dra.scheduling.framework import ClusterState, NodeState, ScorePlugin
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.scores.normalize import MAX

_RESOURCES: Final = ("cpu", "memory")
_ASSUMED: Final[Mapping[str, Amount]] = {"cpu": "100m", "memory": "200Mi"}
"""What a container counts with that requests none; for scores alone."""

_OF_CONTAINERS_ALONE: Final = Rules(pod_level=False, resize=False, pod_level_resize=False)
"""How NodeResourcesFit scores the pod itself: its gates do not reach the scorer (NewFit of fit.go, 1.34 to 1.37)."""

_COMPARES_BEFORE_AND_AFTER: Final = 36
_C = TypeVar("_C", bound=Container)


class LeastAllocated(ScorePlugin):
    """The more cpu and memory is left, the better; both count alike."""

    name = PluginName.NODE_RESOURCES_FIT

    def scores(self) -> Mapping[str, int]:
        rules = self.state.rules
        own = pod_amounts(_with(self.pod, _ASSUMED), _OF_CONTAINERS_ALONE)
        out = {}
        for node in self.nodes:
            used = dict(own)
            _add(used, node.requested, 1)
            for pod in filter(_lacks_requests, node.pods):
                _add(used, pod_amounts(_with(pod, _assumed_for(pod)), rules), 1)
                _add(used, pod_amounts(pod, rules), -1)
            out[node.name] = _left(used, node.allocatable)
        return out


class BalancedAllocation(ScorePlugin):
    """The more alike the used parts of cpu and memory are with the pod, the better.

    Since 1.36 it is the change that counts. Pods that request neither are not scored.
    """

    name = PluginName.NODE_RESOURCES_BALANCED_ALLOCATION

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        self._own = pod_amounts(pod, state.rules)
        self.skipped = not any(self._own.get(name) for name in _RESOURCES)

    def scores(self) -> Mapping[str, int]:
        return {node.name: self._score(node) for node in self.nodes}

    def _score(self, node: NodeState) -> int:
        after = {name: node.requested.get(name, 0) + self._own.get(name, 0) for name in _RESOURCES}
        balance = _balance(after, node.allocatable)
        if not self.state.release.at_least(_COMPARES_BEFORE_AND_AFTER):
            return balance
        half = MAX // 2
        return half + (half + balance - _balance(node.requested, node.allocatable)) // 2


def _left(used: Amounts, allocatable: Amounts) -> int:
    parts = [
        max(capacity - used.get(name, 0), 0) * MAX // capacity
        for name in _RESOURCES
        if (capacity := allocatable.get(name, 0))
    ]
    return sum(parts) // len(parts) if parts else 0


def _balance(used: Mapping[str, int], allocatable: Amounts) -> int:
    parts = [min(used.get(name, 0) / capacity, 1.0) for name in _RESOURCES if (capacity := allocatable.get(name, 0))]
    spread = abs((parts[0] - parts[1]) / 2) if len(parts) == len(_RESOURCES) else 0.0
    return int((1 - spread) * MAX)


def _add(into: Amounts, amounts: Mapping[str, int], times: int) -> None:
    for name in _RESOURCES:
        into[name] = into.get(name, 0) + times * amounts.get(name, 0)


def _lacks_requests(pod: Pod) -> bool:
    """Whether a container writes no request of cpu or memory."""
    return any(
        name not in entry.resources.requests
        for entries in (pod.spec.containers, pod.spec.init_containers)
        for entry in entries
        for name in _RESOURCES
    )


def _assumed_for(pod: Pod) -> Mapping[str, Amount]:
    """What is assumed of a pod that is there: nothing where the pod as a whole requests of the resource already."""
    if not pod_level(pod, "requests"):
        return _ASSUMED
    requested = pod_amounts(pod)
    return {name: amount for name, amount in _ASSUMED.items() if name not in requested}


def _with(pod: Pod, assumed: Mapping[str, Amount]) -> Pod:
    """The pod with these requests in all containers that have none of the resource."""
    spec = pod.spec
    return structs.replace(
        pod,
        spec=structs.replace(
            spec,
            containers=tuple(_with_requests(entry, assumed) for entry in spec.containers),
            init_containers=tuple(_with_requests(entry, assumed) for entry in spec.init_containers),
        ),
    )


def _with_requests(container: _C, assumed: Mapping[str, Amount]) -> _C:
    requests = {**assumed, **container.requests}
    return structs.replace(container, resources=structs.replace(container.resources, requests=requests))
