"""Objects other than nodes that affect pods: priorities, budgets, quotas, limits, runtime classes, accounts, groups."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from kubectl_dra.api.labels import LabelSelector, Requirement
from kubectl_dra.api.meta import Amount, ApiObject, Wire
from kubectl_dra.api.nodes import Toleration
from kubectl_dra.api.pods import ClaimStatus


class PriorityClass(ApiObject, frozen=True):
    """A scheduling.k8s.io/v1 PriorityClass."""

    value: int = 0
    global_default: bool = False
    preemption_policy: Annotated[str, "keep"] = ""


class RuntimeClassOverhead(Wire, frozen=True):
    """``overhead`` of a RuntimeClass."""

    pod_fixed: Annotated[dict[str, Amount], "resource"] = {}


class RuntimeClassScheduling(Wire, frozen=True):
    """``scheduling`` of a RuntimeClass."""

    node_selector: Annotated[dict[str, str], "labels"] = {}
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(ApiObject, frozen=True):
    """A node.k8s.io/v1 RuntimeClass."""

    handler: str = ""
    overhead: RuntimeClassOverhead | None = None
    scheduling: RuntimeClassScheduling | None = None


class PodDisruptionBudgetSpec(Wire, frozen=True):
    """``spec`` of a PodDisruptionBudget. ``selector`` None matches no pod."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: Annotated[dict[str, Annotated[str, "time"]], "pod"] = {}


class PodDisruptionBudget(ApiObject, frozen=True):
    """A policy/v1 PodDisruptionBudget."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class ScopeSelector(Wire, frozen=True):
    """``spec.scopeSelector`` of a quota. The key of an expression is called ``scopeName``."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ScopeRequirement(Wire, frozen=True):
    """One expression of a quota's scope selector."""

    scope_name: Annotated[str, "keep"] = ""
    operator: Annotated[str, "keep"] = ""
    values: Annotated[tuple[str, ...], "priorityclass"] = ()

    def as_requirement(self) -> Requirement:
        """The expression as a label requirement over scope names."""
        return Requirement(self.scope_name, self.operator, self.values)


class ResourceQuotaSpec(Wire, frozen=True):
    hard: Annotated[dict[str, Amount], "resource"] = {}
    scopes: Annotated[tuple[str, ...], "keep"] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Wire, frozen=True):
    hard: Annotated[dict[str, Amount], "resource"] = {}
    used: Annotated[dict[str, Amount], "resource"] = {}


class ResourceQuota(ApiObject, frozen=True):
    """A v1 ResourceQuota."""

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()

    @property
    def hard(self) -> dict[str, str]:
        """The limits, by resource name: from the status if the controller wrote it, else from the spec."""
        return {name: str(value) for name, value in (self.status.hard or self.spec.hard).items()}

    @property
    def used(self) -> dict[str, str]:
        """What is used, by resource name."""
        return {name: str(value) for name, value in self.status.used.items()}


class LimitRangeItem(Wire, frozen=True):
    """One entry of ``spec.limits``. ``type`` is Container, Pod or PersistentVolumeClaim."""

    type: Annotated[str, "keep"] = ""
    max: Annotated[dict[str, Amount], "resource"] = {}
    min: Annotated[dict[str, Amount], "resource"] = {}
    default: Annotated[dict[str, Amount], "resource"] = {}
    default_request: Annotated[dict[str, Amount], "resource"] = {}
    max_limit_request_ratio: Annotated[dict[str, Amount], "resource"] = {}


class LimitRangeSpec(Wire, frozen=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(ApiObject, frozen=True):
    """A v1 LimitRange."""

    spec: LimitRangeSpec = LimitRangeSpec()


class ServiceAccount(ApiObject, frozen=True):
    """A v1 ServiceAccount; only the name matters."""


class PodSelectorSpec(Wire, frozen=True):
    """``spec`` of an object that selects pods. A Service and a ReplicationController select by labels alone."""

    selector: Annotated[dict[str, Any], "selector"] = {}


class PodSelecting(ApiObject, frozen=True):
    """A Service, ReplicationController, ReplicaSet or StatefulSet, whose pods default topology spread counts."""

    spec: PodSelectorSpec = PodSelectorSpec()


class GangPolicy(Wire, frozen=True):
    """``gang`` of a scheduling policy: at least ``min_count`` pods are scheduled together."""

    min_count: int = 0


class GroupPolicy(Wire, frozen=True):
    """``policy`` (1.35) or ``schedulingPolicy`` of a pod group; the alternative to ``gang`` is ``basic``."""

    gang: GangPolicy | None = None
    basic: dict[str, Any] | None = None


class GroupTopologyConstraint(Wire, frozen=True):
    """A topology key whose domain all pods of the group share."""

    key: Annotated[str, "key"] = ""


class GroupConstraints(Wire, frozen=True):
    """``schedulingConstraints`` of a PodGroup."""

    topology: tuple[GroupTopologyConstraint, ...] = ()


class PodGroupSpec(Wire, frozen=True):
    scheduling_policy: GroupPolicy = GroupPolicy()
    scheduling_constraints: GroupConstraints | None = None
    priority_class_name: Annotated[str, "priorityclass"] = ""
    priority: int | None = None
    disruption_mode: Annotated[str | dict[str, Any], "keep"] = ""
    parent_composite_pod_group_name: Annotated[str, "podgroup"] = ""


class PodGroupStatus(Wire, frozen=True):
    resource_claim_statuses: tuple[ClaimStatus, ...] = ()


class PodGroup(ApiObject, frozen=True):
    """A scheduling.k8s.io PodGroup (v1alpha2 in 1.36)."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


class WorkloadPodGroup(Wire, frozen=True):
    """One entry of ``spec.podGroups`` of a Workload of 1.35."""

    name: Annotated[str, "podgroup"] = ""
    policy: GroupPolicy = GroupPolicy()


class WorkloadSpec(Wire, frozen=True):
    pod_groups: tuple[WorkloadPodGroup, ...] = field(default=())


class Workload(ApiObject, frozen=True):
    """A scheduling.k8s.io Workload (v1alpha1 in 1.35)."""

    spec: WorkloadSpec = WorkloadSpec()
