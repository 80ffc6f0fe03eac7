"""Kueue's objects (kueue.x-k8s.io/v1beta2, also readable as v1beta1), reduced to what says why a workload waits."""

from __future__ import annotations

from typing import Annotated

from kubectl_dra.api.meta import Amount, ApiObject, Wire
from kubectl_dra.api.pods import PodCondition, PodTemplateSpec


class KueuePodSet(Wire, frozen=True):
    """One entry of a Workload's ``spec.podSets``: so many pods of one template."""

    name: Annotated[str, "podset"] = "main"
    count: int = 1
    min_count: int | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class KueueWorkloadSpec(Wire, frozen=True):
    """``spec`` of a Workload. ``active`` false: somebody, or Kueue itself, has deactivated it."""

    pod_sets: tuple[KueuePodSet, ...] = ()
    queue_name: Annotated[str, "localqueue"] = ""
    priority: int | None = None
    active: bool = True


class KueueAssignment(Wire, frozen=True):
    """One entry of ``status.admission.podSetAssignments``: what an admitted set of pods may use."""

    name: Annotated[str, "podset"] = ""
    flavors: Annotated[dict[str, str], "resource"] = {}
    resource_usage: Annotated[dict[str, Amount], "resource"] = {}
    count: int | None = None


class KueueAdmission(Wire, frozen=True):
    """``status.admission``: set while the Workload holds quota."""

    cluster_queue: Annotated[str, "clusterqueue"] = ""
    pod_set_assignments: tuple[KueueAssignment, ...] = ()


class KueueRequeueState(Wire, frozen=True):
    """``status.requeueState``: how often pods were not ready in time, and when the Workload is queued again."""

    count: int = 0
    requeue_at: Annotated[str, "time"] = ""


class KueueCheckState(Wire, frozen=True):
    """One entry of ``status.admissionChecks``; ``state`` is Pending, Ready, Retry or Rejected."""

    name: Annotated[str, "admissioncheck"] = ""
    state: Annotated[str, "keep"] = ""
    message: Annotated[str, "message"] = ""


class KueueRequest(Wire, frozen=True):
    """One entry of ``status.resourceRequests``: what a set of pods without quota was found to ask for."""

    name: Annotated[str, "podset"] = ""
    resources: Annotated[dict[str, Amount], "resource"] = {}


class KueueWorkloadStatus(Wire, frozen=True):
    conditions: tuple[PodCondition, ...] = ()
    admission: KueueAdmission | None = None
    requeue_state: KueueRequeueState | None = None
    admission_checks: tuple[KueueCheckState, ...] = ()
    resource_requests: tuple[KueueRequest, ...] = ()


class KueueWorkload(ApiObject, frozen=True):
    """A kueue.x-k8s.io Workload: what Kueue knows of a job, a group of pods or a pod, which owns it."""

    spec: KueueWorkloadSpec = KueueWorkloadSpec()
    status: KueueWorkloadStatus = KueueWorkloadStatus()

    def condition(self, kind: str) -> PodCondition | None:
        """The condition of that type, if any."""
        return next((condition for condition in self.status.conditions if condition.type == kind), None)


class KueueQuota(Wire, frozen=True):
    """One resource of a flavor in a ClusterQueue or Cohort: what it has, may take of others besides, and lend them."""

    name: Annotated[str, "resource"] = ""
    nominal_quota: Amount = "0"
    borrowing_limit: Amount | None = None
    lending_limit: Amount | None = None


class KueueFlavor(Wire, frozen=True):
    """One entry of ``flavors`` of a resource group."""

    name: Annotated[str, "flavor"] = ""
    resources: tuple[KueueQuota, ...] = ()


class KueueResourceGroup(Wire, frozen=True):
    """One entry of ``spec.resourceGroups``: a Workload that asks for another resource is never admitted."""

    covered_resources: Annotated[tuple[str, ...], "resource"] = ()
    flavors: tuple[KueueFlavor, ...] = ()


class ClusterQueueSpec(Wire, frozen=True):
    """``spec`` of a ClusterQueue. ``cohort_name`` is called ``cohort`` in v1beta1."""

    resource_groups: tuple[KueueResourceGroup, ...] = ()
    cohort_name: Annotated[str, "cohort"] = ""
    cohort: Annotated[str, "cohort"] = ""
    stop_policy: Annotated[str, "keep"] = ""


class KueueResourceUsage(Wire, frozen=True):
    """Amount of a resource that is held, and the part of it that is borrowed."""

    name: Annotated[str, "resource"] = ""
    total: Amount = "0"
    borrowed: Amount = "0"


class KueueFlavorUsage(Wire, frozen=True):
    """What is held of a flavor."""

    name: Annotated[str, "flavor"] = ""
    resources: tuple[KueueResourceUsage, ...] = ()


class ClusterQueueStatus(Wire, frozen=True):
    """``status`` of a ClusterQueue. ``flavors_reservation`` is what counts against the quota."""

    conditions: tuple[PodCondition, ...] = ()
    flavors_reservation: tuple[KueueFlavorUsage, ...] = ()
    pending_workloads: int = 0
    reserving_workloads: int = 0
    admitted_workloads: int = 0


class ClusterQueue(ApiObject, frozen=True):
    """A kueue.x-k8s.io ClusterQueue."""

    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: ClusterQueueStatus = ClusterQueueStatus()

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that it has quota for."""
        return tuple(name for group in self.spec.resource_groups for name in group.covered_resources)

    @property
    def cohort(self) -> str:
        """The cohort that it borrows from and lends to; empty if it does neither."""
        return self.spec.cohort_name or self.spec.cohort


class CohortSpec(Wire, frozen=True):
    """``spec`` of a Cohort: quota of its own, and its parent, called ``parent`` before v1beta1."""

    parent_name: Annotated[str, "cohort"] = ""
    parent: Annotated[str, "cohort"] = ""
    resource_groups: tuple[KueueResourceGroup, ...] = ()


class Cohort(ApiObject, frozen=True):
    """A kueue.x-k8s.io Cohort. A cohort that ClusterQueues name needs none: it has then no quota and no parent."""

    spec: CohortSpec = CohortSpec()


class LocalQueueSpec(Wire, frozen=True):
    cluster_queue: Annotated[str, "clusterqueue"] = ""
    stop_policy: Annotated[str, "keep"] = ""


class LocalQueueStatus(Wire, frozen=True):
    conditions: tuple[PodCondition, ...] = ()
    pending_workloads: int = 0


class LocalQueue(ApiObject, frozen=True):
    """A kueue.x-k8s.io LocalQueue: the queue that a job names, in its namespace."""

    spec: LocalQueueSpec = LocalQueueSpec()
    status: LocalQueueStatus = LocalQueueStatus()
