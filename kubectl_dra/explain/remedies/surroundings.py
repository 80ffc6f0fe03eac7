"""The waiting pod and its cluster as the scheduler's filters read them, real or hypothetical."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from kubectl_dra.allocation.attempt import Attempt, Cycle
from kubectl_dra.allocation.budgets import FEWEST_REBUILDS, MOST_REBUILDS, REBUILT_OBJECTS
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.explain.scene.node_reasons import Filters
from kubectl_dra.scheduling.chain import Chain, without_devices
from kubectl_dra.scheduling.dynamic_resources import DynamicResources
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.reasons import Rejection


class Rebuilds:
    """How many changed clusters may still be built. ``stopped``: some change was not tried because the limit
    was reached.
    """

    def __init__(self, left: int) -> None:
        self.left = left
        self.stopped = False

    @classmethod
    def of_size(cls, objects: int) -> Rebuilds:
        """The limit for a cluster with that many nodes and pods."""
        return cls(max(FEWEST_REBUILDS, min(MOST_REBUILDS, REBUILT_OBJECTS // max(1, objects))))

    def take(self) -> bool:
        """Whether another one may be built; counts it."""
        if not self.left:
            self.stopped = True
            return False
        self.left -= 1
        return True


class Surroundings:
    """A pod that waits for a node, and a cluster. Changes make new ones; filters run on demand."""

    def __init__(self, pod: Pod, state: ClusterState, rebuilds: Rebuilds, chain: Chain | None = None) -> None:
        self.pod = pod
        self.state = state
        self.rebuilds = rebuilds
        self.changed = chain is None
        self._known = chain

    @classmethod
    def of(cls, filters: Filters) -> Surroundings:
        """The real surroundings."""
        chain = filters.chain
        rebuilds = Rebuilds.of_size(len(chain.state.nodes) + len(chain.state.snapshot.pods))
        return cls(chain.pod, chain.state, rebuilds, chain)

    @cached_property
    def chain(self) -> Chain | None:
        """The filters except that for devices; None if no more clusters may be built."""
        if self._known is not None:
            return self._known
        if not self.rebuilds.take():
            return None
        return Chain(self.pod, self.state, without_devices(self.state.profile))

    def refusal(self, node: Node) -> Rejection | None:
        """Why filters other than that for devices refuse the node; also None if no more clusters may be built."""
        chain = self.chain
        return (
            chain.filter(self.state.nodes[node.name]) if chain is not None and node.name in self.state.nodes else None
        )

    def takes(self, attempt: Attempt, cycle: Cycle, claims: Sequence[ResourceClaim]) -> bool:
        """Whether all filters accept the pod on a node where its claims are allocated like this; also False if no more
        clusters may be built.

        ``claims`` are the pod's unallocated claims, as they would be.
        """
        return self.chain is not None and self.rejection(attempt, cycle, claims) is None

    def rejection(self, attempt: Attempt, cycle: Cycle, claims: Sequence[ResourceClaim]) -> Rejection | None:
        """Why a filter refuses the pod where its claims are allocated like this."""
        chain, node = self.chain, self.state.nodes.get(attempt.node)
        if chain is None or node is None:
            return None
        state = self.state.moved(self.state.cluster.editing(*claims))
        devices = DynamicResources(self.pod, state, cycle)
        devices.attempts[attempt.node] = attempt
        # The scheduler deletes it and tries again.
        devices.leftover = None
        return chain.joined(devices).filter(node)

    def with_pod(self, pod: Pod) -> Surroundings:
        """With another pod."""
        return Surroundings(pod, self.state, self.rebuilds)

    def moved(self, cluster: Cluster) -> Surroundings:
        """In another cluster, which was made of this one by a change."""
        return Surroundings(self.pod, self.state.moved(cluster), self.rebuilds)
