"""Why the scheduler refuses a pod or a node: the base of typed reasons, each defined in its plugin's file."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class PluginName(StrEnum):
    """The plugins of the default profile, by the scheduler's names, in running order."""

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
    """One reason of one plugin. Concrete reasons have typed fields and are defined in the plugin's file."""

    @property
    def words(self) -> str:
        """The scheduler's own text, as counted in its condition message: data of Kubernetes, not our sentence."""
        raise NotImplementedError


class NotRead(Reason, frozen=True):
    """Undetermined: objects of this kind decide, and not all of them were read.

    ``otherwise`` is the reason if no further objects exist.
    """

    kind: str
    otherwise: Reason

    @property
    def words(self) -> str:
        return self.otherwise.words


class Rejection(Struct, frozen=True):
    """A plugin refuses a node (Filter) or the whole pod (PreFilter).

    ``resolvable``: evicting pods could help, so preemption examines the node (Unschedulable; else
    UnschedulableAndUnresolvable). ``error``: the plugin failed, which ends the whole attempt.
    """

    plugin: PluginName
    reasons: tuple[Reason, ...]
    resolvable: bool = False
    error: bool = False
