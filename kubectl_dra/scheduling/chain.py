"""The Filter plugins in the profile's order: PreFilter of all, then Filter node by node; the first refusal
wins.

Source of PreFilter's outcome: RunPreFilterPlugins in pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.dynamic_resources import DynamicResources
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.inter_pod_affinity import InterPodAffinity
from kubectl_dra.scheduling.node_resources import NodeResourcesFit
from kubectl_dra.scheduling.pod_topology_spread import PodTopologySpread
from kubectl_dra.scheduling.profile import Point, Profile
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection
from kubectl_dra.scheduling.simple_filters import (
    NodeAffinityFilter,
    NodeDeclaredFeatures,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
)
from kubectl_dra.scheduling.volume_binding import VolumeBinding
from kubectl_dra.scheduling.volume_filters import NodeVolumeLimits, VolumeRestrictions, VolumeZone

_KINDS: Final[Mapping[str, type[Plugin]]] = {
    kind.name: kind
    for kind in (
        NodeUnschedulable,
        NodeName,
        TaintToleration,
        NodeAffinityFilter,
        NodePorts,
        NodeResourcesFit,
        VolumeRestrictions,
        NodeVolumeLimits,
        VolumeBinding,
        VolumeZone,
        PodTopologySpread,
        InterPodAffinity,
        DynamicResources,
        NodeDeclaredFeatures,
    )
}


class NotAmongThose(Reason, frozen=True):
    """The node is not among those to which these plugins narrowed the choice, so it was not examined further."""

    SAID = "the pod names other nodes (matchFields), or a volume of it is elsewhere"

    plugins: tuple[PluginName, ...]

    @property
    def words(self) -> str:
        return f"node(s) didn't satisfy plugin(s) [{' '.join(self.plugins)}]"


class NoneInCommon(Reason, frozen=True):
    """These plugins narrowed the choice to nodes that have none in common."""

    SAID = "no node is among those that the pod and its volumes name"

    plugins: tuple[PluginName, ...]

    @property
    def words(self) -> str:
        if len(self.plugins) == 1:
            return f"node(s) didn't satisfy plugin {self.plugins[0]}"
        return f"node(s) didn't satisfy plugin(s) [{' '.join(self.plugins)}] simultaneously"


def order(profile: Profile) -> tuple[type[Plugin], ...]:
    """The filtering plugins of a profile: those with PreFilter in its order, then the others."""
    first, then = profile.plugins[Point.PRE_FILTER], profile.plugins[Point.FILTER]
    return tuple(kind for name in dict.fromkeys((*first, *then)) if (kind := _KINDS.get(name)) is not None)


class Chain:
    """The plugins of a pod in the order in which the scheduler prepares them, as far as it gets.

    ``rejection`` refuses the pod as a whole, whatever the node. ``prepared``: the plugins whose PreFilter
    ran. ``among``: the nodes to which plugins narrowed the choice; None means all.
    """

    def __init__(self, pod: Pod, state: ClusterState, plugins: Iterable[Plugin]) -> None:
        self.pod = pod
        self.state = state
        self.rejection: Rejection | None = None
        self.prepared: list[Plugin] = []
        self.among: frozenset[str] | None = None
        self._narrowing: list[PluginName] = []
        filters: list[Plugin] = []
        for plugin in plugins:
            if not self._add(plugin, filters):
                break
        # In Filter order, without those that only have a PreFilter.
        places = {name: place for place, name in enumerate(state.profile.plugins[Point.FILTER])}
        known = [plugin for plugin in filters if plugin.name in places]
        self.plugins = sorted(known, key=lambda plugin: places[plugin.name])

    def _add(self, plugin: Plugin, filters: list[Plugin]) -> bool:
        """Add a plugin whose PreFilter ran, to the ``filters`` if nodes matter to it. Returns whether the next runs."""
        self.prepared.append(plugin)
        if not self.state.profile.runs(plugin.name, Point.PRE_FILTER):
            if not plugin.skipped:
                filters.append(plugin)
            return True
        if plugin.rejection is not None:
            self.rejection = plugin.rejection
            if not plugin.rejection.resolvable or plugin.rejection.error:
                return False
            filters.append(plugin)
            return True
        if plugin.skipped:
            return True
        filters.append(plugin)
        if plugin.nodes is None:
            return True
        self._narrowing.append(plugin.name)
        self.among = plugin.nodes if self.among is None else self.among & plugin.nodes
        if not self.among:
            self.rejection = Rejection(plugin.name, (NoneInCommon(tuple(sorted(self._narrowing))),))
        return bool(self.among)

    @property
    def devices(self) -> DynamicResources | None:
        """The plugin for devices; None if another one refused the pod first, or the profile lacks it."""
        return next((plugin for plugin in self.prepared if isinstance(plugin, DynamicResources)), None)

    def filter(self, node: NodeState) -> Rejection | None:
        """Why the pod cannot run on the node, considering pods nominated for it; None if it can."""
        if self.rejection is not None:
            return self.rejection
        if self.among is not None and node.name not in self.among:
            return Rejection(self._narrowing[0], (NotAmongThose(tuple(sorted(self._narrowing))),))
        if nominated := list(self._nominated(node)):
            with_them = self._filter(node.changed(added=nominated))
            if with_them is not None:
                return with_them
        return self._filter(node)

    def every(self, node: NodeState) -> list[Rejection]:
        """Every plugin's own objection to the node."""
        return [rejection for plugin in self.plugins if (rejection := plugin.filter(node)) is not None]

    def _filter(self, node: NodeState) -> Rejection | None:
        for plugin in self.plugins:
            rejection = plugin.filter(node)
            if rejection is not None:
                return rejection
        return None

    def _nominated(self, node: NodeState) -> Iterator[Pod]:
        """The pods nominated for the node to which this pod must yield."""
        for other in self.state.nominated.get(node.name, ()):
            if other.priority >= self.pod.priority and other.metadata.key != self.pod.metadata.key:
                yield other
