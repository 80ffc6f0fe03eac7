"""Which objects of Kueue a pod points to, which of those that were read are its own, and how they stand."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

from kubectl_dra.api.kueue import ClusterQueue, KueueWorkload, LocalQueue
from kubectl_dra.api.neighbour_kinds import KUEUE_QUEUE
from kubectl_dra.api.pods import Pod, PodCondition
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.neighbours.decider import KUEUE, is_queued_by_kueue
from kubectl_dra.neighbours.kueue_controller import controller, settings_of
from kubectl_dra.neighbours.kueue_quota import COHORT
from kubectl_dra.neighbours.no_pod import is_suspended, maker_of

WORKLOAD: Final = "Workload.kueue.x-k8s.io"
LOCAL_QUEUE: Final = "LocalQueue.kueue.x-k8s.io"
CLUSTER_QUEUE: Final = "ClusterQueue.kueue.x-k8s.io"
_JOBSET_UID: Final = "jobset.sigs.k8s.io/jobset-uid"


def pointers(pod: Pod, snapshot: Snapshot) -> Iterator[Pointer]:
    """The Workload of a pod that Kueue manages, or of a suspended job; as soon as they are known, its queues.

    Where it has no quota, also what decides that: its cohort. If it has claims, Kueue's configuration says whether, and
    as what, they are counted.
    """
    if not is_queued_by_kueue(pod) and not ((maker := maker_of(pod, snapshot)) and is_suspended(maker)):
        return
    space = pod.metadata.namespace
    name, uids = _workload_name(pod), _uids(pod)
    if name or uids:
        yield Pointer(WORKLOAD, space, name, "" if name else f"{KUEUE}job-uid in ({','.join(uids)})")
    elif pod.claims:
        # It does not exist yet: what Kueue would count.
        yield Pointer("ConfigMap", *settings_of(controller(snapshot)))
    if queue := queue_name(pod, snapshot):
        yield Pointer(LOCAL_QUEUE, space, queue)
    if cluster_queue_name(pod, snapshot):
        # Others of its cohort may hold what it could borrow.
        yield Pointer(CLUSTER_QUEUE)
    workload = workload_of(pod, snapshot)
    how = standing(workload).standing if workload is not None else KueueStanding.UNKNOWN
    if workload is None or how not in (*_WITHOUT_QUOTA, KueueStanding.ADMITTED):
        return
    if any(pods.template.spec.resource_claims for pods in workload.spec.pod_sets):
        yield Pointer("ConfigMap", *settings_of(controller(snapshot)))
    if how in _WITHOUT_QUOTA and (own := cluster_queue_of(pod, snapshot)) is not None and own.cohort:
        yield Pointer(COHORT)


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
    return (workload.spec.queue_name if workload else "") or _queue_named(pod)


def _queue_named(pod: Pod) -> str:
    """The LocalQueue in the labels of a pod, or of what would make it."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    return labels.get(KUEUE_QUEUE) or annotations.get(KUEUE_QUEUE, "")


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


class ShutQueue(NamedTuple):
    """A queue of Kueue through which nothing is admitted until somebody changes it. ``said`` is empty if it is missing.

    ``stopped``: its ``spec.stopPolicy`` is the reason.
    """

    kind: str
    name: str
    said: str = ""
    stopped: bool = False


def shut_queue_of(pod: Pod, snapshot: Snapshot) -> ShutQueue | None:
    """The pod's LocalQueue or ClusterQueue if it is missing, stopped or not active; None also where it was not read."""
    local, space = local_queue_of(pod, snapshot), pod.metadata.namespace
    for kind, name, queue in (
        (LOCAL_QUEUE, queue_name(pod, snapshot), local),
        (CLUSTER_QUEUE, cluster_queue_name(pod, snapshot), cluster_queue_of(pod, snapshot)),
    ):
        if queue is None:
            # Of a live cluster only the LocalQueue is read that the pod names, if it names one.
            other = kind == LOCAL_QUEUE and (_queue_named(pod) or name) != name
            if name and not other and not snapshot.unread((kind,), space if kind == LOCAL_QUEUE else ""):
                return ShutQueue(kind, name)
            continue
        if queue.spec.stop_policy not in ("", "None"):
            return ShutQueue(kind, name, queue.spec.stop_policy, stopped=True)
        active = next((condition for condition in queue.status.conditions if condition.type == "Active"), None)
        # Of a LocalQueue it only says that the ClusterQueue is not, which tells why.
        if kind == CLUSTER_QUEUE and active is not None and active.status == "False":
            return ShutQueue(kind, name, active.message or active.reason)
    return None


def _workload_name(pod: Pod) -> str:
    """The Workload's name where the pod says it: that of a group of pods is called like the group."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    group = f"{KUEUE}pod-group-name"
    return annotations.get(f"{KUEUE}workload") or labels.get(group) or annotations.get(group) or ""


def _uids(pod: Pod) -> tuple[str, ...]:
    """The UIDs of what a Workload may be made for: the pod, what controls it, and the JobSet above that."""
    owners = (owner.uid for owner in pod.metadata.owners)
    uids = (pod.metadata.uid, *owners, pod.metadata.labels.get(_JOBSET_UID, ""))
    return tuple(uid for uid in uids if uid)


# How far a Workload has come. The conditions and their reasons: apis/kueue/v1beta2/workload_types.go.


class KueueStanding(Enum):
    """Standing of a pod's Workload with Kueue."""

    UNKNOWN = auto()
    """The Workloads were not read."""
    NO_WORKLOAD = auto()
    """There is none: Kueue has not made one, or is gone."""
    DEACTIVATED = auto()
    """``spec.active`` is false."""
    REJECTED = auto()
    """``Requeued`` is False because the Workload is inadmissible: it is not queued again by itself."""
    UNFIT = auto()
    """It is queued, and no waiting helps: more than the queue can ever have, or none of its flavors."""
    EVICTED = auto()
    """Its quota was taken back, and it is queued again after a while."""
    WAITS = auto()
    """It is queued for quota."""
    CHECKS = auto()
    """It has quota, and an admission check is not ready."""
    EVICTING = auto()
    """Its quota is to be taken back, and is held still: its pods are being ended."""
    ADMITTED = auto()
    """Kueue has let it go."""


_NEVER: Final = frozenset(
    ("NoMatchingFlavor", "ExceedsMaxQuota", "Misconfigured", "TopologyPlacementFailed", "Suspended")
)
"""Reasons of ``QuotaReserved`` (0.19) that somebody has to end."""
_INADMISSIBLE: Final = "Inadmissible"
_WITHOUT_QUOTA: Final = (
    *(KueueStanding.REJECTED, KueueStanding.UNFIT),
    *(KueueStanding.EVICTED, KueueStanding.WAITS),
)
_KUEUE: Final = ("Kueue",)


class WorkloadState(NamedTuple):
    """Standing of a Workload; ``said`` is what Kueue says of it, and ``since`` when it came to that."""

    standing: KueueStanding
    said: str = ""
    since: str = ""
    reason: str = ""


def state_of(pod: Pod, snapshot: Snapshot) -> WorkloadState:
    """Standing of the pod's Workload."""
    workload = workload_of(pod, snapshot)
    if workload is None:
        unread = snapshot.unread((WORKLOAD,), pod.metadata.namespace)
        return WorkloadState(KueueStanding.UNKNOWN if unread else KueueStanding.NO_WORKLOAD)
    return standing(workload)


def standing(workload: KueueWorkload) -> WorkloadState:
    """Standing of a Workload."""
    quota, requeued, evicted = (workload.condition(kind) for kind in ("QuotaReserved", "Requeued", "Evicted"))
    if not workload.spec.active:
        why = next(
            (condition for condition in (workload.condition("DeactivationTarget"), evicted) if _holds(condition)), None
        )
        return _state(KueueStanding.DEACTIVATED, why)
    admitted = workload.condition("Admitted")
    if _holds(evicted) and (_holds(admitted) or _holds(quota)):
        return _state(KueueStanding.EVICTING, evicted)
    if _holds(admitted):
        return _state(KueueStanding.ADMITTED, admitted)
    if _holds(quota):
        said = admitted.message or admitted.reason if admitted is not None else ""
        return _state(KueueStanding.CHECKS, quota)._replace(said=said)
    if requeued is not None and requeued.status == "False":
        # While it is False, nothing puts the Workload back into its queue (pkg/cache/queue/cluster_queue.go).
        return _state(KueueStanding.REJECTED if requeued.reason == _INADMISSIBLE else KueueStanding.EVICTED, requeued)
    if quota is None:
        return WorkloadState(KueueStanding.WAITS)
    from kubectl_dra.data.messages import understood

    known = understood(quota.message, _KUEUE)
    never = quota.reason in _NEVER or (
        quota.reason in (_INADMISSIBLE, "Pending") and known is not None and not known.entry.normal
    )
    return _state(KueueStanding.UNFIT if never else KueueStanding.WAITS, quota)


def _holds(condition: PodCondition | None) -> bool:
    return condition is not None and condition.status == "True"


def _state(standing: KueueStanding, condition: PodCondition | None) -> WorkloadState:
    if condition is None:
        return WorkloadState(standing)
    return WorkloadState(standing, condition.message, condition.last_transition_time, condition.reason)
