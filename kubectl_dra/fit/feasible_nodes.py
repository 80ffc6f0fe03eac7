"""What the scheduler says of pods of one likeness, node by node, in a cluster that fills up.

Where nothing but a node itself decides, a pod that is placed changes the answer of its node alone; the others keep
theirs, so that a thousand equal pods cost little more than the first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import structs

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict
from kubectl_dra.allocation.budgets import FILTERED_NODE, PLACE_STEPS
from kubectl_dra.fit.pod_factory import NewPod
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.inter_pod_affinity import InterPodAffinity
from kubectl_dra.scheduling.outcome import Outcome, schedule
from kubectl_dra.scheduling.pod_topology_spread import PodTopologySpread
from kubectl_dra.scheduling.volume_filters import VolumeRestrictions

_READ_OTHER_NODES: Final = (InterPodAffinity, PodTopologySpread, VolumeRestrictions)


class FeasibleNodes:
    """Pods of one likeness. ``outcome`` is the attempt for ``pod``, which stands for all of them.

    ``only``: no other nodes are asked.
    """

    outcome: Outcome

    def __init__(self, new: NewPod, state: ClusterState, only: Collection[str] | None = None) -> None:
        # Whichever of them is placed first, it is another one than the pod that stands for the next.
        self.pod = new.pod
        if not new.exists:
            self.pod = structs.replace(new.pod, metadata=structs.replace(new.pod.metadata, uid=""))
        self._only = only
        self._claims = new.claims
        self._names_claims = any(entry.claim_name for entry in new.pod.claims)
        self._look(state, {})

    @property
    def feasible(self) -> Collection[str]:
        """The nodes that take a pod, in the order of the cluster."""
        ends = self.outcome.errors or self.outcome.before is not None
        return () if ends else self.outcome.accepting.keys()

    @property
    def local(self) -> bool:
        """Whether no pod on another node, and no claim that several pods use, decides about a node."""
        prepared = self.outcome.chain.prepared
        reads = any(isinstance(plugin, _READ_OTHER_NODES) and not plugin.skipped for plugin in prepared)
        return not reads and not self._names_claims

    def update(self, state: ClusterState, nodes: frozenset[str] | None, *, counted: bool = False) -> None:
        """After a pod was placed.

        Args:
            state: the cluster with it.
            nodes: those for which devices changed; None for all.
            counted: plugins that skip these pods may count the other one.
        """
        if not counted and nodes is not None and self.local:
            self.outcome = self.outcome.again(self._view(state), state.cycle, nodes)
            return
        known: Mapping[str, Attempt] = {} if self._names_claims else self.outcome.attempts
        # Where there were no devices there are none when fewer are left.
        rejected = AttemptVerdict.REJECTED
        if nodes is None:
            self._look(state, {name: one for name, one in known.items() if one.verdict is rejected})
        else:
            self._look(state, {name: one for name, one in known.items() if name not in nodes})

    def _view(self, state: ClusterState) -> ClusterState:
        return state.moved(state.cluster.editing(*self._claims.values())) if self._claims else state

    def _look(self, state: ClusterState, known: Mapping[str, Attempt]) -> None:
        """Asks all nodes, but for the devices that are known."""
        fresh = schedule(
            self.pod, self._view(state), only=self._only, cycle=state.cycle, steps=PLACE_STEPS, retried=True
        )
        self.outcome = fresh.given(known)
        state.cycle.budget.charge(FILTERED_NODE * len(fresh.asked))
