"""Number of pods that a workload makes: its replicas, and the pods of each template in one of them.

Sources: the controllers of Kubernetes, JobSet, LeaderWorkerSet, KubeRay, the training operator and Volcano.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import value_at
from kubectl_dra.manifests.workloads import key_of, pod_templates

_LARGEST: Final = 2**31 - 1
"""These fields have 32 bits."""


class Counts(NamedTuple):
    """Number of replicas, and of pods of each template (in the order of ``pod_templates``) in one replica.

    ``unit`` is what a replica is called. ``known``: the numbers are written, or what the kind takes by default.
    """

    replicas: int
    each: tuple[int, ...]
    unit: str = "replica"
    known: bool = True


def counts_of(workload: Mapping[str, Any]) -> Counts:
    """The counts of an object that has pod templates; one pod of each template where its kind is not known here."""
    templates = list(pod_templates(workload))
    count = _COUNTS.get(key_of(workload))
    if count is None:
        return Counts(1, (1,) * len(templates), known=False)
    return count(workload, [template.path for template in templates])


def is_suspended(workload: Mapping[str, Any]) -> bool:
    """Whether it makes no pods until a user, or a queue, resumes it."""
    spec = workload.get("spec")
    policy = spec.get("runPolicy") if isinstance(spec, Mapping) else None
    return any(isinstance(part, Mapping) and part.get("suspend") is True for part in (spec, policy))


def pods_of_spec(workload: Mapping[str, Any], path: FieldPath) -> tuple[int, bool]:
    """Number of pods of the pod spec at a path that run at a time, and whether it is known; else it is at least one.

    What a DaemonSet makes depends on the nodes.
    """
    if key_of(workload) == ("", "Pod"):
        return 1, True
    counts = counts_of(workload)
    for template, number in zip(pod_templates(workload), counts.each, strict=False):
        if (*template.path, "spec") == path:
            return counts.replicas * number, counts.known
    return 1, False


def _simple(workload: Mapping[str, Any], _: list[FieldPath]) -> Counts:
    return Counts(_number(workload, ("spec", "replicas")), (1,))


def _job(workload: Mapping[str, Any], _: list[FieldPath]) -> Counts:
    return Counts(_at_once(workload, ("spec",)), (1,), "pod")


def _cron_job(workload: Mapping[str, Any], _: list[FieldPath]) -> Counts:
    return Counts(_at_once(workload, ("spec", "jobTemplate", "spec")), (1,), "pod")


def _job_set(workload: Mapping[str, Any], paths: list[FieldPath]) -> Counts:
    numbers = []
    for path in paths:
        # spec, replicatedJobs, the place, template, spec, template
        job = path[:3]
        numbers.append(_number(workload, (*job, "replicas")) * _at_once(workload, path[:-1]))
    return Counts(1, tuple(numbers))


def _leader_worker_set(workload: Mapping[str, Any], paths: list[FieldPath]) -> Counts:
    size = _number(workload, ("spec", "leaderWorkerTemplate", "size"))
    numbers = (1, max(0, size - 1)) if len(paths) > 1 else (size,)
    return Counts(_number(workload, ("spec", "replicas")), numbers, "group")


def _ray_cluster(workload: Mapping[str, Any], paths: list[FieldPath]) -> Counts:
    numbers = []
    for path in paths:
        if "workerGroupSpecs" not in path:
            numbers.append(1)
            continue
        group = path[:-1]
        numbers.append(_number(workload, (*group, "replicas")) * _number(workload, (*group, "numOfHosts")))
    return Counts(1, tuple(numbers), "cluster")


def _beside_replicas(workload: Mapping[str, Any], paths: list[FieldPath]) -> Counts:
    """Kinds whose ``replicas`` stands beside each template: operators of training jobs, and Volcano."""
    return Counts(1, tuple(_number(workload, (*path[:-1], "replicas")) for path in paths))


def _spark(workload: Mapping[str, Any], paths: list[FieldPath]) -> Counts:
    numbers = tuple(_number(workload, ("spec", "executor", "instances")) if "executor" in path else 1 for path in paths)
    return Counts(1, numbers)


def completions_of(workload: Mapping[str, Any]) -> tuple[int, int] | None:
    """Number of pods of a Job, or of one Job of a CronJob, that have to complete, and that run at a time; None of other
    kinds, and where no number of completions is written.
    """
    spec = {"Job": ("spec",), "CronJob": ("spec", "jobTemplate", "spec")}.get(str(workload.get("kind")))
    completions = _number(workload, (*spec, "completions"), 0) if spec is not None else 0
    return (completions, _at_once(workload, spec)) if spec is not None and completions else None


def _at_once(workload: Mapping[str, Any], spec: FieldPath) -> int:
    """Number of pods of a Job that run at a time: never more than it has to complete."""
    parallelism = _number(workload, (*spec, "parallelism"))
    return min(parallelism, _number(workload, (*spec, "completions"), parallelism))


def _number(workload: Mapping[str, Any], path: FieldPath, default: int = 1) -> int:
    """A whole number of the manifest, not below 0; the default where none is written."""
    value = value_at(workload, path)
    return min(max(0, value), _LARGEST) if isinstance(value, int) and not isinstance(value, bool) else default


_COUNTS: Final[Mapping[tuple[str, str], Callable[[Mapping[str, Any], list[FieldPath]], Counts]]] = {
    ("", "ReplicationController"): _simple,
    ("apps", "Deployment"): _simple,
    ("apps", "ReplicaSet"): _simple,
    ("apps", "StatefulSet"): _simple,
    ("argoproj.io", "Rollout"): _simple,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
    ("ray.io", "RayCluster"): _ray_cluster,
    **{
        ("kubeflow.org", kind): _beside_replicas
        for kind in ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "JAXJob", "PaddleJob")
    },
    ("batch.volcano.sh", "Job"): _beside_replicas,
    ("sparkoperator.k8s.io", "SparkApplication"): _spark,
}
