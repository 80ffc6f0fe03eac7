"""What a cluster has of a workload: its pods, whose place each has, how far it is, and the templates of its pods.

Sources: syncJob and manageJob (Jobs), ActivePodsWithRanks and ActivePods (ReplicaSets, ReplicationControllers, Jobs),
updateStatefulSet, FindNewReplicaSet and EqualIgnoreHash (Deployments).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.admission.admit import AdmissionObjects
from kubectl_dra.admission.plugins import NamespaceMissing, namespace_refusal
from kubectl_dra.api.pods import Owner, Pod, owner_of
from kubectl_dra.cluster.merge import applied_workload, has_template, same_templates, templates_of
from kubectl_dra.cluster.pointed_objects import REPLICA_SETS, made_by
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.workload_pods import belongs_to
from kubectl_dra.drivers.daemons import node_of
from kubectl_dra.fit.pod_names import Ordinal, identity, ordinals
from kubectl_dra.fit.workload import WorkloadPods
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.pod_counts import completions_of, counts_of
from kubectl_dra.manifests.workloads import key_of
from kubectl_dra.text import whole_number


class PodPlace(NamedTuple):
    """Where a pod belongs in a workload: the number of its role, and its ordinal there."""

    role: int
    ordinal: Ordinal


def pods_of(workload: WorkloadPods, snapshot: Snapshot) -> list[Pod]:
    """The pods of a workload that count as its replicas: those that have not ended and do not end."""
    own = {(role.pod.metadata.namespace, role.pod.metadata.name) for role in workload.roles if role.exact}
    pods = []
    for key, pod in snapshot.pods.items():
        if key[0] == workload.namespace and not pod.finished and (key in own or _made_by(workload, pod)):
            pods.append(pod)
    return pods


def _made_by(workload: WorkloadPods, pod: Pod) -> bool:
    owner = owner_of(pod)
    if owner is None or not workload.raw:
        return False
    if pod.metadata.deletion_timestamp and owner.kind != "StatefulSet":
        # Its successor is made at once, while it holds its devices; in a StatefulSet it has the same name, and waits.
        return False
    return belongs_to(pod, Owner(workload.kind, workload.name))


def filled(workload: WorkloadPods, pods: Collection[Pod], replicas: int, most: int) -> dict[PodPlace, Pod]:
    """The places of a workload that pods have already. Of each role in a replica ``most`` are looked at.

    A pod that is called as its controller calls the one of a place has that place. Of the others, those with a node
    come first; a StatefulSet does not count them.
    """
    if not pods:
        return {}
    if workload.nodes:
        places = {node: PodPlace(0, Ordinal(number, 0)) for number, node in enumerate(workload.nodes)}
        return {places[node]: pod for pod in pods if (node := node_of(pod)) in places}
    places = {}
    for replica in range(replicas + len(pods)):
        for number, role in enumerate(workload.roles):
            for ordinal in ordinals(role, replica, most):
                places[identity(workload, role, ordinal).name] = PodPlace(number, ordinal)
    taken_places = {places[pod.metadata.name]: pod for pod in pods if pod.metadata.name in places}
    if workload.kind != "StatefulSet":
        free = (place for place in places.values() if place not in taken_places)
        others = [pod for pod in pods if pod.metadata.name not in places]
        taken_places.update(zip(free, sorted(others, key=lambda pod: not pod.node_name), strict=False))
    return taken_places


# What is left of a Job: the pods that have succeeded are not made again, and one that is over makes none.

_OVER = {
    "Complete": "is complete",
    "SuccessCriteriaMet": "is complete",
    "Failed": "has failed",
    "FailureTarget": "has failed",
}


class JobProgress(Struct, frozen=True):
    """How far a Job is: ``succeeded`` pods of its ``completions``; ``over`` says how it ended, empty where it has not.

    ``completions`` is 0 where the Job does not say how many: then it makes no more pods once one has succeeded.
    """

    succeeded: int = 0
    completions: int = 0
    over: str = ""

    def wanted(self, replicas: int, running: int) -> int:
        """How many pods it has at a time, of so many that are asked for, while so many run."""
        if self.over:
            return 0
        if self.completions:
            return min(replicas, max(0, self.completions - self.succeeded))
        return min(replicas, running) if self.succeeded else replicas


def job_progress(workload: WorkloadPods, snapshot: Snapshot) -> JobProgress | None:
    """How far a Job of the cluster is; None of other kinds, and where nothing is known of one."""
    if key_of(workload.raw) != ("batch", "Job"):
        return None
    status = fields_at(workload.stored_in(snapshot), "status")
    over = next(
        (
            _OVER[condition["type"]]
            for condition in status.get("conditions") or ()
            if condition.get("type") in _OVER and condition.get("status") == "True"
        ),
        "",
    )
    maker = Owner(workload.kind, workload.name)
    ended = sum(
        pod.phase == "Succeeded" and key[0] == workload.namespace and belongs_to(pod, maker)
        for key, pod in snapshot.pods.items()
    )
    said = status.get("succeeded")
    succeeded = max(ended, said if isinstance(said, int) else 0)
    written = completions_of(workload.raw)
    return JobProgress(succeeded, written[0] if written else 0, over) if succeeded or over else None


def is_new(workload: WorkloadPods, snapshot: Snapshot) -> bool:
    """Whether a cluster has no pod of a workload and has had none, and what it makes does not depend on nodes."""
    return not workload.of_each_node and not pods_of(workload, snapshot) and job_progress(workload, snapshot) is None


# The pods that a controller ends because its workload has more of them than replicas.

_RANKED: Final = (
    *(("apps", "Deployment"), ("apps", "ReplicaSet"), ("", "ReplicationController"), ("argoproj.io", "Rollout")),
    ("batch", "Job"),
)
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_GROUP: Final = "leaderworkerset.sigs.k8s.io/group-index"
_PHASES: Final = ("Pending", "Unknown", "Running")


class Surplus(Struct, frozen=True):
    """The pods that end: all of ``sure``, and ``number`` of those that are ``alike`` to the controller.

    Which of these are the youngest is not looked at: their ages count only roughly.
    """

    sure: tuple[Pod, ...] = ()
    alike: tuple[Pod, ...] = ()
    number: int = 0

    @property
    def count(self) -> int:
        """How many end."""
        return len(self.sure) + self.number

    def ended(self, chance: Random | None = None) -> tuple[Pod, ...]:
        """Those that end: the first of the alike ones, or by ``chance`` any."""
        alike = self.alike if chance is None else chance.sample(self.alike, len(self.alike))
        return (*self.sure, *alike[: self.number])

    @property
    def open(self) -> bool:
        """Whether others may end."""
        return 0 < self.number < len(self.alike)


def surplus(workload: WorkloadPods, pods: Sequence[Pod], every: Sequence[Pod], replicas: int) -> Surplus:
    """Which of the pods end where there are to be so many replicas; ``every`` pod of the workload counts for nodes."""
    key = key_of(workload.raw)
    if key in _RANKED:
        return _by_rank(pods, every, len(pods) - replicas, of_job=key == ("batch", "Job"))
    if key == ("apps", "StatefulSet"):
        left = [pod for pod in pods if number_of(pod) < replicas]
        # In order, none ends before all with a lower number run.
        parallel = fields_at(workload.raw, "spec").get("podManagementPolicy") == "Parallel"
        waits = not parallel and not all(pod.node_name for pod in left)
        return Surplus(() if waits else tuple(pod for pod in pods if number_of(pod) >= replicas))
    if key == ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"):
        groups = ((pod, whole_number(pod.metadata.labels.get(_GROUP, ""))) for pod in pods)
        return Surplus(tuple(pod for pod, group in groups if group is not None and group >= replicas))
    return Surplus()


def _by_rank(pods: Sequence[Pod], every: Sequence[Pod], number: int, *, of_job: bool) -> Surplus:
    if number <= 0:
        return Surplus()
    beside = Counter(pod.node_name for pod in every)
    ranks = {pod.key: _rank(pod, 0 if of_job else beside[pod.node_name], of_job=of_job) for pod in pods}
    ordered = sorted(pods, key=lambda pod: ranks[pod.key])
    last = ranks[ordered[number - 1].key]
    sure = tuple(pod for pod in ordered if ranks[pod.key] < last)
    alike = tuple(pod for pod in ordered if ranks[pod.key] == last)
    return Surplus(sure, alike, number - len(sure))


def _rank(pod: Pod, beside: int, *, of_job: bool) -> tuple[object, ...]:
    """The lowest end first. ``beside``: how many pods of the workload are on its node."""
    phase = _PHASES.index(pod.phase) if pod.phase in _PHASES else 0
    ready = pod.condition("Ready").status == "True"
    return bool(pod.node_name), phase, ready, 0 if of_job else _cost(pod), -beside


def _cost(pod: Pod) -> int:
    written = pod.metadata.annotations.get(_COST, "")
    number = whole_number(written.removeprefix("-")) or 0
    return -number if written.startswith("-") else number


def number_of(pod: Pod) -> int:
    """The number of a pod of a StatefulSet."""
    return whole_number(pod.metadata.name.rpartition("-")[2]) or 0


# Which pods of a workload were made from the template that its manifest gives: what is stored is compared.

_SCALED = (("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"), ("argoproj.io", "Rollout"))
"""What is often scaled by others, so that its manifest leaves the number out."""
_REVISION = "controller-revision-hash"


class StoredTemplate(Struct, frozen=True):
    """How the stored templates of a workload differ from those after an apply.

    ``changed``: those of the workload differ; None where it was not read, or is not there. ``sets`` are its ReplicaSets
    by name, and whether each has the template. ``by_set``: its pods are made through such. ``revision`` is that of a
    StatefulSet's stored template; empty where nobody says.
    """

    changed: bool | None = None
    sets: Mapping[str, bool] = {}
    by_set: bool = False
    revision: str = ""

    def made(self, pod: Pod) -> bool | None:
        """Whether a pod was made from the template; None where that was not read."""
        owner = pod.metadata.controller()
        if self.by_set:
            known = self.sets.get(owner.name) if owner is not None else None
            return False if known is None and self.changed else known
        if self.changed is not False:
            return None if self.changed is None else False
        own = pod.metadata.labels.get(_REVISION, "")
        return not (own and self.revision and own != self.revision)

    def unread(self, workload: WorkloadPods, pod: Pod) -> str:
        """What was not read that would tell of a pod."""
        owner = pod.metadata.controller()
        if self.by_set and owner is not None:
            return f"{owner.own_kind} {workload.namespace}/{owner.name}"
        return workload.title


def as_applied(workload: WorkloadPods, own: Sequence[Pod], snapshot: Snapshot) -> WorkloadPods:
    """A workload as an apply leaves it: what its manifest does not say stays, such as the number of replicas.

    Where the stored one was not read, a number that is not written is that of its ``own`` pods.
    """
    if not workload.raw:
        return workload
    stored = workload.stored_in(snapshot)
    if stored is not None:
        raw = applied_workload(stored, workload.raw)
        return replace(workload, raw=raw, replicas=counts_of(raw).replicas)
    unsaid = own and "replicas" not in fields_at(workload.raw, "spec") and key_of(workload.raw) in _SCALED
    return replace(workload, replicas=len(own)) if unsaid else workload


def stored_template(workload: WorkloadPods, snapshot: Snapshot) -> StoredTemplate:
    """What is stored of the templates of a workload."""
    if not workload.raw:
        return StoredTemplate()
    key, written = key_of(workload.raw), workload.raw
    stored = workload.stored_in(snapshot)
    after = templates_of(applied_workload(stored, written)) if stored is not None else None
    changed = not same_templates(templates_of(stored), after) if stored is not None and after is not None else None
    if key not in REPLICA_SETS:
        revision = fields_at(stored, "status").get("updateRevision") if stored is not None else ""
        return StoredTemplate(changed, revision=str(revision or ""))
    sets = {}
    for raw in made_by(snapshot, workload.namespace, workload.kind, workload.name):
        name, own = str(fields_at(raw, "metadata").get("name")), templates_of(raw)
        same = same_templates(own, after) if after is not None else has_template(own[0], templates_of(written)[0])
        sets[name] = same
    return StoredTemplate(changed, sets, by_set=True)


def missing_namespaces(workloads: Sequence[WorkloadPods], snapshot: Snapshot) -> tuple[str, ...]:
    """The namespaces of workloads for which the API server refuses every pod, because there are none."""
    return tuple(
        name
        for name in dict.fromkeys(workload.namespace for workload in workloads)
        if isinstance(namespace_refusal(name, AdmissionObjects.of(snapshot, name).namespaces), NamespaceMissing)
    )
