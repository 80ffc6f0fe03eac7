"""Which objects of Kueue a pod points to, and which of those that were read are its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_dra.api.kueue import ClusterQueue, KueueWorkload, LocalQueue
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.pointed import Pointer
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.neighbours.decider import KUEUE, is_queued_by_kueue

WORKLOAD: Final = "Workload.kueue.x-k8s.io"
LOCAL_QUEUE: Final = "LocalQueue.kueue.x-k8s.io"
CLUSTER_QUEUE: Final = "ClusterQueue.kueue.x-k8s.io"
_JOBSET_UID: Final = "jobset.sigs.k8s.io/jobset-uid"


def pointers(pod: Pod, snapshot: Snapshot) -> Iterator[Pointer]:
    """The Workload of a pod that Kueue manages; as soon as they are known, its queues."""
    if not is_queued_by_kueue(pod):
        return
    space = pod.metadata.namespace
    name = _workload_name(pod)
    yield Pointer(WORKLOAD, space, name, "" if name else f"{KUEUE}job-uid in ({','.join(_uids(pod))})")
    if queue := queue_name(pod, snapshot):
        yield Pointer(LOCAL_QUEUE, space, queue)
    if queue := cluster_queue_name(pod, snapshot):
        yield Pointer(CLUSTER_QUEUE, name=queue)


def workload_of(pod: Pod, snapshot: Snapshot) -> KueueWorkload | None:
    """The pod's Workload, of several (a job's earlier ones) the newest."""
    name, uids = _workload_name(pod), _uids(pod)
    own: list[KueueWorkload] = [
        workload
        for (space, other), workload in snapshot.others.get(WORKLOAD, {}).items()
        if space == pod.metadata.namespace
        and (other == name or (not name and any(owner.uid in uids for owner in workload.metadata.owners)))
    ]
    return max(own, key=lambda workload: workload.metadata.creation_timestamp, default=None)


def queue_name(pod: Pod, snapshot: Snapshot) -> str:
    """The LocalQueue that the pod, or its Workload, names."""
    workload = workload_of(pod, snapshot)
    return (workload.spec.queue_name if workload else "") or pod.metadata.labels.get(f"{KUEUE}queue-name", "")


def local_queue_of(pod: Pod, snapshot: Snapshot) -> LocalQueue | None:
    """The LocalQueue that the pod, or its Workload, names."""
    key = (pod.metadata.namespace, queue_name(pod, snapshot))
    return snapshot.others.get(LOCAL_QUEUE, {}).get(key)


def cluster_queue_name(pod: Pod, snapshot: Snapshot) -> str:
    """The ClusterQueue in which its Workload holds quota, or to which its LocalQueue belongs."""
    workload, queue = workload_of(pod, snapshot), local_queue_of(pod, snapshot)
    admission = workload.status.admission if workload else None
    return (admission.cluster_queue if admission else "") or (queue.spec.cluster_queue if queue else "")


def cluster_queue_of(pod: Pod, snapshot: Snapshot) -> ClusterQueue | None:
    """That ClusterQueue, if it was read."""
    return snapshot.others.get(CLUSTER_QUEUE, {}).get(("", cluster_queue_name(pod, snapshot)))


def _workload_name(pod: Pod) -> str:
    """The Workload's name where the pod says it: that of a group of pods is called like the group."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    group = f"{KUEUE}pod-group-name"
    return annotations.get(f"{KUEUE}workload") or labels.get(group) or annotations.get(group) or ""


def _uids(pod: Pod) -> tuple[str, ...]:
    """The UIDs of what a Workload may be made for: the pod, what controls it, and the JobSet above that."""
    owner = pod.metadata.controller()
    found = (pod.metadata.uid, owner.uid if owner else "", pod.metadata.labels.get(_JOBSET_UID, ""))
    return tuple(uid for uid in found if uid)
