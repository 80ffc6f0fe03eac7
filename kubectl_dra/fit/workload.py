"""What is to be placed: workloads of a manifest, as roles of pods that differ in nothing but their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, ValidationError

from kubectl_dra.api.meta import OwnerReference
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.snapshot import MADE_BY, Key, Snapshot
from kubectl_dra.cluster.workload_pods import pods_of
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.workloads import key_of, pod_templates


class Role(Struct, frozen=True):
    """Pods of a workload from one template. ``each``: how many of them belong to a replica.

    ``pod`` stands for them, as it is written; its name is what their names begin with. ``name`` tells the role from
    others of the workload. ``exact``: there is only this pod, with this very name.
    """

    name: str
    pod: Pod
    written: Mapping[str, Any]
    each: int = 1
    exact: bool = False


class WorkloadPods(Struct, frozen=True):
    """An object of the manifest that makes pods, or the bare pods of it. ``unit`` is what a replica is called.

    ``counted``: how many pods there are is known; otherwise one of each template is placed. ``raw`` is the object as
    it is written; empty for bare pods.
    """

    kind: str
    namespace: str
    name: str
    roles: tuple[Role, ...]
    replicas: int = 1
    unit: str = "replica"
    counted: bool = True
    raw: Mapping[str, Any] = {}

    @property
    def size(self) -> int:
        """How many pods a replica has."""
        return sum(role.each for role in self.roles)

    @property
    def title(self) -> str:
        """Kind, namespace and name."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.name else f"{self.kind}s of {self.namespace}"


def workloads_of(manifest: Snapshot) -> list[WorkloadPods]:
    """The workloads of a manifest in its order; bare pods are one workload a group, and one of the others, last."""
    pods = makers_of(manifest)
    keys = {(role.pod.metadata.namespace, role.pod.metadata.name) for workload in pods for role in workload.roles}
    return [*pods, *_bare([key for key in manifest.pods if key not in keys], manifest)]


def makers_of(manifest: Snapshot) -> list[WorkloadPods]:
    """The objects of a manifest that make pods."""
    pods: list[WorkloadPods] = []
    for raw in manifest.workloads:
        names = [pod["metadata"]["name"] for pod in pods_of(raw)]
        namespace = _namespace(raw, names[0], manifest)
        counts = counts_of(raw)
        meta = raw.get("metadata") or {}
        title = str(meta.get("name") or meta.get("generateName") or "pod")
        roles = tuple(
            _role(name.removeprefix(title).strip("-"), (namespace, name), manifest, each)
            for name, each in zip(names, counts.each, strict=True)
        )
        pods.append(WorkloadPods(raw["kind"], namespace, title, roles, counts.replicas, counts.unit, counts.known, raw))
    return pods


def without_stand_ins(snapshot: Snapshot) -> Snapshot:
    """The cluster without the pods that stand for those of workloads."""
    pods = (pod for pod in snapshot.pods.values() if MADE_BY in pod.metadata.annotations)
    return Cluster(snapshot).ending(pods).snapshot


def _namespace(raw: Mapping[str, Any], pod: str, manifest: Snapshot) -> str:
    """The namespace of a workload: where none is written, that which its pods were put into."""
    written = (raw.get("metadata") or {}).get("namespace")
    return (
        str(written)
        if written
        else next(space for kind, space, name in manifest.written if (kind, name) == ("Pod", pod))
    )


def _role(name: str, key: Key, manifest: Snapshot, each: int = 1, *, exact: bool = False) -> Role:
    return Role(name, manifest.pods[key], manifest.written.get(("Pod", *key), {}), each, exact)


def _bare(keys: Sequence[Key], manifest: Snapshot) -> Iterator[WorkloadPods]:
    grouped: dict[tuple[str, str, str], list[Key]] = defaultdict(list)
    for key in keys:
        kind, name = _group(manifest.pods[key])
        grouped[kind, key[0], name].append(key)
    for (kind, namespace, name), own in grouped.items():
        roles = tuple(_role(key[1], key, manifest, exact=True) for key in own)
        title = own[0][1] if not name and len(own) == 1 else name
        yield WorkloadPods(kind, namespace, title, roles, unit="group" if name else "pod")


def _group(pod: Pod) -> tuple[str, str]:
    """The kind and name of what a bare pod belongs to."""
    if pod.pod_group:
        return "PodGroup", pod.pod_group
    if pod.spec.workload_ref is not None:
        return "Workload", pod.spec.workload_ref.name
    return "Pod", ""


# How many pods a workload makes: its replicas, and how many of each template belong to one of them.
#
# Sources: the controllers of Kubernetes, JobSet, LeaderWorkerSet, KubeRay, the training operator and Volcano.


Path = tuple[str | int, ...]


_LARGEST: Final = 2**31 - 1
"""These fields have 32 bits."""


class Counts(NamedTuple):
    """How many replicas there are, and how many pods of each template (in the order of ``pod_templates``) one has.

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


def _simple(workload: Mapping[str, Any], _: list[Path]) -> Counts:
    return Counts(_number(workload, ("spec", "replicas")), (1,))


def _job(workload: Mapping[str, Any], _: list[Path]) -> Counts:
    return Counts(_at_once(workload, ("spec",)), (1,), "pod")


def _cron_job(workload: Mapping[str, Any], _: list[Path]) -> Counts:
    return Counts(_at_once(workload, ("spec", "jobTemplate", "spec")), (1,), "pod")


def _job_set(workload: Mapping[str, Any], paths: list[Path]) -> Counts:
    each = []
    for path in paths:
        # spec, replicatedJobs, the place, template, spec, template
        job = path[:3]
        each.append(_number(workload, (*job, "replicas")) * _at_once(workload, path[:-1]))
    return Counts(1, tuple(each))


def _leader_worker_set(workload: Mapping[str, Any], paths: list[Path]) -> Counts:
    size = _number(workload, ("spec", "leaderWorkerTemplate", "size"))
    each = (1, max(0, size - 1)) if len(paths) > 1 else (size,)
    return Counts(_number(workload, ("spec", "replicas")), each, "group")


def _ray_cluster(workload: Mapping[str, Any], paths: list[Path]) -> Counts:
    each = []
    for path in paths:
        if "workerGroupSpecs" not in path:
            each.append(1)
            continue
        group = path[:-1]
        each.append(_number(workload, (*group, "replicas")) * _number(workload, (*group, "numOfHosts")))
    return Counts(1, tuple(each), "cluster")


def _beside_replicas(workload: Mapping[str, Any], paths: list[Path]) -> Counts:
    """Kinds whose ``replicas`` stands beside each template: operators of training jobs, and Volcano."""
    return Counts(1, tuple(_number(workload, (*path[:-1], "replicas")) for path in paths))


def _spark(workload: Mapping[str, Any], paths: list[Path]) -> Counts:
    each = tuple(_number(workload, ("spec", "executor", "instances")) if "executor" in path else 1 for path in paths)
    return Counts(1, each)


def _at_once(workload: Mapping[str, Any], spec: Path) -> int:
    """How many pods of a Job run at a time: never more than it has to complete."""
    parallelism = _number(workload, (*spec, "parallelism"))
    return min(parallelism, _number(workload, (*spec, "completions"), parallelism))


def _number(workload: Mapping[str, Any], path: Path, default: int = 1) -> int:
    """A whole number of the manifest, not below 0; the default where none is written."""
    value: Any = workload
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return default
    return min(max(0, value), _LARGEST) if isinstance(value, int) and not isinstance(value, bool) else default


_COUNTS: Final[Mapping[tuple[str, str], Callable[[Mapping[str, Any], list[Path]], Counts]]] = {
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


# The objects that stand between a workload and its pods, by which the scheduler spreads the pods.


TEMPLATE_HASH: Final = "fit"
"""Stands for the hash of a pod template that a Deployment makes up."""


def controller_of(workload: WorkloadPods) -> OwnerReference | None:
    """What the pods of a workload are owned by; None where the scheduler does not ask who that is."""
    controller = _selecting(workload)
    if controller is None:
        return None
    kind, raw = controller
    name = raw["metadata"]["name"]
    return OwnerReference(
        kind, name, f"fit:{workload.namespace}/{name}", controller=True, api_version=raw["apiVersion"]
    )


def with_controllers(snapshot: Snapshot, workloads: Iterable[WorkloadPods]) -> Snapshot:
    """The cluster with the owners of the workloads' pods. Raises InputError: a selector with a wrong type in it."""
    cluster = Cluster(snapshot)
    for workload in workloads:
        controller = _selecting(workload)
        if controller is not None:
            kind, raw = controller
            key = (workload.namespace, raw["metadata"]["name"])
            try:
                owner = SCHEDULING_KINDS[kind].decode(raw)
            except ValidationError as error:
                raise InputError(f"{workload.title}: {error}") from None
            cluster = cluster.adding_other(kind, key, owner)
    return cluster.snapshot


def _selecting(workload: WorkloadPods) -> tuple[str, Mapping[str, Any]] | None:
    """The kind of the owner and the owner, with the selector of its pods."""
    group, kind = key_of(workload.raw) if workload.raw else ("", "")
    selector = (workload.raw.get("spec") or {}).get("selector") or {}
    metadata = {"name": workload.name, "namespace": workload.namespace}
    if (group, kind) == ("apps", "Deployment"):
        labels = {**(selector.get("matchLabels") or {}), "pod-template-hash": TEMPLATE_HASH}
        metadata["name"] = f"{workload.name}-{TEMPLATE_HASH}"
        kind, selector = "ReplicaSet", {**selector, "matchLabels": labels}
    elif (group, kind) == ("", "ReplicationController"):
        return kind, {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {"selector": selector}}
    elif group != "apps" or kind not in ("ReplicaSet", "StatefulSet"):
        return None
    return kind, {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"selector": selector}}
