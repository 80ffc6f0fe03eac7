"""Which of the nodes that pass all filters wins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.dynamic_resources import DynamicResourcesScore
from kubectl_dra.scheduling.framework import ClusterState, NodeState, ScorePlugin
from kubectl_dra.scheduling.inter_pod_affinity import InterPodAffinityScore
from kubectl_dra.scheduling.node_affinity import NodeAffinityScore
from kubectl_dra.scheduling.node_resources import BalancedAllocation, FitScore
from kubectl_dra.scheduling.pod_topology_spread import PodTopologySpreadScore
from kubectl_dra.scheduling.profile import Effect, Point, Profile
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.scores.image_locality import ImageLocality
from kubectl_dra.scheduling.taint_toleration import TaintTolerationScore
from kubectl_dra.scheduling.volume_binding import VolumeBindingScore

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
    """How many feasible nodes the scheduler looks for; None means all."""
    if nodes < _ALL_UP_TO:
        return None
    percent = profile.percentage or max(50 - nodes // 125, 5)
    return max(nodes * percent // 100, _ALL_UP_TO)
