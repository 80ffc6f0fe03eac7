"""Pods of a workload that are in the cluster already: those that run count, those that wait are placed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import structs

from kubectl_dra.api.owners import owner_of
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.fit.workload import WorkloadPods

_BETWEEN: Final[Mapping[str, tuple[str, ...]]] = {
    "Deployment": ("ReplicaSet",),
    "Rollout": ("ReplicaSet",),
    "CronJob": ("Job",),
    "JobSet": ("Job",),
    "LeaderWorkerSet": ("StatefulSet",),
}
"""What stands between a workload and its pods; its name begins with that of the workload."""


def pods_of(workload: WorkloadPods, snapshot: Snapshot) -> list[Pod]:
    """The pods of a workload that count as its replicas: those that have not ended and do not end."""
    own = {(role.pod.metadata.namespace, role.pod.metadata.name) for role in workload.roles if role.exact}
    found = []
    for key, pod in snapshot.pods.items():
        if key[0] == workload.namespace and not pod.finished and (key in own or _made_by(workload, pod)):
            found.append(pod)
    return found


def _made_by(workload: WorkloadPods, pod: Pod) -> bool:
    owner = owner_of(pod)
    if owner is None or not workload.raw:
        return False
    if pod.metadata.deletion_timestamp and owner.kind != "StatefulSet":
        # Its successor is made at once, while it holds its devices; in a StatefulSet it has the same name, and waits.
        return False
    if owner == (workload.kind, workload.name):
        return True
    return owner.kind in _BETWEEN.get(workload.kind, ()) and owner.name.startswith(f"{workload.name}-")


def without_waiting(snapshot: Snapshot, pods: list[Pod]) -> Snapshot:
    """The cluster without those of the pods that have no node yet, and the claims that were made for them."""
    waiting: set[Key] = {(pod.metadata.namespace, pod.metadata.name) for pod in pods if not pod.node_name}
    if not waiting:
        return snapshot
    made = {
        (pod.metadata.namespace, name)
        for pod in pods
        if not pod.node_name
        for name in pod.claim_statuses.values()
        if name is not None
    }
    return structs.replace(
        snapshot,
        pods={key: pod for key, pod in snapshot.pods.items() if key not in waiting},
        claims={key: claim for key, claim in snapshot.claims.items() if key not in made},
    )
