"""The pods that a controller ends because its workload has more of them than replicas.

Sources: ActivePodsWithRanks and ActivePods (ReplicaSets, ReplicationControllers, Jobs), updateStatefulSet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final

from msgspec import Struct

from kubectl_dra.api.pods import Pod
from kubectl_dra.fit.workload import WorkloadPods
from kubectl_dra.manifests.workloads import key_of
from kubectl_dra.text import whole_number

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
    key = key_of(workload.raw) if workload.raw else ("", "")
    if key in _RANKED:
        return _by_rank(pods, every, len(pods) - replicas, of_job=key == ("batch", "Job"))
    if key == ("apps", "StatefulSet"):
        spec = workload.raw.get("spec") or {}
        left = [pod for pod in pods if _number(pod) < replicas]
        # In order, none ends before all with a lower number run.
        waits = spec.get("podManagementPolicy") != "Parallel" and not all(pod.node_name for pod in left)
        return Surplus(() if waits else tuple(pod for pod in pods if _number(pod) >= replicas))
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


def _number(pod: Pod) -> int:
    return whole_number(pod.metadata.name.rpartition("-")[2]) or 0
