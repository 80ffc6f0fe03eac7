"""Groups of pods: the PodGroups and queues of Volcano and KAI, LeaderWorkerSets and JobSets that a pod points to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kubectl_dra.api.gangs import (
    BindRequest,
    JobSet,
    KaiExplanation,
    KaiPodGroup,
    LeaderWorkerSet,
    VolcanoJob,
    VolcanoPodGroup,
    VolcanoQueue,
)
from kubectl_dra.api.meta import Amount
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.snapshot import Snapshot, stand_in
from kubectl_dra.neighbours.decider import SCHEDULERS, Layer
from kubectl_dra.neighbours.no_pod import (
    GROUP_NAME,
    JOB_NAME,
    JOBSET,
    LWS,
    TASK_NAME,
    VOLCANO_GROUP,
    VOLCANO_JOB,
)

VOLCANO_QUEUE: Final = "Queue.scheduling.volcano.sh"
KAI_GROUP: Final = "PodGroup.scheduling.run.ai"
KAI_QUEUE: Final = "Queue.scheduling.run.ai"
BIND_REQUEST: Final = "BindRequest.scheduling.run.ai"
LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
_WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
_REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"
_VOLCANO_GROUPS: Final = (GROUP_NAME, "scheduling.volcano.sh/group-name")
_KAI_GROUP: Final = "pod-group-name"
_KAI_QUEUE: Final = "kai.scheduler/queue"
_SUB_GROUP: Final = "kai.scheduler/subgroup-name"


def pointers(pod: Pod, snapshot: Snapshot) -> Iterator[Pointer]:
    """The group and the queue of a pod of Volcano or KAI, and the set or the Job of Volcano that it is a part of.

    Where Volcano's queue holds the group back, also the other groups, which may have taken what it has.
    """
    space, labels = pod.metadata.namespace, pod.metadata.labels
    layer = SCHEDULERS.get(pod.scheduler_name)
    name = group_name(pod)
    if layer is Layer.VOLCANO and name:
        yield Pointer(VOLCANO_GROUP, space, name)
        if group := volcano_group_of(pod, snapshot):
            # What is above its queue has limits, too.
            yield Pointer(VOLCANO_QUEUE)
            if group.status.phase == _NOT_LET_IN:
                yield Pointer(VOLCANO_GROUP)
    if layer is Layer.VOLCANO and JOB_NAME in pod.metadata.annotations and stand_in(pod) is None:
        yield Pointer(VOLCANO_JOB, space, pod.metadata.annotations[JOB_NAME])
    if layer is Layer.KAI and name:
        yield Pointer(KAI_GROUP, space, name)
    if layer is Layer.KAI:
        yield Pointer(BIND_REQUEST, space, pod.metadata.name)
    if layer is Layer.KAI and _KAI_QUEUE in labels:
        yield Pointer(KAI_QUEUE, name=labels[_KAI_QUEUE])
    if LWS_NAME in labels:
        yield Pointer(LWS, space, labels[LWS_NAME])
    if JOBSET_NAME in labels:
        yield Pointer(JOBSET, space, labels[JOBSET_NAME])


def group_name(pod: Pod) -> str:
    """The PodGroup of Volcano or KAI that the pod names; empty if it names none."""
    keys = (_KAI_GROUP,) if _is_of_kai(pod) else _VOLCANO_GROUPS
    return next((pod.metadata.annotations[key] for key in keys if key in pod.metadata.annotations), "")


def volcano_group_of(pod: Pod, snapshot: Snapshot) -> VolcanoPodGroup | None:
    """The pod's PodGroup of Volcano, if it was read."""
    return snapshot.others.get(VOLCANO_GROUP, {}).get((pod.metadata.namespace, group_name(pod)))


def kai_group_of(pod: Pod, snapshot: Snapshot) -> KaiPodGroup | None:
    """The pod's PodGroup of KAI, if it was read."""
    return snapshot.others.get(KAI_GROUP, {}).get((pod.metadata.namespace, group_name(pod)))


def bind_request_of(pod: Pod, snapshot: Snapshot) -> BindRequest | None:
    """By which KAI binds the pod, if that was read."""
    return snapshot.others.get(BIND_REQUEST, {}).get((pod.metadata.namespace, pod.metadata.name))


# How the groups of Volcano and KAI stand.


class QueueUse(NamedTuple):
    """Amount of a resource that a queue of Volcano uses, and the most that it may."""

    resource: str
    used: str
    most: str


class GroupPart(NamedTuple):
    """A part of a PodGroup, of which so many pods have to start: a task of Volcano's, a subgroup of KAI's."""

    field: str
    name: str
    minimum: int


class GroupState(NamedTuple):
    """A PodGroup of Volcano or KAI: how many members it needs, its queue, and what its scheduler says.

    ``held``: the queue does not let it in, or will not without a change where ``never``. ``delay``: how long KAI ends
    no other pods for it, while that time has not passed. ``let_in``: of those that were read, the groups that the queue
    has let in and that have no nodes: they count in its quota.
    """

    kind: str
    name: str
    minimum: int
    queue: str
    said: tuple[str, ...] = ()
    phase: str = ""
    held: bool = False
    never: bool = False
    reason: str = ""
    uses: tuple[QueueUse, ...] = ()
    parts: tuple[GroupPart, ...] = ()
    let_in: tuple[str, ...] = ()
    delay: str = ""


_NOT_LET_IN: Final = "Pending"
"""The phase of a group of Volcano that its queue has not enqueued."""
_OVER_QUOTA: Final = ("OverLimit", "NonPreemptibleOverQuota", "QueueDoesNotExist")
"""Reasons of KAI that mean the queue (pkg/apis/scheduling/v2alpha2/podgroup_types.go)."""
_NO_QUEUE: Final = "QueueDoesNotExist"
_DELAYED: Final = "PreemptionDelayNotElapsed"


def group_of(pod: Pod, snapshot: Snapshot) -> GroupState | None:
    """The state of the pod's group of Volcano or KAI; None if it is in none, or the group was not read."""
    layer = SCHEDULERS.get(pod.scheduler_name)
    if layer is Layer.VOLCANO and (group := volcano_group_of(pod, snapshot)) is not None:
        said = tuple(
            condition.message
            for condition in group.status.conditions
            if condition.status == "True" and condition.message
        )
        # Pending: not enqueued; Inqueue: let in, and waiting for nodes.
        held, queue = group.status.phase == _NOT_LET_IN, group.spec.queue or "default"
        state = snapshot.others.get(VOLCANO_QUEUE, {}).get(("", queue))
        shut = ""
        if state is None and not said and not snapshot.unread((VOLCANO_QUEUE,)):
            shut = "queue does not exist"
        for volcano_queue in _with_those_above(state, snapshot) if state is not None else ():
            which = "queue" if volcano_queue is state else f"queue {volcano_queue.metadata.name} above it"
            if volcano_queue.status.state not in ("", "Open"):
                shut = shut or f"{which} is {volcano_queue.status.state}"
            elif more := _too_much(group.spec.min_resources, volcano_queue.spec.capability):
                shut = shut or (
                    more if volcano_queue is state else f"{more} (queue {volcano_queue.metadata.name} above it)"
                )
        tasks = group.spec.min_task_member
        # Volcano counts no tasks where the group starts with fewer (CheckTaskValid in pkg/scheduler/api/job_info.go).
        counted = tasks.items() if group.spec.min_member >= sum(tasks.values()) else ()
        return GroupState(
            *(VOLCANO_GROUP, group.metadata.name, group.spec.min_member, queue, said, group.status.phase),
            held=held,
            never=held and bool(shut),
            reason=shut,
            uses=tuple(_uses(state)) if state is not None else (),
            let_in=tuple(_let_in(queue, snapshot)) if held else (),
            parts=tuple(GroupPart("spec.minTaskMember", name, least) for name, least in counted if least),
        )
    if layer is Layer.KAI and (kai := kai_group_of(pod, snapshot)) is not None:
        open_ = [condition for condition in kai.status.scheduling_conditions if condition.status != "False"]
        reasons = [reason for condition in open_ for reason in condition.reasons]
        said = tuple(
            text
            for text in (*(explanation.message for explanation in reasons), *(condition.message for condition in open_))
            if text
        )
        named = [*(reason.reason for reason in reasons), *(condition.reason for condition in open_)]
        parts = tuple(_sub_groups(kai, pod))
        least = kai.spec.min_member or sum(part.minimum for part in parts) or 1
        over = next((reason for reason in named if reason in _OVER_QUOTA), "")
        return GroupState(
            *(KAI_GROUP, kai.metadata.name, least, kai.spec.queue, said),
            held=bool(over),
            never=over == _NO_QUEUE or any(map(_beyond, reasons)),
            reason=over,
            parts=parts,
            delay=kai.spec.preemption_delay if _DELAYED in named else "",
        )
    return None


def _sub_groups(group: KaiPodGroup, pod: Pod) -> Iterator[GroupPart]:
    """The subgroups of a KAI group that have pods and have to start; where some may be left out, the pod's own."""
    every = group.spec.sub_groups
    some = group.spec.min_sub_group is not None or any(sub_group.min_sub_group is not None for sub_group in every)
    parents, own = {sub_group.parent for sub_group in every}, pod.metadata.labels.get(_SUB_GROUP, "")
    for sub_group in every:
        least = 1 if sub_group.min_member is None else sub_group.min_member
        if sub_group.name not in parents and least and (not some or sub_group.name == own):
            yield GroupPart("spec.subGroups", sub_group.name, least)


def part_of(pod: Pod) -> str:
    """The task of Volcano, or the subgroup of KAI, that a pod is in; empty for none."""
    meta = pod.metadata
    return meta.labels.get(_SUB_GROUP, "") if _is_of_kai(pod) else meta.annotations.get(TASK_NAME, "")


def _is_of_kai(pod: Pod) -> bool:
    return SCHEDULERS.get(pod.scheduler_name) is Layer.KAI


def _too_much(wanted: Mapping[str, Amount], most: Mapping[str, Amount]) -> str:
    """What a group asks for that its queue may never use, even if it were empty."""
    for resource in sorted(wanted.keys() & most.keys()):
        try:
            least, limit = Quantity.from_json(wanted[resource]), Quantity.from_json(most[resource])
        except QuantityError:
            continue
        # KAI writes -1 for no limit.
        if limit.nanos >= 0 and least > limit:
            return f"{wanted[resource]} {resource} are needed, and the queue may use {most[resource]}"
    return ""


def _beyond(reason: KaiExplanation) -> bool:
    """Whether the group asks more of its queue than that may use, even if it were empty."""
    told = reason.details.queue_details
    if told is None:
        return False
    kept = _too_much(told.pod_group_requested_non_preemptible_resources, told.queue_deserved_resources)
    return bool(_too_much(told.pod_group_requested_resources, told.queue_resource_limits) or kept)


def _with_those_above(queue: VolcanoQueue, snapshot: Snapshot) -> list[VolcanoQueue]:
    """A queue of Volcano and those above it, as far as they were read."""
    known: Mapping[tuple[str, str], VolcanoQueue] = snapshot.others.get(VOLCANO_QUEUE, {})
    out = [queue]
    while (above := known.get(("", out[-1].spec.parent))) is not None and above not in out:
        out.append(above)
    return out


def _let_in(queue: str, snapshot: Snapshot) -> Iterator[str]:
    groups: Mapping[tuple[str, str], VolcanoPodGroup] = snapshot.others.get(VOLCANO_GROUP, {})
    for group in groups.values():
        if group.status.phase == "Inqueue" and (group.spec.queue or "default") == queue:
            yield group.metadata.key


def _uses(queue: VolcanoQueue) -> Iterator[QueueUse]:
    for resource, most in queue.spec.capability.items():
        yield QueueUse(resource, str(queue.status.allocated.get(resource, "0")), str(most))


def group_unread(pod: Pod, snapshot: Snapshot) -> bool:
    """Whether the pod names a group of Volcano or KAI, and such groups were not read."""
    kind = KAI_GROUP if _is_of_kai(pod) else VOLCANO_GROUP
    return bool(group_name(pod)) and bool(snapshot.unread((kind,), pod.metadata.namespace))


def members_of(pod: Pod, snapshot: Snapshot) -> tuple[Pod, ...]:
    """The pods of the same group of Volcano or KAI that have not ended, this one first."""
    name, space = group_name(pod), pod.metadata.namespace
    others = (
        other
        for (where, _), other in snapshot.pods.items()
        if where == space and other.key != pod.key and not other.finished and group_name(other) == name
    )
    return (pod, *(other for other in others if other.scheduler_name == pod.scheduler_name))


# What a LeaderWorkerSet or a JobSet has not made yet.


class Later(NamedTuple):
    """Pods that do not exist yet, because others have to be ready, or have ended, first."""

    kind: str
    name: str
    what: str
    until: str


def later_pods(pod: Pod, snapshot: Snapshot) -> Iterator[Later]:
    """What the set of a pod makes only after this pod, or its like, runs."""
    space, labels = pod.metadata.namespace, pod.metadata.labels
    lws: LeaderWorkerSet | None = snapshot.others.get(LWS, {}).get((space, labels.get(LWS_NAME, "")))
    if lws is not None and lws.spec.startup_policy == "LeaderReady" and labels.get(_WORKER_INDEX) == "0":
        size = lws.spec.leader_worker_template.size
        if size > 1:
            what = f"{size - 1} worker{'s' if size > 2 else ''} of this group"
            yield Later("LeaderWorkerSet", lws.metadata.name, what, "this leader is ready (startupPolicy LeaderReady)")
    named = pod.metadata.annotations.get(JOB_NAME, "")
    of_volcano: VolcanoJob | None = snapshot.others.get(VOLCANO_JOB, {}).get((space, named))
    for task in of_volcano.spec.tasks if of_volcano is not None else ():
        if task.depends_on is not None and part_of(pod) in task.depends_on.name:
            yield Later("Job", named, f"pods of task {task.name}", f"task {part_of(pod)} is ready (dependsOn)")
    jobset: JobSet | None = snapshot.others.get(JOBSET, {}).get((space, labels.get(JOBSET_NAME, "")))
    own = labels.get(_REPLICATED_JOB, "")
    if jobset is None or not own:
        return
    policy = jobset.spec.startup_policy
    names = [job.name for job in jobset.spec.replicated_jobs]
    if policy is not None and policy.startup_policy_order == "InOrder" and own in names:
        for name in names[names.index(own) + 1 :]:
            yield Later("JobSet", jobset.metadata.name, f"jobs {name}", f"{own} is ready (startupPolicy InOrder)")
    for job in jobset.spec.replicated_jobs:
        for depends_on in job.depends_on:
            if depends_on.name == own:
                until = f"{own} is {'ready' if depends_on.status == 'Ready' else 'complete'} (dependsOn)"
                yield Later("JobSet", jobset.metadata.name, f"jobs {job.name}", until)
