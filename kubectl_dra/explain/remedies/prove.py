"""Which small change makes the allocation succeed, proved by running it again with the change."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kubectl_dra.allocation.attempt import Attempt, Cycle, Verdict
from kubectl_dra.allocation.features import Features, Quirks
from kubectl_dra.allocation.pools import SliceIndex
from kubectl_dra.allocation.search import Budget
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.api.claims import EXACT_COUNT, Constraint, DeviceRequest, Request, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import DeviceID, ResourceSlice
from kubectl_dra.api.taints import DeviceToleration
from kubectl_dra.explain.funnel.search_refusals import Refusals
from kubectl_dra.explain.remedies.released_state import released

MAX_NODES = 200
STEPS = 200_000


@dataclass(frozen=True, slots=True)
class Proof:
    """A change under which the claims fit: the first node that then works, and the devices there."""

    node: str
    devices: tuple[str, ...]

    def __str__(self) -> str:
        shown = ", ".join(self.devices[:4]) + (f" and {len(self.devices) - 4} more" if len(self.devices) > 4 else "")
        return f"then it fits on {self.node}: {shown}" if shown else f"then it fits on {self.node}"


Remedy = Callable[["WhatIf"], "WhatIf"]
"""Makes a change in a question."""


class Tries:
    """How many nodes may still be tried; a search for changes ends where none are left."""

    def __init__(self, left: int) -> None:
        self.left = left


class WhatIf:
    """Runs the allocation of one question again, with something changed.

    ``nodes`` are those that are tried, ``other_nodes`` those where the pod may not run.
    """

    def __init__(
        self,
        cycle: Cycle,
        claims: Sequence[ResourceClaim],
        nodes: Sequence[Node],
        all_claims: Iterable[ResourceClaim],
        other_nodes: Sequence[Node] = (),
    ) -> None:
        self._cycle = cycle
        self._claims = tuple(claims)
        self._nodes = tuple(nodes)
        self._all_claims = tuple(all_claims)
        self._other_nodes = tuple(other_nodes)
        self.remedy: Remedy | None = None
        """The last change that was proved, as a way to make it in another WhatIf."""

    def request(self, claim: int, request: int, alternative: int) -> DeviceRequest:
        """One request or subrequest as it is in this question."""
        return self._claims[claim].requests[request].alternatives()[alternative]

    def changed(self, claims: Sequence[ResourceClaim]) -> WhatIf:
        """The same cluster, asked about other claims."""
        return WhatIf(self._cycle, claims, self._nodes, self._all_claims, self._other_nodes)

    def setting_aside(self, requests: Container[tuple[int, int]]) -> WhatIf:
        """The same question without the requests at these (claim, request) indices: they need nothing."""
        claims: list[ResourceClaim] = []
        for claim_index, claim in enumerate(self._claims):
            entries = [
                _needless(entry) if (claim_index, request_index) in requests else entry
                for request_index, entry in enumerate(claim.requests)
            ]
            claims.append(replace(claim, requests=tuple(entries)))
        return self.changed(claims)

    def freeing(self, holders: Iterable[ResourceClaim]) -> WhatIf:
        """The same question where other claims have given their devices back."""
        freed = tuple(holders)
        gone = {id(holder) for holder in freed}
        kept = [claim for claim in self._all_claims if id(claim) not in gone]
        cycle = replace(self._fresh(self._cycle), state=released(self._cycle.state, freed, self._cycle.features))
        return WhatIf(cycle, self._claims, self._nodes, kept, self._other_nodes)

    def without(self, claim: int, constraint: Constraint) -> WhatIf:
        """The same question without a constraint of one claim."""
        claims = list(self._claims)
        kept = tuple(entry for entry in claims[claim].constraints if entry is not constraint)
        claims[claim] = replace(claims[claim], constraints=kept)
        return self.changed(claims)

    def publishing(self, slices: Iterable[ResourceSlice], instead_of: Container[str] = ()) -> WhatIf:
        """The same question where further slices are published, perhaps in place of some by name."""
        kept = (entry for entry in self._cycle.index.slices if entry.name not in instead_of)
        cycle = replace(self._fresh(self._cycle), index=SliceIndex((*kept, *slices)))
        return WhatIf(cycle, self._claims, self._nodes, self._all_claims, self._other_nodes)

    def with_slice(self, entry: ResourceSlice, node: Node) -> Proof | None:
        """The proof that the claims fit on one node when a further slice is published for it."""
        index = self._cycle.index
        near = {id(other): other for seen in index.candidates(node.name) for other in index.by_pool[seen.pool]}
        cycle = replace(self._fresh(self._cycle), index=SliceIndex((*near.values(), entry)))
        return self._prove(cycle, self._claims, [node])

    def allowing(self, names: Container[str]) -> WhatIf:
        """The same question where the pod may run on further nodes."""
        more = [node for node in self._other_nodes if node.name in names]
        return self.also_on(more[:MAX_NODES])

    def also_on(self, more: Iterable[Node]) -> WhatIf:
        """The same question, tried on further nodes as well."""
        known = {node.name for node in self._nodes}
        nodes = (*self._nodes, *(node for node in more if node.name not in known))
        return WhatIf(self._cycle, self._claims, nodes, self._all_claims, self._other_nodes)

    def prove(self, remedies: Iterable[Remedy], tries: Tries) -> Proof | None:
        """The proof that the claims fit with all these changes; none either where the tries do not suffice."""
        world = self
        for remedy in remedies:
            world = remedy(world)
        cycle = self._fresh(world._cycle)
        for node in world._nodes:
            if not tries.left:
                return None
            tries.left -= 1
            attempt = cycle.attempt(node, world._claims, budget=Budget(max_steps=STEPS // 10))
            if attempt.verdict is Verdict.ALLOCATED:
                return Proof(node.name, tuple(device_names(attempt)))
        return None

    def with_claims(self, claims: Sequence[ResourceClaim]) -> Proof | None:
        """The proof that other claims fit in the same cluster."""
        return self._prove(self._fresh(self._cycle), claims)

    def with_request(
        self,
        claim: int,
        request: int,
        alternative: int,
        change: Callable[[DeviceRequest], DeviceRequest],
        near: Sequence[Node] = (),
    ) -> Proof | None:
        """The proof that the claims fit when one request or subrequest is changed; ``near`` is tried as well."""
        return self._prove_remedy(changing(claim, request, alternative, change, near))

    def with_selector(self, old: str, new: str) -> Proof | None:
        """The proof that the claims fit when a selector, of a request or a class, reads otherwise."""
        claims = []
        for claim in self._claims:
            for index, entry in enumerate(claim.requests):
                for alternative in range(len(entry.alternatives())):
                    claim = _changed(claim, index, alternative, lambda spec: _reworded(spec, old, new))
            claims.append(claim)
        classes = {
            name: replace(entry, selectors=tuple(new if text == old else text for text in entry.selectors))
            for name, entry in self._cycle.classes.items()
        }
        return self._prove(replace(self._fresh(self._cycle), classes=classes), claims)

    def constraints(self) -> Iterator[tuple[int, Constraint]]:
        """The constraints of all claims, each with the index of its claim."""
        for index, claim in enumerate(self._claims):
            for constraint in claim.constraints:
                yield index, constraint

    def without_constraint(self, claim: int, constraint: Constraint) -> Proof | None:
        """The proof that the claims fit when a constraint is dropped."""
        return self._prove_remedy(lambda world: world.without(claim, constraint))

    def with_constraint(self, claim: int, old: Constraint, new: Constraint) -> Proof | None:
        """The proof that the claims fit when a constraint is replaced."""
        claims = list(self._claims)
        changed = tuple(new if entry is old else entry for entry in claims[claim].constraints)
        claims[claim] = replace(claims[claim], constraints=changed)
        return self.with_claims(claims)

    def with_features(self, features: Features) -> Proof | None:
        """The proof that the claims fit under an allocator with other features."""
        state = allocated_state(self._all_claims, features)
        return self._prove(replace(self._fresh(self._cycle), features=features, state=state), self._claims)

    def without_request(self, claim: int, request: int) -> Proof | None:
        """The proof that the claims fit when one whole request is left out."""
        claims = list(self._claims)
        old = claims[claim]
        kept = tuple(entry for index, entry in enumerate(old.requests) if index != request)
        claims[claim] = replace(old, requests=kept)
        return self.with_claims(claims)

    def with_split(self, claim: int, request: int) -> Proof | None:
        """The proof that the claims fit when one request is written as several of count 1."""
        claims = list(self._claims)
        old = claims[claim]
        entry = old.requests[request]
        if entry.exactly is None:
            return None
        one = replace(entry.exactly, count=1)
        names = [f"{entry.name}-{number}" for number in range(entry.exactly.count)]
        parts = tuple(replace(entry, name=name, exactly=one) for name in names)
        constraints = tuple(
            replace(kept, requests=tuple(n for own in kept.requests for n in (names if own == entry.name else (own,))))
            for kept in old.constraints
        )
        requests = (*old.requests[:request], *parts, *old.requests[request + 1 :])
        claims[claim] = replace(old, requests=requests, constraints=constraints)
        return self.with_claims(claims)

    def without_holders(self, holders: Iterable[ResourceClaim], near: Sequence[Node] = ()) -> Proof | None:
        """The proof that the claims fit when other claims give their devices back; ``near`` is tried as well."""
        given_up = tuple(holders)
        return self._prove_remedy(lambda world: world.freeing(given_up).also_on(near))

    def _prove_remedy(self, remedy: Remedy) -> Proof | None:
        world = remedy(self)
        proof = self._prove(self._fresh(world._cycle), world._claims, world._nodes)
        if proof is not None:
            self.remedy = remedy
        return proof

    def on_other_nodes(self, names: Container[str] | None = None) -> Proof | None:
        """The proof that the claims fit on a node (of those named) where the pod may not run."""
        nodes = [node for node in self._other_nodes if names is None or node.name in names]
        return self._prove(self._fresh(self._cycle), self._claims, nodes[:MAX_NODES])

    def with_quirks(self, quirks: Quirks) -> Proof | None:
        """The proof that the claims fit under an allocator with other defects."""
        return self._prove(replace(self._fresh(self._cycle), quirks=quirks), self._claims)

    def refusals(self) -> Refusals:
        """What the search refuses on the nodes because of devices that it picked before."""
        seen = Refusals()
        cycle = self._fresh(self._cycle)
        for node in self._nodes:
            cycle.attempt(node, self._claims, budget=Budget(max_steps=STEPS // 10), observer=seen)
        return seen

    def _prove(
        self, cycle: Cycle, claims: Sequence[ResourceClaim], nodes: Sequence[Node] | None = None
    ) -> Proof | None:
        for node in self._nodes if nodes is None else nodes:
            attempt = cycle.attempt(node, claims, budget=Budget(max_steps=STEPS))
            if attempt.verdict is Verdict.ALLOCATED:
                return Proof(node.name, tuple(device_names(attempt)))
        return None

    @staticmethod
    def _fresh(cycle: Cycle) -> Cycle:
        return replace(cycle, available={})


def changing(
    claim: int,
    request: int,
    alternative: int,
    change: Callable[[DeviceRequest], DeviceRequest],
    near: Sequence[Node] = (),
) -> Remedy:
    """The remedy that changes one request or subrequest; ``near`` are nodes where it should be tried."""

    def remedy(world: WhatIf) -> WhatIf:
        claims = list(world._claims)
        claims[claim] = _changed(claims[claim], request, alternative, change)
        return world.changed(claims).also_on(near)

    return remedy


def device_names(attempt: Attempt) -> Iterator[str]:
    """The devices of an allocation, in order, as ``driver/pool/device``."""
    for result in attempt.results:
        for device in result.devices:
            yield str(DeviceID(device["driver"], device["pool"], device["device"]))


def _changed(
    claim: ResourceClaim, request: int, alternative: int, change: Callable[[DeviceRequest], DeviceRequest]
) -> ResourceClaim:
    requests = list(claim.requests)
    old = requests[request]
    if old.first_available:
        subrequests = list(old.first_available)
        subrequests[alternative] = change(subrequests[alternative])
        requests[request] = replace(old, first_available=tuple(subrequests))
    elif old.exactly is not None:
        requests[request] = replace(old, exactly=change(old.exactly))
    return replace(claim, requests=tuple(requests))


def _needless(entry: Request) -> Request:
    """A request that is satisfied by nothing."""
    spec = entry.alternatives()[0]
    return replace(entry, exactly=replace(spec, allocation_mode=EXACT_COUNT, count=0), first_available=())


def _reworded(spec: DeviceRequest, old: str, new: str) -> DeviceRequest:
    return replace(spec, selectors=tuple(new if text == old else text for text in spec.selectors))


def tolerating(spec: DeviceRequest, tolerations: Iterable[DeviceToleration]) -> DeviceRequest:
    """The request with tolerations added."""
    return replace(spec, tolerations=(*spec.tolerations, *tolerations))
