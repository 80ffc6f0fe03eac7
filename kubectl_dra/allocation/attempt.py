"""One attempt: all claims of a pod on one node, from pools to results or the reason for the failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from operator import is_
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import ATTEMPT, PLAIN_STEPS, Budget
from kubectl_dra.allocation.capacity import NOTHING, shortage
from kubectl_dra.allocation.counters import CounterLedger, CounterTableKey, GroupLedger, Table
from kubectl_dra.allocation.errors import (
    AllocationCheck,
    AllocationError,
    ErrorDetail,
    NodeRejected,
    SearchBudgetExceeded,
)
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import NodePools, SliceIndex, pools_of_node, uses_groups
from kubectl_dra.allocation.result import AllocationResult, build_result
from kubectl_dra.allocation.search import Search, Solution
from kubectl_dra.allocation.search_context import (
    Alternative,
    CandidateDevice,
    Observer,
    PickedDevice,
    PreparedClaim,
    SearchContext,
    barrier,
    candidates,
    check_constraints,
    check_request,
    check_size,
    prepare_alternative,
)
from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.allocation.state import AllocatedState
from kubectl_dra.api.claims import ALL, DeviceClass, ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import DeviceID, ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cel.lexer import with_room

if TYPE_CHECKING:
    from kubectl_dra.allocation.counters import InUse

NOT_FOUND = "cannot allocate all claims"
INVALID_POOLS = "invalid resource pools were encountered"


class AttemptVerdict(Enum):
    """End of an attempt: with devices, without, with a fatal error, or without an answer."""

    ALLOCATED = "allocated"
    REJECTED = "rejected"
    ERROR = "error"
    UNDETERMINED = "undetermined"


class Attempt(Struct, frozen=True):
    """The outcome on one node. ``message`` is the scheduler's text for any verdict but ALLOCATED.

    ``allocations`` has one for each claim, in the order of the claims. ``steps`` counts the devices tried.
    ``would_time_out``: the answer is where the scheduler's search leads, but that search would probably hit the
    scheduler's time-out of 10 s per node first (see ``budgets.SCHEDULER_STEPS``). ``order_decides``: pools
    are tried in random order, and two orders lead to different verdicts; ``fails_in_some_order`` is the error of one.
    """

    node: str
    verdict: AttemptVerdict
    message: str = ""
    allocations: tuple[AllocationResult, ...] = ()
    placements: tuple[tuple[PickedDevice, ...], ...] = ()
    error: AllocationError | None = None
    pools: NodePools | None = None
    steps: int = 0
    would_time_out: bool = False
    order_decides: bool = False
    fails_in_some_order: str = ""

    @property
    def certain(self) -> bool:
        """Whether it found devices, and none has a field that may keep the scheduler from giving it out."""
        picked = (device for placed in self.placements for device in placed)
        return self.verdict is AttemptVerdict.ALLOCATED and not any(p.candidate.device.unmodelled for p in picked)

    @property
    def excluded(self) -> bool:
        """Whether the scheduler gets no devices there, so that nothing is open."""
        return self.verdict in (AttemptVerdict.REJECTED, AttemptVerdict.ERROR)

    @property
    def devices(self) -> list[DeviceID]:
        """The devices of all claims, in the order of the results."""
        return [result.device for allocation in self.allocations for result in allocation.results]


class Cycle(Struct):
    """What all attempts of one scheduling cycle share: slices, classes, allocated state, settings.

    ``available`` is the counter table that the scheduler computes once per cycle, ``groups`` what devices in use have
    in common. ``rules`` are the DeviceTaintRules that are applied to its slices. Do not reuse a cycle for another pod
    or state; ``changed`` makes a new one.
    ``seen`` are the pools of nodes that were gathered already. ``exact`` are the slices whose devices have their own
    values, by the identity of those that keep them apart (``Snapshot.judged``); None where that tells no more.
    """

    index: SliceIndex
    classes: Mapping[str, DeviceClass]
    state: AllocatedState
    selectors: Selectors
    features: Features = field(default_factory=Features)
    defects: KnownDefects = field(default_factory=KnownDefects)
    rules: Sequence[DeviceTaintRule] = ()
    available: dict[CounterTableKey, Table] = field(default_factory=dict)
    groups: InUse = field(default_factory=dict)
    seen: dict[str, tuple[Node, NodePools]] = field(default_factory=dict)
    exact: ByIdentity[ResourceSlice, ResourceSlice] | None = None
    _prepared: tuple[tuple[ResourceClaim, ...], list[PreparedClaim]] | None = None

    def changed(self, **changes: Any) -> Cycle:
        """A fresh cycle with other slices, classes, state or settings."""
        seen = {} if changes.keys() & {"index", "features", "defects", "exact"} else self.seen
        return replace(self, available={}, groups={}, seen=seen, _prepared=None, **changes)

    def pools_of(self, node: Node) -> NodePools:
        """The pools that a node sees.

        Raises:
            AllocationError: the scheduler stops when it looks at one of them.
        """
        known = self.seen.get(node.name)
        if known is None or known[0] is not node:
            pools = pools_of_node(self.index, node, self.features, self.defects)
            if self.exact is not None:
                # Restored once: verdicts are remembered by a device's identity.
                known_exact, whole = self.exact, ResourceSlice.exact
                pools = replace(
                    pools,
                    pools=tuple(
                        replace(pool, slices=tuple(known_exact.of(slice_, whole) for slice_ in pool.slices))
                        for pool in pools.pools
                    ),
                )
            known = self.seen[node.name] = node, pools
        return known[1]

    def attempt(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        *,
        budget: Budget | None = None,
        observer: Observer | None = None,
        pools: NodePools | None = None,
    ) -> Attempt:
        """Allocate unallocated claims together on a node, as one Filter call of the scheduler does.

        Where the scheduler walks through pools in random order, the answer is undetermined if two orders disagree.
        """
        budget = budget or Budget()
        attempt = self.in_order(node, claims, budget, observer, pools)
        if attempt.pools is None or not self.features.any_pool_order or len(attempt.pools.pools) < 2:
            return attempt
        other = self.in_order(
            node, claims, Budget(budget.max_steps, whole=budget.whole), None, _backwards(attempt.pools)
        )
        if other.verdict is attempt.verdict or AttemptVerdict.UNDETERMINED in (attempt.verdict, other.verdict):
            return attempt
        fails = next((tried.message for tried in (attempt, other) if tried.verdict is AttemptVerdict.ERROR), "")
        return Attempt(
            node.name,
            AttemptVerdict.UNDETERMINED,
            pools=attempt.pools,
            steps=attempt.steps,
            order_decides=True,
            fails_in_some_order=fails,
        )

    def in_order(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        budget: Budget,
        observer: Observer | None = None,
        pools: NodePools | None = None,
    ) -> Attempt:
        """Allocate the claims with the pools in the order given."""
        own = Budget(budget.left)
        try:
            return self._attempted(node, claims, own, observer, pools)
        finally:
            own.charge(ATTEMPT)
            budget.add(own)

    def _attempted(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        budget: Budget,
        observer: Observer | None,
        pools: NodePools | None,
    ) -> Attempt:
        try:
            if not budget.left:
                raise SearchBudgetExceeded
            pools = pools or self.pools_of(node)
            context = self._context(node, pools, budget, observer)
            prepared = self._prepare(claims, context, pools)
            solution = solve(context, claims, prepared, self.ledger)
        except AllocationError as error:
            return Attempt(node.name, AttemptVerdict.ERROR, error.message, error=error, pools=pools, steps=budget.tried)
        except NodeRejected as error:
            verdict, message, late = AttemptVerdict.REJECTED, str(error), False
        except SearchBudgetExceeded as error:
            verdict, message, late = AttemptVerdict.UNDETERMINED, str(error), error.would_time_out
        else:
            late = solution.would_time_out
            if solution.found:
                placements = tuple(tuple(placed) for placed in solution.results)
                return self._allocated(node, claims, placements, pools, budget.tried, late=late)
            invalid = any(pool.invalid for pool in pools.pools) and not self.features.loose_pools
            verdict, message = AttemptVerdict.REJECTED, INVALID_POOLS if invalid else NOT_FOUND
        return Attempt(node.name, verdict, message, pools=pools, steps=budget.tried, would_time_out=late)

    def repeated(self, known: Attempt, node: Node, claims: Sequence[ResourceClaim], pools: NodePools) -> Attempt:
        """An attempt that ended with devices, on another node from which an attempt reads the same.

        The search is not made again: it would pick the devices in the same places.
        """
        tried = candidates(pools, self.features)
        placements = tuple(
            tuple(replace(picked, candidate=tried[picked.candidate.position]) for picked in placed)
            for placed in known.placements
        )
        return self._allocated(node, claims, placements, pools, known.steps, late=known.would_time_out)

    def ledger(self) -> CounterLedger:
        """The counters of one attempt, nothing charged yet."""
        if not self.features.compatibility_groups:
            return CounterLedger(self.available, self.state, self.defects)
        return CounterLedger(self.available, self.state, self.defects, GroupLedger(self.groups, self.state))

    def _allocated(
        self,
        node: Node,
        claims: Sequence[ResourceClaim],
        placements: tuple[tuple[PickedDevice, ...], ...],
        pools: NodePools,
        steps: int,
        *,
        late: bool,
    ) -> Attempt:
        """What the scheduler writes about the devices, which may be an error."""
        try:
            allocations = tuple(
                build_result(claim, placed, node, self.features, self.defects)
                for claim, placed in zip(claims, placements, strict=True)
            )
        except AllocationError as error:
            return Attempt(node.name, AttemptVerdict.ERROR, error.message, error=error, pools=pools, steps=steps)
        return Attempt(
            node.name,
            AttemptVerdict.ALLOCATED,
            "",
            allocations,
            placements,
            pools=pools,
            steps=steps,
            would_time_out=late,
        )

    def _context(self, node: Node, pools: NodePools, budget: Budget, observer: Observer | None) -> SearchContext:
        return SearchContext(
            node=node,
            features=self.features,
            defects=self.defects,
            selectors=self.selectors,
            state=self.state,
            candidates=candidates(pools, self.features),
            barrier=barrier(pools, self.features),
            budget=budget,
            observer=observer,
        )

    def _prepare(
        self, claims: Sequence[ResourceClaim], context: SearchContext, pools: NodePools
    ) -> list[PreparedClaim]:
        """The validation stage. Without mode All, its result is the same on all nodes."""
        known = self._prepared
        if known and len(known[0]) == len(claims) and all(map(is_, known[0], claims)):
            return known[1]
        prepared = self._validate(claims, context, pools)
        if all(alternative.listed is None for claim in prepared for request in claim for alternative in request):
            self._prepared = (tuple(claims), prepared)
        return prepared

    def _validate(
        self, claims: Sequence[ResourceClaim], context: SearchContext, pools: NodePools
    ) -> list[PreparedClaim]:
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
                if not self.defects.devices_of_claim_summed:
                    check_size(claim, tuple(requests), self.defects)
            check_size(claim, tuple(requests), self.defects)
            check_constraints(claim, self.features)
            prepared.append(tuple(requests))
        return prepared

    def _gather_all(
        self, claim: ResourceClaim, alternative: Alternative, context: SearchContext, pools: NodePools
    ) -> tuple[int, ...]:
        """The devices that mode All must take: every selectable device of every pool on the node."""
        listed: list[int] = []
        claim_index, request, position = alternative.indices
        remembered = alternative
        if self.defects.later_all_continues_with_first:
            # What is selectable is remembered under the alternative before, until the search begins.
            remembered = replace(alternative, indices=(claim_index, request, -max(position, 1)))
        by_pool: dict[int, list[CandidateDevice]] = {}
        for candidate in context.candidates:
            by_pool.setdefault(id(candidate.pool), []).append(candidate)
        for pool in pools.pools:
            if pool.incomplete or pool.invalid:
                problem = "being updated" if pool.incomplete else "invalid"
                subject = f"claim {claim.key}, request {alternative.spec.name}"
                message = f"{subject}: asks for all devices, but resource pool {pool.id} is currently {problem}"
                if not self.defects.all_fails_on_any_pool:
                    raise NodeRejected(message)
                raise AllocationError(
                    message,
                    check=AllocationCheck.ALL_POOL,
                    subject=str(pool.id),
                    detail=ErrorDetail(request=alternative.result_name, pool=pool),
                )
            for candidate in by_pool.get(id(pool), ()):
                if not context.selectable(remembered, candidate, listing=True):
                    continue
                if self._drops(alternative, candidate):
                    continue
                listed.append(candidate.position)
        return tuple(listed)

    def _drops(self, alternative: Alternative, candidate: CandidateDevice) -> bool:
        """Whether mode All omits a selectable device because its capacity does not serve the request."""
        if not self.features.consumable_capacity:
            return False
        consumed = NOTHING
        if self.defects.all_drops_exhausted:
            consumed = self.state.consumed.get(candidate.id, NOTHING)
        return (
            shortage(
                candidate.device,
                alternative.spec.capacity,
                consumed,
                NOTHING,
                fractional=self.features.fractional_capacity,
            )
            is not None
        )


def _backwards(pools: NodePools) -> NodePools:
    """The same pools and slices, the last ones first."""
    turned = [replace(pool, slices=pool.slices[::-1]) for pool in reversed(pools.pools)]
    return replace(pools, pools=tuple(turned))


# The first solution of one attempt: by the plain search, or by the merged one if that takes long.


def solve(
    context: SearchContext,
    claims: Sequence[ResourceClaim],
    prepared: Sequence[PreparedClaim],
    ledger: Callable[[], CounterLedger],
    *,
    plain_steps: int = PLAIN_STEPS,
) -> Solution:
    """The first solution of the plain search, or the answer that there is none.

    Raises:
        AllocationError: fatal, as the plain search would raise it.
        SearchBudgetExceeded: no answer within the budget.
    """
    budget = context.budget
    first = Budget(min(plain_steps, budget.left))

    context.budget = first

    def plain() -> Solution:
        search = Search(context, claims, prepared, ledger())
        return Solution(search.run(), search.results)

    try:
        return with_room(plain)
    except SearchBudgetExceeded:
        if _plain_only(context, prepared) or first.steps >= budget.left:
            raise
    finally:
        budget.add(first)
        context.budget = budget
    # Loaded where it is needed, which is rare.
    from kubectl_dra.allocation.merged_search import merged_solution

    return with_room(lambda: merged_solution(context, claims, prepared, ledger))


def _plain_only(context: SearchContext, prepared: Sequence[PreparedClaim]) -> bool:
    """Whether the search takes turns that the merged search does not know."""
    if context.barrier is not None or context.features.list_attributes:
        return True
    if any(alternative.spec.derived_attributes for claim in prepared for request in claim for alternative in request):
        return True
    if context.features.compatibility_groups and uses_groups(candidate.device for candidate in context.candidates):
        return True
    if context.defects.request_takes_share_twice and any(candidate.shareable for candidate in context.candidates):
        return True
    return context.defects.later_all_continues_with_first and any(
        alternative.listed is not None for claim in prepared for request in claim for alternative in request[1:]
    )
