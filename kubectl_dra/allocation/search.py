"""The depth-first search for devices on one node, in the scheduler's order; the first solution wins."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from kubectl_dra.allocation.capacity import NOTHING, consumption, shortage
from kubectl_dra.allocation.constraints import (
    ConstraintState,
    DistinctAttribute,
    DistinctValues,
    MatchAttribute,
    MatchValues,
    TrulyDistinctAttribute,
    as_compared,
)
from kubectl_dra.allocation.counters import CounterLedger
from kubectl_dra.allocation.errors import AllocationCheck, AllocationError, ErrorDetail
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.allocation.search_context import (
    Alternative,
    CandidateDevice,
    Lack,
    PickedDevice,
    PreparedClaim,
    SearchContext,
)
from kubectl_dra.api.claims import DeviceConstraint, ResourceClaim
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import blocking_taint


class SearchOutcome(Enum):
    """Outcome of one step of the search. TOO_MANY: the claim would have more than 32 results."""

    SUCCESS = 0
    FAIL = 1
    TOO_MANY = 2


class Solution(Struct, frozen=True):
    """What a search found: the placements per claim.

    ``would_time_out``: the scheduler's own search would probably not finish in time.
    """

    found: bool
    results: Sequence[Sequence[PickedDevice]] = ()
    would_time_out: bool = False


class Search:
    """One attempt: all claims of a pod on one node. Use ``run`` once."""

    def __init__(
        self,
        context: SearchContext,
        claims: Sequence[ResourceClaim],
        prepared: Sequence[PreparedClaim],
        ledger: CounterLedger,
    ) -> None:
        self.context = context
        self.prepared = prepared
        self.results: list[list[PickedDevice]] = [[] for _ in prepared]
        self._ledger = ledger
        self._constraints: list[list[ConstraintState]] = [
            [constraint_state(constraint, context.features, context.defects) for constraint in claim.constraints]
            for claim in claims
        ]
        self._held: dict[DeviceID, set[int]] = {}
        self._held_capacity: dict[DeviceID, dict[str, Quantity]] = {}

    @property
    def tally(self) -> int:
        """Number of devices that were tried."""
        return self.context.budget.tried

    def run(self) -> bool:
        """Whether the claims fit together. If so, ``results`` holds the placements per claim.

        Raises:
            AllocationError: fatal, as in the scheduler.
            SearchBudgetExceeded: no answer within the budget.
        """
        return self._step(0, 0, None, 0, 0) is SearchOutcome.SUCCESS

    def _step(self, claim: int, request: int, chosen: Alternative | None, placed: int, start: int) -> SearchOutcome:
        while True:
            if claim >= len(self.prepared):
                return SearchOutcome.SUCCESS
            requests = self.prepared[claim]
            if request >= len(requests):
                outcome = self._step(claim + 1, 0, None, 0, 0)
                return SearchOutcome.FAIL if outcome is SearchOutcome.TOO_MANY else outcome
            alternatives = requests[request]
            if chosen is None:
                if alternatives[0].parent.first_available:
                    return self._first_available(claim, request, alternatives)
                chosen = alternatives[0]
            if chosen.listed is not None and not chosen.listed:
                return SearchOutcome.FAIL
            if placed < chosen.needed:
                break
            request, chosen, placed, start = request + 1, None, 0, 0
        if len(self.results[claim]) + chosen.needed - placed > MAX_RESULTS:
            return SearchOutcome.TOO_MANY
        if chosen.listed is not None:
            return self._place_listed(chosen, placed)
        return self._place_any(chosen, placed, start)

    def _first_available(self, claim: int, request: int, alternatives: Sequence[Alternative]) -> SearchOutcome:
        overall = SearchOutcome.TOO_MANY
        for alternative in alternatives:
            outcome = self._step(claim, request, alternative, 0, 0)
            if outcome is SearchOutcome.SUCCESS:
                return outcome
            if outcome is SearchOutcome.FAIL:
                overall = SearchOutcome.FAIL
        return overall

    def _place_listed(self, chosen: Alternative, placed: int) -> SearchOutcome:
        assert chosen.listed is not None
        context = self.context
        candidate = context.candidates[chosen.listed[placed]]
        context.budget.tick()
        if not self._place(chosen, candidate, must=True):
            return SearchOutcome.FAIL
        following = chosen
        if context.defects.later_all_continues_with_first:
            following = self.prepared[chosen.claim][chosen.request][0]
        outcome = self._step(chosen.claim, chosen.request, following, placed + 1, 0)
        if outcome is not SearchOutcome.SUCCESS:
            self._undo(chosen)
        return outcome

    def _place_any(self, chosen: Alternative, placed: int, start: int) -> SearchOutcome:
        context = self.context
        candidates, tick = context.candidates, context.budget.tick
        for position in range(start, len(candidates)):
            if context.barrier is not None:
                self._pass(context.barrier, position)
            candidate = candidates[position]
            tick()
            if not self._eligible(chosen, candidate) or not self._place(chosen, candidate, must=False):
                continue
            again = candidate.shareable and context.defects.request_takes_share_twice
            outcome = self._step(chosen.claim, chosen.request, chosen, placed + 1, position + (not again))
            if outcome is SearchOutcome.SUCCESS:
                return outcome
            self._undo(chosen)
            if outcome is SearchOutcome.TOO_MANY:
                return outcome
        if context.barrier is not None:
            self._pass(context.barrier, len(candidates))
        return SearchOutcome.FAIL

    def _pass(self, barrier: tuple[int, Pool], position: int) -> None:
        """Raises AllocationError where the search has come to a pool that ends it."""
        before, pool = barrier
        if position >= before:
            message = f"pool {pool.id.name} is invalid: {pool.invalid}"
            raise AllocationError(
                message, check=AllocationCheck.POOL_INVALID, subject=str(pool.id), detail=ErrorDetail(pool=pool)
            )

    def _eligible(self, chosen: Alternative, candidate: CandidateDevice) -> bool:
        """The checks before a device is placed: in use, selectable, capacity."""
        return (
            self._free(chosen, candidate)
            and self.context.selectable(chosen, candidate)
            and self._has_capacity(chosen, candidate)
        )

    def _free(self, chosen: Alternative, candidate: CandidateDevice) -> bool:
        holders = self._held.get(candidate.id)
        if chosen.spec.admin_access:
            return not (holders and chosen.claim in holders)
        return candidate.id not in self.context.state.exclusive and not holders

    def _has_capacity(self, chosen: Alternative, candidate: CandidateDevice) -> bool:
        if not self.context.features.consumable_capacity:
            return True
        short = shortage(
            candidate.device,
            chosen.spec.capacity,
            self.context.state.consumed.get(candidate.id, NOTHING),
            self._held_capacity.get(candidate.id, NOTHING),
            fractional=self.context.features.fractional_capacity,
        )
        if short is None:
            return True
        self._tell(chosen, candidate, short)
        return False

    def _place(self, chosen: Alternative, candidate: CandidateDevice, *, must: bool) -> bool:
        context = self.context
        device = candidate.device
        admin = bool(chosen.spec.admin_access)
        if not (candidate.shareable and admin) and not self._free(chosen, candidate):
            return False
        if candidate.slice.skip_node_operations and context.lacks_node_operations:
            return False
        charged = False
        if self._counts(candidate):
            if not context.features.partitionable_devices:
                return False
            charged = not (candidate.shareable and self._capacity_in_use(candidate.id))
        if charged and not self._charge(chosen, candidate):
            return False
        if context.features.device_taints and device.taints:
            taint = blocking_taint(device.taints, chosen.spec.tolerations)
            if taint is not None:
                self._refund(candidate, charged)
                return False
        if not self._constrain(chosen, candidate, must=must):
            self._refund(candidate, charged)
            return False
        if not candidate.shareable:
            self._held.setdefault(candidate.id, set()).add(chosen.claim)
        consumed: dict[str, Quantity] | None = None
        shared_before = candidate.id in self._held_capacity
        if context.features.consumable_capacity:
            if not self._has_capacity(chosen, candidate):
                if not context.defects.counters_leak:
                    self._withdraw(chosen, candidate)
                self._refund(candidate, charged)
                return False
            if candidate.shareable:
                consumed = consumption(
                    device,
                    chosen.spec.capacity,
                    binary=context.defects.capacity_wraps,
                    fractional=context.features.fractional_capacity,
                )
                held = self._held_capacity.setdefault(candidate.id, {})
                for name, amount in consumed.items():
                    held[name] = held[name] + amount if name in held else amount
        self.results[chosen.claim].append(PickedDevice(chosen, candidate, consumed, charged, shared_before))
        return True

    def _counts(self, candidate: CandidateDevice) -> bool:
        """Whether the device draws on counters; a search that leaves them aside overrides it."""
        return bool(candidate.device.consumes_counters)

    def _charge(self, chosen: Alternative, candidate: CandidateDevice) -> bool:
        short = self._ledger.charge(candidate.pool, candidate.device)
        if short is None:
            return True
        self._tell(chosen, candidate, short)
        return False

    def _capacity_in_use(self, device: DeviceID) -> bool:
        state = self.context.state
        if device in state.consumed or device in self._held_capacity:
            return True
        return not self.context.defects.share_without_capacity_charges and device in state.shared

    def _refund(self, candidate: CandidateDevice, charged: bool) -> None:
        """Undo the charge of a refused device; releases with the leak keep it."""
        if charged and not self.context.defects.counters_leak:
            self._ledger.release(candidate.pool, candidate.device)

    def _constrain(self, chosen: Alternative, candidate: CandidateDevice, *, must: bool) -> bool:
        constraints = self._constraints[chosen.claim]
        request, subrequest = chosen.parent.name, chosen.subrequest
        derived = chosen.spec.derived_attributes
        for index, constraint in enumerate(constraints):
            device = candidate.device
            if derived and constraint.constraint.covers(request, subrequest):
                device = as_compared(chosen.spec, constraint.constraint, device, candidate.id, self.context.selectors)
            if constraint.add(request, subrequest, device):
                continue
            if must:
                subject = f"{chosen.selectors[1].owner}, request {chosen.spec.name}"
                raise AllocationError(
                    f"{subject}: cannot add device {candidate.id} because a claim constraint would not be satisfied",
                    check=AllocationCheck.CONSTRAINT_ALL,
                    subject=str(candidate.id),
                    detail=ErrorDetail(request=chosen.result_name),
                )
            for earlier in constraints[:index]:
                earlier.remove(request, subrequest)
            return False
        return True

    def _undo(self, chosen: Alternative) -> None:
        placement = self.results[chosen.claim].pop()
        candidate = placement.candidate
        self._withdraw(chosen, candidate)
        if not candidate.shareable:
            if placement.charged:
                self._ledger.release(candidate.pool, candidate.device)
            return
        self._return_share(candidate.id, placement)
        self._refund(candidate, placement.charged)

    def _withdraw(self, chosen: Alternative, candidate: CandidateDevice) -> None:
        """Remove a device from the constraints of a claim and from the devices that it holds."""
        for constraint in self._constraints[chosen.claim]:
            constraint.remove(chosen.parent.name, chosen.subrequest)
        if not candidate.shareable:
            self._held[candidate.id].discard(chosen.claim)

    def _return_share(self, device: DeviceID, placement: PickedDevice) -> None:
        """Undo the consumption of a share. An existing entry shows that the device is shared."""
        if not self.context.defects.counters_leak and not placement.shared_before:
            self._held_capacity.pop(device, None)
        elif placement.consumed:
            # The entry may be gone already: it goes when all its amounts are zero, whoever else holds zero.
            held = self._held_capacity.get(device, {})
            for name in held:
                held[name] = held[name] - placement.consumed[name]
            if self.context.defects.counters_leak and held and not any(held.values()):
                del self._held_capacity[device]

    def _tell(self, chosen: Alternative, candidate: CandidateDevice, lack: Lack) -> None:
        if self.context.observer is not None:
            self.context.observer.lacks(chosen, candidate, lack)


def constraint_state(constraint: DeviceConstraint, features: Features, defects: KnownDefects) -> ConstraintState:
    """The state of one constraint. ``matchAttribute`` wins if both are set."""
    if features.list_attributes:
        return MatchValues(constraint) if constraint.match_attribute else DistinctValues(constraint)
    if constraint.match_attribute:
        return MatchAttribute(constraint)
    if defects.distinct_remembers_one:
        return DistinctAttribute(constraint, compares=not defects.distinct_compares_nothing)
    return TrulyDistinctAttribute(constraint)
