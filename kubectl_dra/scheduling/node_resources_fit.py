"""NodeResourcesFit: free cpu, memory, ephemeral storage, huge pages, extended resources, and the number of pods."""

from __future__ import annotations

from typing import Final

from kubectl_dra.allocation.extended_resources import class_by_resource
from kubectl_dra.allocation.features import Features
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.amounts import pod_amounts
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection

PODS: Final = "pods"
_NATIVE: Final = ("cpu", "memory", "ephemeral-storage")


class TooManyPods(Reason, frozen=True):
    """The node already has its maximum number of pods."""

    used: int
    capacity: int

    @property
    def words(self) -> str:
        return "Too many pods"


class Insufficient(Reason, frozen=True):
    """Too little of a resource is left; cpu in thousandths, everything else in whole units."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def words(self) -> str:
        return f"Insufficient {self.resource}"

    @property
    def free(self) -> int:
        """What is left: zero if more is used than the node has."""
        return max(0, self.capacity - self.used)

    @property
    def never(self) -> bool:
        """Whether even the empty node would have too little."""
        return self.requested > self.capacity


class NodeResourcesFit(Plugin):
    """Refuses nodes with too little left. A node lacks every resource that it does not list.

    A node that was never stored (it has no UID) and lists nothing is assumed to have enough.
    """

    name = PluginName.NODE_RESOURCES_FIT

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self.requested = {
            name: amount
            for name, amount in pod_amounts(pod, state.rules._replace(resize=False, pod_level_resize=False)).items()
            if amount > 0 and counted(name)
        }
        args = state.profile.args.fit
        groups = args.ignored_resource_groups
        for name in [name for name in self.requested if "/" in name and "kubernetes.io/" not in name]:
            if name in args.ignored_resources or name.partition("/")[0] in groups:
                del self.requested[name]
        self._by_devices = class_by_resource(state.snapshot.classes).keys() & self.requested.keys()
        if not Features.from_gates(state.gates).extended_resources:
            self._by_devices = set()

    def filter(self, node: NodeState) -> Rejection | None:
        allocatable = node.allocatable
        if not allocatable and not node.node.metadata.uid:
            return None
        reasons: list[Reason] = []
        resolvable = True
        limit = allocatable.get(PODS, 0)
        if len(node.pods) + 1 > limit:
            reasons.append(TooManyPods(len(node.pods), limit))
        for name, amount in self.requested.items():
            capacity = allocatable.get(name, 0)
            if name in self._by_devices and not capacity:
                continue
            used = node.requested.get(name, 0)
            if amount > capacity - used:
                reasons.append(lack := Insufficient(name, amount, used, capacity))
                resolvable = resolvable and not lack.never
        return Rejection(self.name, tuple(reasons), resolvable=resolvable) if reasons else None


def counted(resource: str) -> bool:
    """Whether the scheduler counts the resource: Kubernetes' known ones, and all with a domain."""
    return resource in _NATIVE or "/" in resource or resource.startswith(("hugepages-", "attachable-volumes-"))
