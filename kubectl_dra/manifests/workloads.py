"""Where workloads keep their pod templates. A kind is added by one entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

Path = tuple[str, ...]
"""Steps to a pod template; ``*`` stands for every item of a list or value of a map."""

_RAY: Final[tuple[Path, ...]] = (("headGroupSpec", "template"), ("workerGroupSpecs", "*", "template"))

TEMPLATES: Final[Mapping[tuple[str, str], tuple[Path, ...]]] = {
    ("", "ReplicationController"): (("spec", "template"),),
    ("apps", "Deployment"): (("spec", "template"),),
    ("apps", "ReplicaSet"): (("spec", "template"),),
    ("apps", "StatefulSet"): (("spec", "template"),),
    ("apps", "DaemonSet"): (("spec", "template"),),
    ("batch", "Job"): (("spec", "template"),),
    ("batch", "CronJob"): (("spec", "jobTemplate", "spec", "template"),),
    ("jobset.x-k8s.io", "JobSet"): (("spec", "replicatedJobs", "*", "template", "spec", "template"),),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        ("spec", "leaderWorkerTemplate", "leaderTemplate"),
        ("spec", "leaderWorkerTemplate", "workerTemplate"),
    ),
    ("ray.io", "RayCluster"): tuple(("spec", *path) for path in _RAY),
    ("ray.io", "RayJob"): tuple(("spec", "rayClusterSpec", *path) for path in _RAY),
    ("ray.io", "RayService"): tuple(("spec", "rayClusterConfig", *path) for path in _RAY),
    ("kubeflow.org", "PyTorchJob"): (("spec", "pytorchReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "TFJob"): (("spec", "tfReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "MPIJob"): (("spec", "mpiReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "XGBoostJob"): (("spec", "xgbReplicaSpecs", "*", "template"),),
    ("kubeflow.org", "JAXJob"): (("spec", "jaxReplicaSpecs", "*", "template"),),
    ("batch.volcano.sh", "Job"): (("spec", "tasks", "*", "template"),),
    ("argoproj.io", "Rollout"): (("spec", "template"),),
    ("serving.knative.dev", "Service"): (("spec", "template"),),
}


class PodTemplate(NamedTuple):
    """A pod template found in a workload: where, and its content (``metadata`` and ``spec``)."""

    path: tuple[str | int, ...]
    content: Mapping[str, Any]


def pod_templates(workload: Mapping[str, Any]) -> Iterator[PodTemplate]:
    """The pod templates of an object, in the order of the table and of the object; none for other kinds."""
    group = str(workload.get("apiVersion") or "").rpartition("/")[0]
    for path in TEMPLATES.get((group, str(workload.get("kind") or "")), ()):
        yield from _walk(workload, path, ())


def _walk(value: Any, path: Path, done: tuple[str | int, ...]) -> Iterator[PodTemplate]:
    if not path:
        if isinstance(value, Mapping) and isinstance(value.get("spec"), Mapping):
            yield PodTemplate(done, value)
        return
    step, rest = path[0], path[1:]
    if step == "*":
        items = value.items() if isinstance(value, Mapping) else enumerate(value if isinstance(value, list) else ())
        for key, item in items:
            yield from _walk(item, rest, (*done, key))
    elif isinstance(value, Mapping) and step in value:
        yield from _walk(value[step], rest, (*done, step))
