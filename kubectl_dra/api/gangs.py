"""Groups of pods that start together, their queues, and what makes such pods: Volcano, KAI, LeaderWorkerSet, JobSet."""

from __future__ import annotations

from typing import Annotated

from kubectl_dra.api.meta import Amount, ApiObject, Wire
from kubectl_dra.api.pods import PodCondition, PodTemplateSpec

# Volcano: scheduling.volcano.sh/v1beta1.


class VolcanoPodGroupSpec(Wire, frozen=True):
    min_member: int = 0
    min_task_member: Annotated[dict[str, int], "podset"] = {}
    queue: Annotated[str, "queue"] = ""
    min_resources: Annotated[dict[str, Amount], "resource"] = {}


class VolcanoPodGroupStatus(Wire, frozen=True):
    """``status`` of Volcano's PodGroup. ``phase`` Pending: the queue has not let it in; Inqueue: it waits for nodes."""

    phase: Annotated[str, "keep"] = ""
    conditions: tuple[PodCondition, ...] = ()
    running: int = 0


class VolcanoPodGroup(ApiObject, frozen=True):
    """A scheduling.volcano.sh PodGroup."""

    spec: VolcanoPodGroupSpec = VolcanoPodGroupSpec()
    status: VolcanoPodGroupStatus = VolcanoPodGroupStatus()


class VolcanoQueueSpec(Wire, frozen=True):
    """``spec`` of Volcano's Queue. ``capability`` is the most that it may use, ``deserved`` its share."""

    capability: Annotated[dict[str, Amount], "resource"] = {}
    deserved: Annotated[dict[str, Amount], "resource"] = {}
    parent: Annotated[str, "queue"] = ""


class VolcanoQueueStatus(Wire, frozen=True):
    """``status`` of Volcano's Queue. ``state`` other than Open: nothing is let in."""

    state: Annotated[str, "keep"] = ""
    allocated: Annotated[dict[str, Amount], "resource"] = {}


class VolcanoQueue(ApiObject, frozen=True):
    """A scheduling.volcano.sh Queue."""

    spec: VolcanoQueueSpec = VolcanoQueueSpec()
    status: VolcanoQueueStatus = VolcanoQueueStatus()


class VolcanoDependsOn(Wire, frozen=True):
    """``dependsOn`` of a task: it has no pods before all of the tasks ``name``, or ``any`` of them, are ready."""

    name: Annotated[tuple[str, ...], "podset"] = ()
    iteration: Annotated[str, "keep"] = ""


class VolcanoTask(Wire, frozen=True):
    """One entry of ``spec.tasks`` of a Volcano Job."""

    name: Annotated[str, "podset"] = ""
    replicas: int = 1
    depends_on: VolcanoDependsOn | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class VolcanoJobSpec(Wire, frozen=True):
    scheduler_name: Annotated[str, "scheduler"] = "volcano"
    queue: Annotated[str, "queue"] = ""
    tasks: tuple[VolcanoTask, ...] = ()


class VolcanoJobState(Wire, frozen=True):
    """``status.state`` of a Volcano Job."""

    phase: Annotated[str, "keep"] = ""
    reason: Annotated[str, "reason"] = ""
    message: Annotated[str, "message"] = ""


class VolcanoJobStatus(Wire, frozen=True):
    state: VolcanoJobState = VolcanoJobState()


class VolcanoJob(ApiObject, frozen=True):
    """A batch.volcano.sh Job. It has no pods before its queue has let its PodGroup in."""

    spec: VolcanoJobSpec = VolcanoJobSpec()
    status: VolcanoJobStatus = VolcanoJobStatus()

    @property
    def group_name(self) -> str:
        """What its PodGroup is called (``generateRelatedPodGroupName``)."""
        return f"{self.metadata.name}-{self.metadata.uid}"


# KAI: scheduling.run.ai.


class KaiSubGroup(Wire, frozen=True):
    """One entry of ``spec.subGroups``; it holds pods, or those whose ``parent`` it is."""

    name: Annotated[str, "podset"] = ""
    min_member: int | None = None
    min_sub_group: int | None = None
    parent: Annotated[str, "podset"] = ""


class KaiPodGroupSpec(Wire, frozen=True):
    """``spec`` of KAI's PodGroup. ``min_member`` None: 1, or ``min_sub_group`` counts instead."""

    min_member: int | None = None
    min_sub_group: int | None = None
    queue: Annotated[str, "queue"] = ""
    sub_groups: tuple[KaiSubGroup, ...] = ()
    preemption_delay: Annotated[str, "keep"] = ""


class KaiQuotaDetails(Wire, frozen=True):
    """``queueDetails`` of a reason: what the group asks of its queue, and what the queue may use at most.

    Of pods that nobody may evict, the queue's own share is the most.
    """

    queue_deserved_resources: Annotated[dict[str, Amount], "resource"] = {}
    queue_resource_limits: Annotated[dict[str, Amount], "resource"] = {}
    pod_group_requested_resources: Annotated[dict[str, Amount], "resource"] = {}
    pod_group_requested_non_preemptible_resources: Annotated[dict[str, Amount], "resource"] = {}


class KaiExplanationDetails(Wire, frozen=True):
    """``details`` of a reason."""

    queue_details: KaiQuotaDetails | None = None


class KaiExplanation(Wire, frozen=True):
    """One reason of a scheduling condition."""

    reason: Annotated[str, "reason"] = ""
    message: Annotated[str, "message"] = ""
    details: KaiExplanationDetails = KaiExplanationDetails()


class KaiSchedulingCondition(Wire, frozen=True):
    """One entry of ``status.schedulingConditions``."""

    type: Annotated[str, "condition"] = ""
    status: Annotated[str, "keep"] = ""
    node_pool: Annotated[str, "nodepool"] = ""
    reason: Annotated[str, "reason"] = ""
    message: Annotated[str, "message"] = ""
    reasons: tuple[KaiExplanation, ...] = ()
    last_transition_time: Annotated[str, "time"] = ""


class KaiPodGroupStatus(Wire, frozen=True):
    scheduling_conditions: tuple[KaiSchedulingCondition, ...] = ()


class KaiPodGroup(ApiObject, frozen=True):
    """A scheduling.run.ai PodGroup."""

    spec: KaiPodGroupSpec = KaiPodGroupSpec()
    status: KaiPodGroupStatus = KaiPodGroupStatus()


class KaiQueueSpec(Wire, frozen=True):
    parent_queue: Annotated[str, "queue"] = ""


class KaiQueue(ApiObject, frozen=True):
    """A scheduling.run.ai Queue."""

    spec: KaiQueueSpec = KaiQueueSpec()


class BindRequestSpec(Wire, frozen=True):
    """``spec`` of a BindRequest, which is called as its pod."""

    selected_node: Annotated[str, "node"] = ""


class BindRequestStatus(Wire, frozen=True):
    """``status`` of a BindRequest: Pending, Succeeded or Failed, and what failed, how often it was tried."""

    phase: Annotated[str, "keep"] = ""
    reason: Annotated[str, "message"] = ""
    failed_attempts: int = 0


class BindRequest(ApiObject, frozen=True):
    """A scheduling.run.ai BindRequest: KAI's binder binds a pod by it, and writes its claims' devices."""

    spec: BindRequestSpec = BindRequestSpec()
    status: BindRequestStatus = BindRequestStatus()


# What makes pods in groups, and may be suspended.


class JobSpec(Wire, frozen=True):
    """``spec`` of a Job. While ``suspend`` is set, it has no pods."""

    suspend: bool = False
    parallelism: int = 1
    template: PodTemplateSpec = PodTemplateSpec()


class JobStatus(Wire, frozen=True):
    conditions: tuple[PodCondition, ...] = ()


class BatchJob(ApiObject, frozen=True):
    """A batch/v1 Job."""

    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(Wire, frozen=True):
    """``template`` of a replicated job."""

    spec: JobSpec = JobSpec()


class DependsOn(Wire, frozen=True):
    """A replicated job that has to be ``Ready`` or ``Complete`` before another one is made."""

    name: Annotated[str, "podset"] = ""
    status: Annotated[str, "keep"] = ""


class ReplicatedJob(Wire, frozen=True):
    """One entry of a JobSet's ``spec.replicatedJobs``."""

    name: Annotated[str, "podset"] = ""
    replicas: int = 1
    depends_on: tuple[DependsOn, ...] = ()
    template: JobTemplate = JobTemplate()


class StartupPolicy(Wire, frozen=True):
    """``spec.startupPolicy`` of a JobSet: ``AnyOrder`` or ``InOrder``."""

    startup_policy_order: Annotated[str, "keep"] = ""


class JobSetSpec(Wire, frozen=True):
    suspend: bool = False
    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    startup_policy: StartupPolicy | None = None


class ReplicatedJobStatus(Wire, frozen=True):
    """Number of jobs of a replicated job in each state."""

    name: Annotated[str, "podset"] = ""
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0


class JobSetStatus(Wire, frozen=True):
    conditions: tuple[PodCondition, ...] = ()
    replicated_jobs_status: tuple[ReplicatedJobStatus, ...] = ()
    restarts: int = 0


class JobSet(ApiObject, frozen=True):
    """A jobset.x-k8s.io JobSet."""

    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()


class LeaderWorkerTemplate(Wire, frozen=True):
    """``spec.leaderWorkerTemplate``: one leader and ``size - 1`` workers. Leaders are like workers if not said."""

    leader_template: PodTemplateSpec | None = None
    worker_template: PodTemplateSpec = PodTemplateSpec()
    size: int = 1


class LeaderWorkerSetSpec(Wire, frozen=True):
    """``spec`` of a LeaderWorkerSet. ``startup_policy`` LeaderReady: a leader has no workers until it is ready."""

    replicas: int = 1
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()
    startup_policy: Annotated[str, "keep"] = "LeaderCreated"


class LeaderWorkerSetStatus(Wire, frozen=True):
    conditions: tuple[PodCondition, ...] = ()
    ready_replicas: int = 0
    replicas: int = 0


class LeaderWorkerSet(ApiObject, frozen=True):
    """A leaderworkerset.x-k8s.io LeaderWorkerSet."""

    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()
    status: LeaderWorkerSetStatus = LeaderWorkerSetStatus()
