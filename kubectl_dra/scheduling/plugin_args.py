"""A plugin's arguments in a KubeSchedulerConfiguration (``pluginConfig[].args``), as values with the API's
defaults.

Source: kubescheduler.config.k8s.io/v1. As in the scheduler, an unknown field is an error.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubectl_dra.api.labels import LabelSelector
from kubectl_dra.api.nodes import NodeAffinity

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY: Final = "RequestedToCapacityRatio"
SYSTEM_DEFAULTS: Final = "System"
FILTER_TIMEOUT: Final = "10s"


class Strict(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of the structs read from a configuration."""


class Enabled(Strict, frozen=True, kw_only=True):
    """A plugin of an extension point; ``weight`` 0 means not given."""

    name: str
    weight: int = 0


class PluginSet(Strict, frozen=True, kw_only=True):
    """The configuration of one extension point; one called ``*`` disables all."""

    enabled: tuple[Enabled, ...] = ()
    disabled: tuple[Enabled, ...] = ()

    @property
    def off(self) -> frozenset[str]:
        """The names that are disabled."""
        return frozenset(plugin.name for plugin in self.disabled)


class _Args(Strict, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""


class ResourceWeight(Strict, frozen=True, kw_only=True):
    """A resource that a score counts."""

    name: str
    weight: int = 1


CPU_AND_MEMORY: Final = (ResourceWeight(name="cpu"), ResourceWeight(name="memory"))


class ShapePoint(Strict, frozen=True, kw_only=True):
    """A point of a scoring function: maps a utilization in percent to a score of 0 to 10."""

    utilization: int
    score: int


class RatioShape(Strict, frozen=True, kw_only=True):
    """The function of RequestedToCapacityRatio."""

    shape: tuple[ShapePoint, ...] = ()


class ScoringStrategy(Strict, frozen=True, kw_only=True):
    """Strategy by which NodeResourcesFit scores what is left or used on a node."""

    type: str = ""
    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RatioShape | None = None


class FitArgs(_Args, frozen=True, kw_only=True):
    """NodeResourcesFit."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type=LEAST_ALLOCATED)


class BalancedAllocationArgs(_Args, frozen=True, kw_only=True):
    """NodeResourcesBalancedAllocation."""

    resources: tuple[ResourceWeight, ...] = CPU_AND_MEMORY


class DefaultConstraint(Strict, frozen=True, kw_only=True):
    """A topology spread constraint for pods that have none. Optional fields are those of the pod's constraints."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        """Whether it rules out nodes that break it."""
        return self.when_unsatisfiable == "DoNotSchedule"


_BY_HOST_AND_ZONE: Final = (
    DefaultConstraint(max_skew=3, topology_key="kubernetes.io/hostname", when_unsatisfiable="ScheduleAnyway"),
    DefaultConstraint(max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"),
)
"""The scheduler's own constraints."""


class SpreadArgs(_Args, frozen=True, kw_only=True):
    """PodTopologySpread."""

    default_constraints: tuple[DefaultConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTS

    @property
    def system(self) -> bool:
        """Whether the scheduler's own constraints apply, which also score nodes that lack a label."""
        return self.defaulting_type == SYSTEM_DEFAULTS

    @property
    def constraints(self) -> tuple[DefaultConstraint, ...]:
        """The constraints for pods that have none."""
        return _BY_HOST_AND_ZONE if self.system else self.default_constraints


class NodeAffinityArgs(_Args, frozen=True, kw_only=True):
    """NodeAffinity: what the profile requires of nodes for every pod, in addition to the pod's own affinity."""

    added_affinity: NodeAffinity = NodeAffinity()


class InterPodAffinityArgs(_Args, frozen=True, kw_only=True):
    """InterPodAffinity: scores."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class DefaultPreemptionArgs(_Args, frozen=True, kw_only=True):
    """DefaultPreemption: the minimum number of nodes to examine."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class VolumeBindingArgs(_Args, frozen=True, kw_only=True):
    """VolumeBinding. ``shape`` scores storage utilization; empty: lower is better."""

    bind_timeout_seconds: int = 600
    shape: tuple[ShapePoint, ...] = ()


class DynamicResourcesArgs(_Args, frozen=True, kw_only=True):
    """DynamicResources: Go durations."""

    filter_timeout: str = FILTER_TIMEOUT
    binding_timeout: str = "10m"

    @property
    def takes_its_time(self) -> bool:
        """Whether a search for devices is never stopped."""
        return not any(digit in self.filter_timeout for digit in "123456789")


class PluginArgs(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of all plugins that have some."""

    fit: FitArgs = FitArgs()
    balanced_allocation: BalancedAllocationArgs = BalancedAllocationArgs()
    spread: SpreadArgs = SpreadArgs()
    node_affinity: NodeAffinityArgs = NodeAffinityArgs()
    inter_pod_affinity: InterPodAffinityArgs = InterPodAffinityArgs()
    preemption: DefaultPreemptionArgs = DefaultPreemptionArgs()
    volume_binding: VolumeBindingArgs = VolumeBindingArgs()
    dynamic_resources: DynamicResourcesArgs = DynamicResourcesArgs()


NO_ARGS: Final = PluginArgs()
