"""What controllers give the pods of a workload one by one: names, and labels that tell them apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import structs

from kubectl_dra.api.labels import JOB_NAME_LABELS, JOB_UID_LABELS
from kubectl_dra.api.pods import Owner, Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.workload_pods import belongs_to, free_name
from kubectl_dra.fit.workload import TEMPLATE_HASH, Role, WorkloadPods
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.workloads import key_of

_HASH: Final = TEMPLATE_HASH
"""Stands for UIDs and hashes of other controllers, too: the same for all pods of a workload."""


class Ordinal(NamedTuple):
    """One pod of a role: its place in the workload's replicas, and in the replica's pods of this role."""

    replica: int
    place: int


class Identity(NamedTuple):
    """The name of a pod, the labels that all pods of its role have, and those that are its own."""

    name: str
    shared: Mapping[str, str]
    own: Mapping[str, str]


def ordinals(role: Role, replica: int, most: int) -> Iterator[Ordinal]:
    """The pods of a role in one replica, at most so many."""
    return (Ordinal(replica, place) for place in range(min(role.each, most)))


def identity(workload: WorkloadPods, role: Role, ordinal: Ordinal) -> Identity:
    """What one pod is called, and its labels beside those of the template."""
    make = _KINDS.get(key_of(workload.raw))
    if make is not None:
        return make(workload, role, ordinal)
    base = role.pod.metadata.name
    if role.exact and not ordinal.replica:
        return Identity(base, {}, {})
    return Identity(_invented(workload, base, ordinal.replica * role.each + ordinal.place), {}, {})


def _invented(workload: WorkloadPods, stem: str, number: int) -> str:
    """The name of a pod that ends at random in a cluster: the number stands for that, and no other pod has it."""
    return free_name(stem, workload.taken, f"-{number}")


def _deployment(workload: WorkloadPods, role: Role, ordinal: Ordinal) -> Identity:
    return Identity(_invented(workload, role.pod.metadata.name, ordinal.replica), {"pod-template-hash": _HASH}, {})


def _stateful_set(workload: WorkloadPods, role: Role, ordinal: Ordinal) -> Identity:
    name = f"{role.pod.metadata.name}-{ordinal.replica}"
    own = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(ordinal.replica)}
    return Identity(name, {"controller-revision-hash": _HASH}, own)


def _job(workload: WorkloadPods, role: Role, ordinal: Ordinal) -> Identity:
    name = role.pod.metadata.name
    spec = fields_at(workload.raw, "spec", "jobTemplate", "spec") or fields_at(workload.raw, "spec")
    index = ordinal.replica
    return Identity(_invented(workload, name, index), _job_labels(name), _job_index(spec, index))


def _job_set(workload: WorkloadPods, role: Role, ordinal: Ordinal) -> Identity:
    """The jobs of one entry of ``replicatedJobs`` one after the other, each with its pods."""
    replicated_job: Mapping[str, Any] = workload.raw["spec"]["replicatedJobs"][workload.roles.index(role)]
    spec = fields_at(replicated_job, "template", "spec")
    written = replicated_job.get("replicas")
    jobs = max(1, written) if isinstance(written, int) else 1
    in_job = max(1, role.each // jobs)
    job, index = divmod(ordinal.place, in_job)
    again = f"-{ordinal.replica}" if ordinal.replica else ""
    replicated = str(replicated_job.get("name") or role.name)
    name = f"{workload.name}{again}-{replicated}-{job}"
    shared = {
        "jobset.sigs.k8s.io/jobset-name": f"{workload.name}{again}",
        "jobset.sigs.k8s.io/replicatedjob-name": replicated,
    }
    own = {"jobset.sigs.k8s.io/job-index": str(job), "jobset.sigs.k8s.io/job-key": name, **_job_labels(name)}
    return Identity(_invented(workload, name, index), shared, {**own, **_job_index(spec, index)})


def _job_labels(name: str) -> dict[str, str]:
    return {**dict.fromkeys(JOB_NAME_LABELS, name), JOB_UID_LABELS[1]: _HASH}


def _job_index(spec: Mapping[str, Any], index: int) -> dict[str, str]:
    indexed = spec.get("completionMode") == "Indexed"
    return {"batch.kubernetes.io/job-completion-index": str(index)} if indexed else {}


def _leader_worker_set(workload: WorkloadPods, role: Role, ordinal: Ordinal) -> Identity:
    """The leader of a group has the group's number; its workers count from 1."""
    leaderless = len(workload.roles) == 1
    index = ordinal.place if leaderless or role is workload.roles[0] else ordinal.place + 1
    group = f"{workload.name}-{ordinal.replica}"
    own = {
        "leaderworkerset.sigs.k8s.io/group-index": str(ordinal.replica),
        "leaderworkerset.sigs.k8s.io/group-key": group,
        "leaderworkerset.sigs.k8s.io/worker-index": str(index),
    }
    return Identity(f"{group}-{index}" if index else group, {"leaderworkerset.sigs.k8s.io/name": workload.name}, own)


_KINDS: Final[Mapping[tuple[str, str], Callable[[WorkloadPods, Role, Ordinal], Identity]]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _job,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
}


# Which names are left for the pods of the workloads of a manifest.

_NAMED: Final = (("apps", "StatefulSet"), ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"))
"""Their pods have these very names in the cluster, and no other."""


def with_free_names(
    workloads: Sequence[WorkloadPods], own: Sequence[Sequence[Pod]], snapshot: Snapshot, most: int
) -> list[WorkloadPods]:
    """The workloads, each with the names that others have: pods of the cluster but its ``own``, and those of the
    other workloads, of whose roles ``most`` pods are looked at in each replica.
    """
    there: dict[str, set[str]] = defaultdict(set)
    for namespace, name in snapshot.pods:
        there[namespace].add(name)
    new: dict[str, set[str]] = defaultdict(set)
    for workload in workloads:
        if _is_named(workload):
            new[workload.namespace].update(_names(workload, most))
    out = []
    for workload, pods in zip(workloads, own, strict=True):
        names, space = new[workload.namespace], there[workload.namespace]
        free = structs.replace(workload, taken=frozenset((space - {pod.metadata.name for pod in pods}) | names))
        if len(workloads) > 1:
            names.update(_names(free, most))
        out.append(free)
    return out


def held_name(workload: WorkloadPods, snapshot: Snapshot, most: int) -> str:
    """A pod of another maker whose name the controller of this workload would give to one; empty if there is none."""
    if not workload.raw or not _is_named(workload):
        return ""
    maker = Owner(workload.kind, workload.name)
    known = (snapshot.pods.get((workload.namespace, name)) for name in _names(workload, most))
    return next((pod.key for pod in known if pod is not None and not belongs_to(pod, maker)), "")


def _is_named(workload: WorkloadPods) -> bool:
    return not workload.raw or key_of(workload.raw) in _NAMED


def _names(workload: WorkloadPods, most: int) -> Iterator[str]:
    for replica in range(min(workload.replicas, most)):
        for role in workload.roles:
            for ordinal in ordinals(role, replica, most):
                yield identity(workload, role, ordinal).name
