"""The pods of a workload that exist: which count as its replicas, and whose place each has."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kubectl_dra.api.pods import Owner, Pod, owner_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.workload_pods import belongs_to
from kubectl_dra.drivers.daemons import node_of
from kubectl_dra.fit.pod_names import Ordinal, identity, ordinals
from kubectl_dra.fit.workload import WorkloadPods


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
