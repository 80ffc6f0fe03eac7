"""Which groups and queues of Volcano and KAI, and which LeaderWorkerSet or JobSet, a pod points to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_dra.api.gangs import KaiPodGroup, VolcanoPodGroup, VolcanoQueue
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.pointed import Pointer
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.neighbours.decider import SCHEDULERS, Layer

VOLCANO_GROUP: Final = "PodGroup.scheduling.volcano.sh"
VOLCANO_QUEUE: Final = "Queue.scheduling.volcano.sh"
KAI_GROUP: Final = "PodGroup.scheduling.run.ai"
KAI_QUEUE: Final = "Queue.scheduling.run.ai"
LWS: Final = "LeaderWorkerSet.leaderworkerset.x-k8s.io"
JOBSET: Final = "JobSet.jobset.x-k8s.io"
LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
JOBSET_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
_VOLCANO_GROUPS: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_KAI_GROUP: Final = "pod-group-name"
_KAI_QUEUE: Final = "kai.scheduler/queue"


def pointers(pod: Pod, snapshot: Snapshot) -> Iterator[Pointer]:
    """The group and the queue of a pod of Volcano or KAI, and the set that it is a part of."""
    space, labels = pod.metadata.namespace, pod.metadata.labels
    layer = SCHEDULERS.get(pod.scheduler_name)
    name = group_name(pod)
    if layer is Layer.VOLCANO and name:
        yield Pointer(VOLCANO_GROUP, space, name)
        if group := volcano_group_of(pod, snapshot):
            yield Pointer(VOLCANO_QUEUE, name=group.spec.queue or "default")
    if layer is Layer.KAI and name:
        yield Pointer(KAI_GROUP, space, name)
    if layer is Layer.KAI and _KAI_QUEUE in labels:
        yield Pointer(KAI_QUEUE, name=labels[_KAI_QUEUE])
    if LWS_NAME in labels:
        yield Pointer(LWS, space, labels[LWS_NAME])
    if JOBSET_NAME in labels:
        yield Pointer(JOBSET, space, labels[JOBSET_NAME])


def group_name(pod: Pod) -> str:
    """The PodGroup of Volcano or KAI that the pod names; empty if it names none."""
    keys = (_KAI_GROUP,) if SCHEDULERS.get(pod.scheduler_name) is Layer.KAI else _VOLCANO_GROUPS
    return next((pod.metadata.annotations[key] for key in keys if key in pod.metadata.annotations), "")


def volcano_group_of(pod: Pod, snapshot: Snapshot) -> VolcanoPodGroup | None:
    """The pod's PodGroup of Volcano, if it was read."""
    return snapshot.others.get(VOLCANO_GROUP, {}).get((pod.metadata.namespace, group_name(pod)))


def volcano_queue_of(group: VolcanoPodGroup, snapshot: Snapshot) -> VolcanoQueue | None:
    """The queue of a PodGroup of Volcano, if it was read."""
    return snapshot.others.get(VOLCANO_QUEUE, {}).get(("", group.spec.queue or "default"))


def kai_group_of(pod: Pod, snapshot: Snapshot) -> KaiPodGroup | None:
    """The pod's PodGroup of KAI, if it was read."""
    return snapshot.others.get(KAI_GROUP, {}).get((pod.metadata.namespace, group_name(pod)))
