"""The Filter plugins in the scheduler's order: PreFilter of all, then Filter node by node, the first that refuses wins.

Source of the order: pkg/scheduler/apis/config/v1/default_plugins.go of each release; of PreFilter's outcome:
RunPreFilterPlugins in pkg/scheduler/framework/runtime/framework.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.versions import Release
from kubectl_dra.scheduling.dynamic_resources import DynamicResources
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.inter_pod_affinity import InterPodAffinity
from kubectl_dra.scheduling.node_affinity import NodeAffinity
from kubectl_dra.scheduling.node_declared_features import NodeDeclaredFeatures
from kubectl_dra.scheduling.node_name import NodeName
from kubectl_dra.scheduling.node_ports import NodePorts
from kubectl_dra.scheduling.node_resources_fit import NodeResourcesFit
from kubectl_dra.scheduling.node_unschedulable import NodeUnschedulable
from kubectl_dra.scheduling.node_volume_limits import NodeVolumeLimits
from kubectl_dra.scheduling.pod_topology_spread import PodTopologySpread
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection
from kubectl_dra.scheduling.taint_toleration import TaintToleration
from kubectl_dra.scheduling.volume_binding import VolumeBinding
from kubectl_dra.scheduling.volume_restrictions import VolumeRestrictions
from kubectl_dra.scheduling.volume_zone import VolumeZone

_FIRST_WITH_NAME_FIRST = 37


@dataclass(frozen=True)
class NotAmongThose(Reason):
    """The node is not one of those that these plugins narrowed the choice to; nothing else was asked of it."""

    plugins: tuple[PluginName, ...]

    @property
    def words(self) -> str:
        return f"node(s) didn't satisfy plugin(s) [{' '.join(self.plugins)}]"


@dataclass(frozen=True)
class NoneInCommon(Reason):
    """No node is among those that each of these plugins narrowed the choice to."""

    plugins: tuple[PluginName, ...]

    @property
    def words(self) -> str:
        if len(self.plugins) == 1:
            return f"node(s) didn't satisfy plugin {self.plugins[0]}"
        return f"node(s) didn't satisfy plugin(s) [{' '.join(self.plugins)}] simultaneously"


def without_devices(release: Release) -> tuple[type[Plugin], ...]:
    """The Filter plugins of a release but the one for devices."""
    return tuple(kind for kind in order(release) if kind is not DynamicResources)


def order(release: Release) -> tuple[type[Plugin], ...]:
    """The Filter plugins of a release in the order in which it runs them."""
    first: tuple[type[Plugin], ...] = (NodeUnschedulable, NodeName)
    if release.at_least(_FIRST_WITH_NAME_FIRST):
        first = (NodeName, NodeUnschedulable)
    return (
        *first,
        TaintToleration,
        NodeAffinity,
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


class Chain:
    """All plugins for one pod.

    ``rejection`` refuses the pod as a whole, whichever the node. ``prepared``: the plugins whose PreFilter ran.
    ``among``: the nodes to which plugins narrowed the choice; None for all.
    """

    def __init__(self, pod: Pod, state: ClusterState, plugins: Sequence[type[Plugin]] | None = None) -> None:
        self.pod = pod
        self.state = state
        self.rejection: Rejection | None = None
        self.prepared: list[Plugin] = []
        self.among: frozenset[str] | None = None
        self.plugins: list[Plugin] = []
        self._narrowing: list[PluginName] = []
        self._prepare(order(state.release) if plugins is None else plugins)

    def _prepare(self, kinds: Sequence[type[Plugin]]) -> None:
        for kind in kinds:
            if not self._add(kind(self.pod, self.state)):
                return

    def _add(self, plugin: Plugin) -> bool:
        """Adds a plugin whose PreFilter ran; whether that of the next one runs, too."""
        self.prepared.append(plugin)
        if plugin.rejection is not None:
            self.rejection = plugin.rejection
            if not plugin.rejection.resolvable or plugin.rejection.error:
                return False
            self.plugins.append(plugin)
            return True
        if plugin.skipped:
            return True
        self.plugins.append(plugin)
        if plugin.nodes is None:
            return True
        self._narrowing.append(plugin.name)
        self.among = plugin.nodes if self.among is None else self.among & plugin.nodes
        if not self.among:
            self.rejection = Rejection(plugin.name, (NoneInCommon(tuple(sorted(self._narrowing))),))
        return bool(self.among)

    def joined(self, devices: DynamicResources) -> Chain:
        """The chain with the plugin for devices, which it was made without."""
        chain = Chain(self.pod, self.state, ())
        names = list(PluginName)
        before = [plugin for plugin in self.prepared if names.index(plugin.name) < names.index(devices.name)]
        for plugin in (*before, devices, *self.prepared[len(before) :]):
            if not chain._add(plugin):
                break
        return chain

    @property
    def devices(self) -> DynamicResources | None:
        """The plugin for devices; None where another one refused the pod before it."""
        return next((plugin for plugin in self.prepared if isinstance(plugin, DynamicResources)), None)

    def filter(self, node: NodeState) -> Rejection | None:
        """Why the pod cannot run on the node, pods that are nominated for it included; None where nothing speaks
        against it."""
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
        """What each plugin by itself says against the node."""
        return [rejection for plugin in self.plugins if (rejection := plugin.filter(node)) is not None]

    def _filter(self, node: NodeState) -> Rejection | None:
        for plugin in self.plugins:
            rejection = plugin.filter(node)
            if rejection is not None:
                return rejection
        return None

    def _nominated(self, node: NodeState) -> Iterator[Pod]:
        """The pods that are to have the node, and to which this pod has to yield."""
        for other in self.state.nominated.get(node.name, ()):
            if other.priority >= self.pod.priority and other.metadata.key != self.pod.metadata.key:
                yield other
