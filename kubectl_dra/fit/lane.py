"""What the scheduler says of pods of one likeness, node by node, in a cluster that fills up.

Where nothing but a node itself decides, a pod that is placed changes the answer of its node alone; the others keep
theirs, so that a thousand equal pods cost little more than the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import structs

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict
from kubectl_dra.allocation.budgets import FILTERED_NODE, PLACE_STEPS
from kubectl_dra.fit.pod_factory import NewPod
from kubectl_dra.scheduling.chain import Chain, without_devices
from kubectl_dra.scheduling.dynamic_resources import DynamicResources
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.inter_pod_affinity import InterPodAffinity
from kubectl_dra.scheduling.outcome import Outcome, attempt
from kubectl_dra.scheduling.pod_topology_spread import PodTopologySpread
from kubectl_dra.scheduling.reasons import Rejection
from kubectl_dra.scheduling.volume_filters import VolumeRestrictions

_READ_OTHER_NODES: Final = (InterPodAffinity, PodTopologySpread, VolumeRestrictions)


class Lane:
    """Pods of one likeness. ``chain`` are the plugins for ``pod``, which stands for all of them.

    ``only``: no other nodes are asked.
    """

    chain: Chain
    _others: Chain

    def __init__(self, new: NewPod, ground: ClusterState, only: Collection[str] | None = None) -> None:
        # Whichever of them is placed first, it is another one than the pod that stands for the next.
        self.pod = new.pod
        if not new.exists:
            self.pod = structs.replace(new.pod, metadata=structs.replace(new.pod.metadata, uid=""))
        self._only = only
        self._claims = new.claims
        self._names_claims = any(entry.claim_name for entry in new.pod.claims)
        self._rejected: dict[str, Rejection] = {}
        self._feasible: dict[str, None] = {}
        self._error = False
        self._attempts: dict[str, Attempt] = {}
        self._look(ground)

    @property
    def feasible(self) -> Collection[str]:
        """The nodes that take a pod, in the order of the cluster."""
        return () if self._error or self.chain.rejection is not None else self._feasible.keys()

    @property
    def local(self) -> bool:
        """Whether no pod on another node, and no claim that several pods use, decides about a node."""
        reads = any(isinstance(plugin, _READ_OTHER_NODES) and not plugin.skipped for plugin in self.chain.prepared)
        return not reads and not self._names_claims

    @property
    def attempts(self) -> dict[str, Attempt]:
        """The devices that a pod would get, by node."""
        return self._attempts

    def outcome(self) -> Outcome:
        """The whole attempt with a pod that no node takes."""
        return attempt(self.chain, self._rejected)

    def update(self, ground: ClusterState, nodes: frozenset[str] | None, *, counted: bool = False) -> None:
        """After a pod was placed.

        Args:
            ground: the cluster with it.
            nodes: those for which devices changed; None for all.
            counted: plugins that skip these pods may count the other one.
        """
        if self._names_claims:
            self._attempts = {}
        elif nodes is None:
            # Where there were no devices there are none when fewer are left.
            rejected = AttemptVerdict.REJECTED
            self._attempts = {name: known for name, known in self._attempts.items() if known.verdict is rejected}
        else:
            self._forget(nodes)
        if counted or nodes is None or not self.local:
            self._look(ground)
            return
        state = self._view(ground)
        self._others = self._others.moved(state)
        self.chain = self._joined(self._others, ground, state)
        for name in nodes:
            self._ask(name, state)

    def _forget(self, nodes: Iterable[str]) -> None:
        for name in nodes:
            self._attempts.pop(name, None)

    def _view(self, ground: ClusterState) -> ClusterState:
        return ground.moved(ground.cluster.editing(*self._claims.values())) if self._claims else ground

    def _joined(self, others: Chain, ground: ClusterState, state: ClusterState) -> Chain:
        devices = DynamicResources(self.pod, state, ground.cycle, PLACE_STEPS)
        devices.attempts = self._attempts
        devices.leftover = None
        return others.joined(devices)

    def _look(self, ground: ClusterState) -> None:
        """Asks all nodes."""
        state = self._view(ground)
        self._others = Chain(self.pod, state, without_devices(state.profile))
        self._rejected, self._feasible, self._error = {}, {}, False
        asked = state.nodes if self._only is None else self._only
        ground.cycle.budget.charge(FILTERED_NODE * len(asked))
        for name in asked:
            if (rejection := self._others.filter(state.nodes[name])) is not None:
                self._rejected[name] = rejection
        self.chain = self._joined(self._others, ground, state)
        if self.chain.rejection is not None:
            return
        for name in asked:
            if name not in self._rejected:
                self._ask(name, state)

    def _ask(self, name: str, state: ClusterState) -> None:
        rejection = self.chain.filter(state.nodes[name])
        if rejection is None:
            self._rejected.pop(name, None)
            self._feasible[name] = None
            return
        self._feasible.pop(name, None)
        self._rejected[name] = rejection
        self._error = self._error or rejection.error
