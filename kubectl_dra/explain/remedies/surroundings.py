"""The waiting pod and its cluster as the scheduler's filters read them, real or hypothetical."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec import structs

from kubectl_dra.allocation.attempt import Attempt, Cycle
from kubectl_dra.allocation.budgets import FEWEST_REBUILDS, MOST_REBUILDS, REBUILT_OBJECTS
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node, NodeTaint, Toleration
from kubectl_dra.api.pods import Container, Pod
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.explain.question.giving_back import GivingBack
from kubectl_dra.explain.scene.filters import Filters
from kubectl_dra.scheduling.chain import Chain, without_devices
from kubectl_dra.scheduling.dynamic_resources import DynamicResources
from kubectl_dra.scheduling.framework import ClusterState, NodeCopy
from kubectl_dra.scheduling.node_unschedulable import CORDON
from kubectl_dra.scheduling.reasons import Rejection

C = TypeVar("C", bound=Container)


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
        known = {(claim.metadata.namespace, claim.metadata.name): claim for claim in claims}
        state = self.state.with_claims({**self.state.snapshot.claims, **known})
        devices = DynamicResources(self.pod, state, cycle)
        devices.attempts[attempt.node] = attempt
        # The scheduler deletes it and tries again.
        devices.leftover = None
        return chain.joined(devices).filter(node)

    def _with_pod(self, pod: Pod) -> Surroundings:
        return Surroundings(pod, self.state, self.rebuilds)

    def _with_state(self, state: ClusterState) -> Surroundings:
        return Surroundings(self.pod, state, self.rebuilds)

    def limiting(self, container: str, resource: str, amount: int) -> Surroundings:
        """With a pod one of whose containers asks for another amount of an extended resource."""

        def limited(old: C) -> C:
            if old.name != container:
                return old
            tables = old.resources.requests, old.resources.limits
            requests, limits = ({**table, resource: str(amount)} if resource in table else table for table in tables)
            return structs.replace(old, resources=structs.replace(old.resources, requests=requests, limits=limits))

        spec = self.pod.spec
        containers = tuple(map(limited, spec.containers))
        spec = structs.replace(spec, containers=containers, init_containers=tuple(map(limited, spec.init_containers)))
        return self._with_pod(structs.replace(self.pod, spec=spec))

    def tolerating(self, taint: NodeTaint) -> Surroundings:
        """With a pod that tolerates a node taint."""
        operator = "Equal" if taint.value else "Exists"
        more = Toleration(taint.key, operator, taint.value, taint.effect)
        spec = structs.replace(self.pod.spec, tolerations=(*self.pod.spec.tolerations, more))
        return self._with_pod(structs.replace(self.pod, spec=spec))

    def without_selector(self, key: str) -> Surroundings:
        """With a pod whose nodeSelector lacks one entry."""
        left = {name: value for name, value in self.pod.spec.node_selector.items() if name != key}
        return self._with_pod(structs.replace(self.pod, spec=structs.replace(self.pod.spec, node_selector=left)))

    def without_node_affinity(self) -> Surroundings:
        """With a pod that requires no node affinity."""
        affinity = self.pod.spec.affinity
        if affinity is None:
            return self
        left = structs.replace(affinity, node_affinity=structs.replace(affinity.node_affinity, required=None))
        return self._with_pod(structs.replace(self.pod, spec=structs.replace(self.pod.spec, affinity=left)))

    def uncordoned(self, names: Collection[str]) -> Surroundings:
        """With nodes that are not cordoned."""
        return self._with_nodes(names, CORDON.key, cordoned=False)

    def untainted(self, names: Collection[str], key: str) -> Surroundings:
        """With nodes that lack the taints of a key."""
        return self._with_nodes(names, key)

    def _with_nodes(self, names: Collection[str], key: str, *, cordoned: bool | None = None) -> Surroundings:
        """With nodes that lack the taints of a key, and are cordoned or not (None: unchanged)."""
        changed: list[Node] = []
        for name in names:
            state = self.state.nodes.get(name)
            if state is not None:
                old = state.node.spec
                spec = structs.replace(
                    old,
                    taints=tuple(entry for entry in old.taints if entry.key != key),
                    unschedulable=old.unschedulable if cordoned is None else cordoned,
                )
                changed.append(structs.replace(state.node, spec=spec))
        return self._with_state(self.state.changed(nodes=changed))

    def with_node(self, more: NodeCopy) -> Surroundings:
        """With one more node."""
        return self._with_state(self.state.with_node(more))

    def given_back(self, given: GivingBack) -> Surroundings:
        """After other pods have ended, and claims have given their devices back."""
        state = self.state.changed(ended=given.pods & self.state.snapshot.pods.keys())
        return self._with_state(state.with_claims(given.left(self.state.snapshot.claims)))

    def without_pods(self, pods: Iterable[Key]) -> Surroundings:
        """After pods have ended."""
        ended = frozenset(pods) & self.state.snapshot.pods.keys()
        return self._with_state(self.state.changed(ended=ended)) if ended else self
