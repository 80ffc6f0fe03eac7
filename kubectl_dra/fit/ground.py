"""A cluster that fills up: each step gives another one, with all that plugins and the allocator read of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct, structs

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.state import released, taken
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.slices import DeviceID, ResourceSlice
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.explain.question.giving_back import GivingBack, of_claims, of_pods
from kubectl_dra.scheduling.binding import bound
from kubectl_dra.scheduling.chain import Chain
from kubectl_dra.scheduling.framework import ClusterState, NodeCopy


class Ground(Struct, frozen=True, eq=False):
    """A cluster: as the scheduler's plugins read it, and as the allocator does.

    ``homes``: the node of each pool whose slices all name one and the same; pools that several nodes can use are not
    in it. ``version`` is another one for each that is made from it.
    """

    state: ClusterState
    cycle: Cycle
    homes: Mapping[str, str]
    version: int = 0

    @classmethod
    def of(cls, state: ClusterState, cycle: Cycle) -> Ground:
        """The cluster as it is."""
        return cls(state, cycle, _homes(cycle.index.slices))

    @property
    def snapshot(self) -> Snapshot:
        """The objects of the cluster."""
        return self.state.snapshot

    def seating(self, pod: Pod, node: str, chain: Chain) -> Ground:
        """After a pod was given a node that the chain, made for it, lets pass."""
        before = self.snapshot.claims
        state = bound(pod, node, chain, self.state)
        key = (pod.metadata.namespace, pod.metadata.name)
        names = {(pod.metadata.namespace, name) for name in state.snapshot.pods[key].claim_names} | {key}
        known = ((before.get(name), state.snapshot.claims.get(name)) for name in names)
        new = [claim for old, claim in known if _holds(claim) and not _holds(old) and claim is not None]
        if not new:
            return structs.replace(self, state=state, version=self.version + 1)
        held = taken(self.cycle.state, new, self.cycle.features)
        return structs.replace(self, state=state, cycle=self.cycle.changed(state=held), version=self.version + 1)

    def creating(self, claims: Mapping[Key, ResourceClaim]) -> Ground:
        """With further claims, which hold nothing."""
        if not claims:
            return self
        return structs.replace(self, state=self.state.with_claims({**self.snapshot.claims, **claims}))

    def with_quotas(self, quotas: Sequence[ResourceQuota]) -> Ground:
        """With other ResourceQuotas."""
        return structs.replace(self, state=self.state.with_quotas(quotas))

    def ending(self, pods: Collection[Pod], claims: Collection[ResourceClaim] | None = None) -> Ground:
        """After pods ended: what they alone used is free. ``claims`` are those that they use, where that is known."""
        given = of_pods(pods, self.snapshot.claims.values() if claims is None else claims)
        return self._without(given)

    def freeing(self, claims: Collection[ResourceClaim]) -> Ground:
        """After claims were given back, and the pods that use them ended."""
        return self._without(of_claims(claims, self.snapshot.claims.values(), self.snapshot.pods))

    def taking_back(self, claim: ResourceClaim) -> Ground:
        """After the scheduler took the devices from a claim that nobody uses; the claim stays."""
        key = (claim.metadata.namespace, claim.metadata.name)
        state = self.state.with_claims({**self.snapshot.claims, key: claim.deallocated()})
        cycle = self.cycle.changed(state=released(self.cycle.state, [claim], self.cycle.features))
        return structs.replace(self, state=state, cycle=cycle, version=self.version + 1)

    def _without(self, given: GivingBack) -> Ground:
        state = self.state.changed(ended=given.pods).with_claims(given.left(self.snapshot.claims))
        cycle = self.cycle.changed(state=released(self.cycle.state, given.claims, self.cycle.features))
        return structs.replace(self, state=state, cycle=cycle, version=self.version + 1)

    def adding(self, more: NodeCopy) -> Ground:
        """With one more node, what runs on it, and what drivers publish for it."""
        index = SliceIndex((*self.cycle.index.slices, *more.slices)) if more.slices else self.cycle.index
        held = taken(self.cycle.state, more.claims, self.cycle.features) if more.claims else self.cycle.state
        cycle = self.cycle.changed(index=index, state=held)
        return Ground(self.state.with_node(more), cycle, _homes(index.slices), self.version + 1)

    def touched(self, devices: Iterable[DeviceID], node: str) -> frozenset[str] | None:
        """The nodes for which something changes when devices are taken or given back on a node; None for all."""
        names = {self.homes.get(device.pool) for device in devices}
        return frozenset((node,)) if names <= {node} else None


def _holds(claim: ResourceClaim | None) -> bool:
    return claim is not None and claim.allocation is not None


def _homes(slices: Iterable[ResourceSlice]) -> dict[str, str]:
    """Pool name to the one node of all its slices. Drivers whose pools have one name share it, as counters do."""
    found: dict[str, str | None] = {}
    for entry in slices:
        name = entry.pool.name
        home = entry.scope.node_name or None
        found[name] = home if found.setdefault(name, home) == home else None
    return {name: home for name, home in found.items() if home is not None}
