"""One attempt: all claims of a pod on one node, from pools to results or the reason why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from kubectl_dra.allocation.capacity import NOTHING, shortage
from kubectl_dra.allocation.counters import CounterLedger, Key, Table
from kubectl_dra.allocation.errors import AllocationError, SearchBudgetExceeded
from kubectl_dra.allocation.features import Features, Quirks
from kubectl_dra.allocation.pools import NodePools, SliceIndex, gather
from kubectl_dra.allocation.request import (
    Alternative,
    PreparedClaim,
    check_constraints,
    check_request,
    check_size,
    prepare_alternative,
)
from kubectl_dra.allocation.result import AllocationResult, build_result
from kubectl_dra.allocation.search import Budget, Candidate, Context, Observer, Placement, Search
from kubectl_dra.allocation.selection import Selectors
from kubectl_dra.allocation.state import AllocatedState
from kubectl_dra.api.claims import ALL, ResourceClaim
from kubectl_dra.api.classes import DeviceClass
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import DeviceID

NOT_FOUND = "cannot allocate all claims"
INVALID_POOLS = "invalid resource pools were encountered"


class Verdict(Enum):
    """How an attempt ended: with devices, without, with a fatal error, or without an answer."""

    ALLOCATED = "allocated"
    REJECTED = "rejected"
    ERROR = "error"
    UNDETERMINED = "undetermined"


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome on one node. ``message`` is the scheduler's text for anything but ALLOCATED.

    ``results`` holds one allocation per claim, in the order of the claims.
    """

    node: str
    verdict: Verdict
    message: str = ""
    results: tuple[AllocationResult, ...] = ()
    placements: tuple[tuple[Placement, ...], ...] = ()
    error: AllocationError | None = None
    pools: NodePools | None = None
    steps: int = 0


@dataclass(slots=True)
class Cycle:
    """What all attempts of one scheduling cycle share: slices, classes, allocated state, settings.

    ``available`` is the counter table that the scheduler computes once per cycle; do not reuse a cycle for
    another pod or state.
    """

    index: SliceIndex
    classes: Mapping[str, DeviceClass]
    state: AllocatedState
    selectors: Selectors
    features: Features = field(default_factory=Features)
    quirks: Quirks = field(default_factory=Quirks)
    available: dict[Key, Table] = field(default_factory=dict)

    def attempt(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        *,
        budget: Budget | None = None,
        observer: Observer | None = None,
        pools: NodePools | None = None,
    ) -> Attempt:
        """Allocates unallocated claims together on a node, as one Filter call of the scheduler does."""
        budget = budget or Budget()
        try:
            pools = pools or gather(self.index, node, self.features, self.quirks)
            context = self._context(node, pools, budget, observer)
            prepared = self._prepare(claims, context, pools)
            search = Search(context, claims, prepared, CounterLedger(self.available, self.state, self.quirks))
            found = search.run()
        except AllocationError as error:
            return Attempt(node.name, Verdict.ERROR, error.message, error=error, pools=pools, steps=budget.steps)
        except SearchBudgetExceeded:
            return Attempt(node.name, Verdict.UNDETERMINED, "search budget exceeded", pools=pools, steps=budget.steps)
        if not found:
            message = INVALID_POOLS if any(pool.invalid for pool in pools.pools) else NOT_FOUND
            return Attempt(node.name, Verdict.REJECTED, message, pools=pools, steps=budget.steps)
        placements = tuple(tuple(placed) for placed in search.results)
        try:
            results = tuple(
                build_result(claim, placed, node, self.features, self.quirks)
                for claim, placed in zip(claims, placements, strict=True)
            )
        except AllocationError as error:
            return Attempt(node.name, Verdict.ERROR, error.message, error=error, pools=pools, steps=budget.steps)
        return Attempt(node.name, Verdict.ALLOCATED, "", results, placements, pools=pools, steps=budget.steps)

    def _context(self, node: Node, pools: NodePools, budget: Budget, observer: Observer | None) -> Context:
        return Context(
            node=node,
            features=self.features,
            quirks=self.quirks,
            selectors=self.selectors,
            state=self.state,
            candidates=candidates(pools, self.features),
            budget=budget,
            observer=observer,
        )

    def _prepare(self, claims: Sequence[ResourceClaim], context: Context, pools: NodePools) -> list[PreparedClaim]:
        prepared: list[PreparedClaim] = []
        for claim_index, claim in enumerate(claims):
            requests: list[tuple[Alternative, ...]] = []
            for request_index, request in enumerate(claim.requests):
                check_request(claim, request, self.features)
                alternatives: list[Alternative] = []
                for position, spec in enumerate(request.alternatives()):
                    indices = (claim_index, request_index, position)
                    alternative = prepare_alternative(claim, indices, request, spec, self.classes, self.features)
                    if spec.allocation_mode == ALL:
                        listed = self._gather_all(claim, alternative, context, pools)
                        alternative = replace(alternative, listed=listed)
                    alternatives.append(alternative)
                requests.append(tuple(alternatives))
            check_size(claim, tuple(requests))
            check_constraints(claim, self.features)
            prepared.append(tuple(requests))
        return prepared

    def _gather_all(
        self, claim: ResourceClaim, alternative: Alternative, context: Context, pools: NodePools
    ) -> tuple[int, ...]:
        """The devices that mode All has to take: every selectable one of every pool on the node."""
        listed: list[int] = []
        by_pool: dict[int, list[Candidate]] = {}
        for candidate in context.candidates:
            by_pool.setdefault(id(candidate.pool), []).append(candidate)
        for pool in pools.pools:
            if not pool.usable:
                if not self.quirks.all_fails_on_any_pool and not self._could_match(alternative, pool.id.driver):
                    continue
                problem = "being updated" if pool.incomplete else "invalid"
                subject = f"claim {claim.key}, request {alternative.spec.name}"
                raise AllocationError(
                    f"{subject}: asks for all devices, but resource pool {pool.id} is currently {problem}",
                    check="all-pool",
                    subject=str(pool.id),
                    detail={"request": alternative.result_name, "pool": pool},
                )
            for candidate in by_pool.get(id(pool), ()):
                if not context.selectable(alternative, candidate):
                    continue
                if self._drops(alternative, candidate):
                    continue
                listed.append(candidate.position)
        return tuple(listed)

    def _could_match(self, alternative: Alternative, driver: str) -> bool:
        return True

    def _drops(self, alternative: Alternative, candidate: Candidate) -> bool:
        """Whether mode All leaves a selectable device out because its capacity does not serve the request."""
        if not self.features.consumable_capacity:
            return False
        consumed = NOTHING
        if self.quirks.all_drops_exhausted:
            consumed = self.state.consumed.get(candidate.id, NOTHING)
        return shortage(candidate.device, alternative.spec.capacity, consumed, NOTHING) is not None


def candidates(pools: NodePools, features: Features) -> tuple[Candidate, ...]:
    """The devices of usable pools, in the order in which the scheduler tries them."""
    out: list[Candidate] = []
    for pool in pools.pools:
        if not pool.usable:
            continue
        for entry in pool.slices:
            for device in entry.devices:
                out.append(
                    Candidate(
                        position=len(out),
                        device=device,
                        id=DeviceID(pool.id.driver, pool.id.name, device.name),
                        pool=pool,
                        slice=entry,
                        shareable=device.allow_multiple_allocations and features.consumable_capacity,
                    )
                )
    return tuple(out)
