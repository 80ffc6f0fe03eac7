"""Workloads without a pod: suspended, waiting for others, or a virtual machine of which none can be made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.gangs import BatchJob, JobSet, LeaderWorkerSet, VolcanoJob, VolcanoPodGroup
from kubectl_dra.api.meta import ObjectMeta, OwnerReference
from kubectl_dra.api.neighbour_kinds import Conditioned, kind_here
from kubectl_dra.api.pods import Pod, PodTemplateSpec
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.snapshot import Snapshot, StandIn, stand_in

INSTANCE: Final = "VirtualMachineInstance.kubevirt.io"
_KIND: Final = "VirtualMachineInstance"
_FAILED: Final = "FailedCreate"
_TWICE: Final = re.compile(r"spec\.resourceClaims\[\d+\]\.name: Duplicate value")


class UnmadeLauncher(Struct, frozen=True):
    """An instance without its pod, and the server's words. ``twice``: it refuses a claim that is listed twice."""

    namespace: str
    name: str
    message: str
    count: int = 0
    since: str = ""

    @property
    def twice(self) -> bool:
        """Whether KubeVirt listed one claim for each of several devices (kubevirt#16769)."""
        return _TWICE.search(self.message) is not None


def unmade(snapshot: Snapshot, namespace: str = "") -> Iterator[UnmadeLauncher]:
    """The instances of which no pod exists and none could be made, by their newest event, else their condition."""
    launchers: dict[tuple[str, str], UnmadeLauncher] = {}
    known: dict[tuple[str, str], Conditioned] = snapshot.others.get(INSTANCE, {})  # type: ignore[assignment]
    for (space, name), instance in known.items():
        for condition in instance.status.conditions:
            if condition.type == "Synchronized" and condition.status == "False" and condition.reason == _FAILED:
                since = condition.last_transition_time
                launchers[space, name] = UnmadeLauncher(space, name, condition.message, since=since)
    for event in sorted(snapshot.events, key=lambda event: event.last):
        if event.kind == _KIND and event.reason == _FAILED:
            key = event.namespace, event.name
            launchers[key] = UnmadeLauncher(*key, event.message, event.count, event.first or event.last)
    if not launchers:
        return
    have = {
        (space, owner.name)
        for (space, _), pod in snapshot.pods.items()
        if (owner := pod.metadata.controller()) is not None and owner.kind == _KIND
    }
    for key, launcher in sorted(launchers.items()):
        if namespace in ("", key[0]) and key not in have:
            yield launcher


Maker: TypeAlias = BatchJob | JobSet | LeaderWorkerSet | VolcanoJob
JOB: Final = "Job.batch"
JOBSET: Final = "JobSet.jobset.x-k8s.io"
LWS: Final = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
VOLCANO_JOB: Final = "Job.batch.volcano.sh"
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
JOB_NAME: Final = "volcano.sh/job-name"
TASK_NAME: Final = "volcano.sh/task-spec"
VOLCANO_GROUP: Final = "PodGroup.scheduling.volcano.sh"
MAKERS: Final[Mapping[str, tuple[str, ...]]] = {
    "Job": (JOB, VOLCANO_JOB),
    VOLCANO_JOB: (VOLCANO_JOB,),
    "JobSet": (JOBSET,),
    "LeaderWorkerSet": (LWS,),
}
"""The kinds that may have no pods for a reason that stands in the object, by the words for them."""
_VERSIONS: Final = {
    JOB: "batch/v1",
    VOLCANO_JOB: "batch.volcano.sh/v1alpha1",
    JOBSET: "jobset.x-k8s.io/v1alpha2",
    LWS: "leaderworkerset.x-k8s.io/v1",
}


def maker_pointers(kind: str, name: str, namespace: str, snapshot: Snapshot) -> Iterator[Pointer]:
    """What to read of a workload of one of ``MAKERS``; of several kinds of that name those that are served."""
    first, *others = MAKERS[kind]
    for known in (first, *(other for other in others if other in (snapshot.served or ()))):
        yield Pointer(known, namespace, name)


def would_make(kind: str, name: str, namespace: str, snapshot: Snapshot) -> Pod | None:
    """A pod as the workload would make it; None if the workload is not there, or has no template for one."""
    makers: list[tuple[str, Maker]] = [
        (known, snapshot.others[known][namespace, name])
        for known in MAKERS.get(kind, ())
        if (namespace, name) in snapshot.others.get(known, {})
    ]
    known, maker = next(iter(makers), ("", None))
    template = next(_templates(maker), None) if maker is not None else None
    if maker is None or template is None:
        return None
    meta = maker.metadata
    owner = OwnerReference(known.partition(".")[0], name, meta.uid, controller=True, api_version=_VERSIONS[known])
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        # Queues are named on the workload.
        labels={**meta.labels, **template.metadata.labels},
        annotations=StandIn(f"{owner.kind} {namespace}/{name}").annotations | _of_volcano(maker, snapshot),
        owners=(owner, *meta.owners),
    )
    if isinstance(maker, VolcanoJob):
        return Pod(metadata, replace(template.spec, scheduler_name=maker.spec.scheduler_name))
    return Pod(metadata, template.spec)


def _of_volcano(maker: Maker, snapshot: Snapshot) -> dict[str, str]:
    """The annotations with which Volcano's controller makes pods of a Job."""
    if not isinstance(maker, VolcanoJob):
        return {}
    groups: Mapping[tuple[str, str], VolcanoPodGroup] = snapshot.others.get(VOLCANO_GROUP, {})
    own = (
        group.metadata.name
        for group in groups.values()
        if any(owner.uid == maker.metadata.uid for owner in group.metadata.owners)
    )
    task = maker.spec.tasks[0].name if maker.spec.tasks else ""
    return {
        GROUP_NAME: next(own, maker.group_name),
        JOB_NAME: maker.metadata.name,
        TASK_NAME: task,
    }


def maker_of(pod: Pod, snapshot: Snapshot) -> Maker | None:
    """The workload for which the pod stands that it would make; None of any other pod."""
    owner = pod.metadata.controller()
    if owner is None or stand_in(pod) is None or pod.metadata.uid:
        return None
    return snapshot.others.get(kind_here(owner.kind, owner.api_version), {}).get((pod.metadata.namespace, owner.name))


def is_suspended(maker: Maker) -> bool:
    """Whether ``spec.suspend`` is set."""
    return isinstance(maker, BatchJob | JobSet) and maker.spec.suspend


def _templates(maker: Maker) -> Iterator[PodTemplateSpec]:
    """The templates of a workload's pods, those of a JobSet that have not begun first."""
    if isinstance(maker, BatchJob):
        yield maker.spec.template
    elif isinstance(maker, VolcanoJob):
        yield from (task.template for task in maker.spec.tasks)
    elif isinstance(maker, LeaderWorkerSet):
        template = maker.spec.leader_worker_template
        yield template.leader_template or template.worker_template
    else:
        yield from (job.template.spec.template for job in maker.spec.replicated_jobs)
