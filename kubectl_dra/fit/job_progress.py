"""What is left of a Job: the pods that have succeeded are not made again, and one that is over makes none.

Source: syncJob and manageJob of the Job's controller.
"""

from __future__ import annotations

from msgspec import Struct

from kubectl_dra.api.pods import Owner
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.workload_pods import belongs_to
from kubectl_dra.fit.existing_pods import pods_of
from kubectl_dra.fit.workload import WorkloadPods
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.pod_counts import completions_of
from kubectl_dra.manifests.workloads import key_of

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
    if not workload.raw or key_of(workload.raw) != ("batch", "Job"):
        return None
    stored = snapshot.stored.get(("batch", "Job", workload.namespace, workload.name), {})
    status = fields_at(stored, "status")
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
