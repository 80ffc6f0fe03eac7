"""Why the scheduler refuses a pod or a node: typed reasons, each in the file of its plugin."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class PluginName(StrEnum):
    """The plugins of the default profile, by the scheduler's own names, in the order in which it runs them."""

    SCHEDULING_GATES = "SchedulingGates"
    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    NODE_NAME = "NodeName"
    TAINT_TOLERATION = "TaintToleration"
    NODE_AFFINITY = "NodeAffinity"
    NODE_PORTS = "NodePorts"
    NODE_RESOURCES_FIT = "NodeResourcesFit"
    VOLUME_RESTRICTIONS = "VolumeRestrictions"
    NODE_VOLUME_LIMITS = "NodeVolumeLimits"
    VOLUME_BINDING = "VolumeBinding"
    VOLUME_ZONE = "VolumeZone"
    POD_TOPOLOGY_SPREAD = "PodTopologySpread"
    INTER_POD_AFFINITY = "InterPodAffinity"
    DYNAMIC_RESOURCES = "DynamicResources"
    DEFAULT_PREEMPTION = "DefaultPreemption"
    NODE_RESOURCES_BALANCED_ALLOCATION = "NodeResourcesBalancedAllocation"
    IMAGE_LOCALITY = "ImageLocality"
    NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
    GANG_SCHEDULING = "GangScheduling"


class Reason(Struct, frozen=True):
    """One reason of one plugin. A concrete reason has typed fields and stands in the file of its plugin."""

    @property
    def words(self) -> str:
        """The scheduler's own text, as its condition message counts it: data of Kubernetes, not a sentence of ours."""
        raise NotImplementedError


class NotRead(Reason, frozen=True):
    """Nobody knows: objects of this kind decide, and not all of them were read.

    ``otherwise`` is the reason if what was found is all there is.
    """

    kind: str
    otherwise: Reason

    @property
    def words(self) -> str:
        return self.otherwise.words


class Rejection(Struct, frozen=True):
    """A plugin refuses a node (Filter), or the pod as a whole (PreFilter).

    ``resolvable``: evicting pods could help, so that preemption looks at the node (Unschedulable; else
    UnschedulableAndUnresolvable). ``error``: the plugin could not tell, which ends the whole attempt.
    """

    plugin: PluginName
    reasons: tuple[Reason, ...]
    resolvable: bool = False
    error: bool = False
