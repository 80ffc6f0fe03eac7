"""GangScheduling (KEP-4671): pods of a group wait for each other before any of them is tried.

In 1.35 ``spec.workloadRef`` names a group of a Workload, from 1.36 on ``spec.schedulingGroup`` a PodGroup. A stored pod
with either, and a stored group, show that the feature is on.
"""

from __future__ import annotations

from msgspec import Struct

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import GroupPolicy, PodGroup, Workload
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection


class GroupMissing(Reason, frozen=True):
    """The group (or its Workload) does not exist; ``kind`` is what is missing."""

    kind: str
    name: str

    @property
    def words(self) -> str:
        kind = "workload" if self.kind == "Workload" else "pod group"
        return f'waiting for pods\'s {kind} "{self.name}" to appear in scheduling queue'


class GroupNotInWorkload(Reason, frozen=True):
    """The Workload has no group of that name."""

    workload: str
    group: str

    @property
    def words(self) -> str:
        return f'pod group "{self.group}" doesn\'t exist for a workload "{self.workload}"'


class TooFewPeers(Reason, frozen=True):
    """Fewer pods of the gang exist than are scheduled together; ``peers`` are those that do, with this one."""

    group: str
    minimum: int
    peers: tuple[str, ...]

    @property
    def words(self) -> str:
        return "waiting for minCount pods from a gang to appear in scheduling queue"


class Gang(Struct, frozen=True):
    """A group whose pods are scheduled together: all that have not ended, and how many of them it takes."""

    name: str
    minimum: int
    members: tuple[Pod, ...]
    topology: tuple[str, ...] = ()


def in_queue(pod: Pod, state: ClusterState) -> Rejection | None:
    """What keeps a pod of a group out of the scheduler's queue."""
    found = gang_of(pod, state)
    if isinstance(found, Reason):
        return Rejection(PluginName.GANG_SCHEDULING, (found,))
    if found is None or len(found.members) >= found.minimum:
        return None
    peers = tuple(sorted(member.key for member in found.members))
    return Rejection(PluginName.GANG_SCHEDULING, (TooFewPeers(found.name, found.minimum, peers),))


def gang_of(pod: Pod, state: ClusterState) -> Gang | Reason | None:
    """The gang of a pod; a reason where its group is not there; None where it can be scheduled alone."""
    namespace = pod.metadata.namespace
    if reference := pod.spec.workload_ref:
        workload: Workload | None = state.others("Workload").get((namespace, reference.name))
        if workload is None:
            return None if state.unknown("Workload", namespace) else GroupMissing("Workload", reference.name)
        for entry in workload.spec.pod_groups:
            if entry.name == reference.pod_group:
                return _gang(f"{reference.name}/{reference.pod_group}", entry.policy, pod, state)
        return GroupNotInWorkload(reference.name, reference.pod_group)
    if not (name := pod.pod_group):
        return None
    group: PodGroup | None = state.others("PodGroup").get((namespace, name))
    if group is None:
        return None if state.unknown("PodGroup", namespace) else GroupMissing("PodGroup", name)
    constraints = group.spec.scheduling_constraints
    topology = tuple(entry.key for entry in constraints.topology) if constraints else ()
    return _gang(name, group.spec.scheduling_policy, pod, state, topology)


def _gang(name: str, policy: GroupPolicy, pod: Pod, state: ClusterState, topology: tuple[str, ...] = ()) -> Gang | None:
    if policy.gang is None:
        return None
    return Gang(name, policy.gang.min_count, tuple(_members(pod, state)), topology)


def _members(pod: Pod, state: ClusterState) -> list[Pod]:
    """The pods of the same group that have not ended, the pod itself among them."""
    found = [pod]
    for other in state.snapshot.pods.values():
        if other.metadata.namespace != pod.metadata.namespace or other.metadata.name == pod.metadata.name:
            continue
        same = other.spec.scheduling_group == pod.spec.scheduling_group
        if same and other.spec.workload_ref == pod.spec.workload_ref and not other.finished:
            found.append(other)
    return found
