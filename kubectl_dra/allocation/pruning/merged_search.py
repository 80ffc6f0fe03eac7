"""The search without repetition: a part that failed is not searched again where it would fail again.

The part of a search below a step depends on the request and what it still needs, the devices that are still
free, the constraints and the counters charged. If two steps agree in all of that, up to an exchange of
interchangeable devices (see ``problem``), one answer serves both. Only failures are remembered, so the
first success is the scheduler's: no skipped part contains one.

In *exact* mode the free devices are compared as a sequence. Devices that nobody will use any more leave no
trace when skipped, so the two parts run through the same steps: same failures, same errors (an error ends the
search, so a remembered part has none). Counters that the failed part leaves charged are charged again from
memory. The values that a distinctAttribute forgets need no repetition: a part forgets those of its own
request and of later ones. The former are forgotten anyway when the device that led to the part is given back,
and later requests had none.

Otherwise free devices are compared as sets, which merges far more. That is correct only if a failure leaves
nothing behind (``History.none``). A failed part was searched completely, so it covers every combination.
Exchanging interchangeable devices maps the combinations of one part to those of the other, and also the
selectors evaluated on the way, so the second part yields neither success nor error. By the same argument a
device can be skipped (``skip_equal``) if an interchangeable one failed in its place: whatever can follow it
is, up to the exchange of the two, among what could follow the first.

``bounded`` also drops parts that arithmetic proves hopeless (see ``bounds``). A dropped part might hold an
error, so this is correct only if no error is possible. ``relaxed`` answers an easier question than the
scheduler's (see ``RelaxedSearch``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import COMPARED_PER_STEP
from kubectl_dra.allocation.capacity import NOTHING, consumption
from kubectl_dra.allocation.constraints import ConstraintState
from kubectl_dra.allocation.counters import CounterLedger, Key, Table
from kubectl_dra.allocation.pruning.bounds import Bounds
from kubectl_dra.allocation.pruning.problem import FAILS, IRRELEVANT, NEVER, Component, Problem
from kubectl_dra.allocation.request import Alternative
from kubectl_dra.allocation.search import Search, SearchOutcome
from kubectl_dra.allocation.search_context import CandidateDevice
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.quantity import Quantity

HELD = "held"
MEMORY = 8_000_000
"""How many numbers the remembered steps may hold in total, about 64 MB."""


class Remembered(Struct, frozen=True):
    """A failed part: how many devices the plain search tries in it, and what it leaves behind, if anything."""

    outcome: SearchOutcome
    steps: int
    charged: dict[Key, Table] | None = None


class MergedSearch(Search):
    """The search of a ``Problem``. ``tally`` estimates how many devices the plain search would have tried.

    ``counting``: the search only finds that out, and its steps are the devices that it tries.
    """

    def __init__(
        self,
        problem: Problem,
        ledger: CounterLedger,
        *,
        exact: bool = False,
        skip_equal: bool = False,
        bounded: bool = False,
        counting: bool = False,
        claims: list[ResourceClaim] | None = None,
    ) -> None:
        context = problem.context
        if not exact:
            # Where failures leave nothing behind, these two defects do not show.
            quirks = replace(context.quirks, counters_leak=False, distinct_remembers_one=False)
            context = replace(context, quirks=quirks)
        super().__init__(context, claims or problem.claims, problem.prepared, ledger)
        self.problem = problem
        self._exact = exact
        self._skip_equal = skip_equal
        self._bounds = Bounds(problem, ledger, self) if bounded else None
        self._skipped = 0
        self._started = context.budget.tried
        self._remembered: dict[Hashable, Remembered] = {}
        self._memory = 0
        self.status: list[Hashable] = [None] * len(context.candidates)
        self._numbers: dict[tuple[int, Component | None, Hashable], int] = {}
        self._free_numbers: dict[int, list[int]] = {}
        self._names: list[tuple[Component | None, int]] = []
        self._bare: dict[Hashable, int] = {}
        self._weight = 0 if counting else len(context.candidates) // COMPARED_PER_STEP
        # Whether a device that was taken can be of use again: another share, or admin access.
        self._lasting = problem.admin or any(candidate.shareable for candidate in context.candidates)
        self._options: dict[tuple[int, int, int], list[int]] = {}
        self._amounts: dict[tuple[int, int, int, int], dict[str, tuple[int, int]]] = {}
        self._alive = [self._alive_constraints(number) for number in range(len(problem.stages))]
        self._by_component = not exact and any(entry is not None for entry in problem.components)

    @property
    def tally(self) -> int:
        """Devices tried so far, by this search or by the plain one in the skipped parts."""
        return self._skipped + self.context.budget.tried - self._started

    def _step(self, claim: int, request: int, chosen: Alternative | None, placed: int, start: int) -> SearchOutcome:
        if chosen is not None and placed and placed >= chosen.needed:
            request, chosen, placed, start = request + 1, None, 0, 0
        if claim >= len(self.prepared) or request >= len(self.prepared[claim]):
            return super()._step(claim, request, None, 0, 0)
        alternatives = self.prepared[claim][request]
        if chosen is None and not alternatives[0].parent.first_available:
            chosen = alternatives[0]
        if chosen is not None and chosen.listed is not None and placed:
            return super()._step(claim, request, chosen, placed, start)
        self.context.budget.charge(self._weight)
        number = self.problem.index[claim] + request
        key = self._key(number, chosen, placed, start)
        known = self._remembered.get(key)
        if known is not None:
            self._skipped += known.steps
            if known.charged is not None:
                self._ledger.restore(known.charged)
            return known.outcome
        if self._bounds is not None and self._bounds.hopeless(number, chosen, placed, start):
            self._remember(key, Remembered(SearchOutcome.FAIL, 1))
            return SearchOutcome.FAIL
        before = self.tally
        charges = self._ledger.charges() if self._exact else ()
        outcome = super()._step(claim, request, chosen, placed, start)
        if outcome is SearchOutcome.FAIL or (self._exact and outcome is SearchOutcome.TOO_MANY):
            leaked = self._exact and self._ledger.charges() != charges
            self._remember(key, Remembered(outcome, self.tally - before, self._ledger.copy() if leaked else None))
        return outcome

    def _remember(self, key: tuple[Any, ...], result: Remembered) -> None:
        self._memory += len(self.status) + 16
        if self._memory < MEMORY:
            self._remembered[key] = result

    def _key(self, number: int, chosen: Alternative | None, placed: int, start: int) -> tuple[Any, ...]:
        """Everything that the rest of the search depends on."""
        stages = self.problem.stages
        stage = stages[number]
        now = stage.classes if chosen is None else stage.classes_of[chosen.position]
        before: Any = []
        if start and number + 1 < len(stages):
            before = self._view(stages[number + 1].classes, 0, start)
        after: Any = self._view(now, start, len(now))
        charges: Any = self._ledger.charges()
        seen: Any = tuple(self._constraints[stage.claim][index].seen() for index in self._alive[number])
        if self._by_component:
            marks = self._marks(seen) if self.problem.by_value else [(charge[:2], charge[2:]) for charge in charges]
            before, after, charges = self._components(before, after, marks)
            if self.problem.by_value:
                seen = tuple(bool(entry) for entry in seen)
        else:
            if not self._exact:
                before.sort()
                after.sort()
            before, after = tuple(before), tuple(after)
        size = len(self.results[stage.claim]) if self.problem.history.size else 0
        position = -1 if chosen is None else chosen.position
        return (number, position, placed, before, after, seen, charges, size)

    def _view(self, classes: list[int], first: int, end: int) -> list[int]:
        """The numbers of the devices that can still be used, in order."""
        free = self._free_numbers.get(id(classes))
        if free is None:
            free = self._free_numbers[id(classes)] = [
                number if number == IRRELEVANT else self._number(number, position, None)
                for position, number in enumerate(classes)
            ]
        states = zip(free[first:end], self.status[first:end], strict=True)
        if not self._lasting:
            return [number for number, state in states if state is None and number != IRRELEVANT]
        out: list[int] = []
        for position, (number, state) in enumerate(states, first):
            if number != IRRELEVANT and state is not HELD:
                out.append(number if state is None else self._number(classes[position], position, state))
        return out

    def _number(self, number: int, position: int, state: Hashable) -> int:
        """The number of devices of one class, component and state."""
        what = (number, self.problem.components[position], state)
        known = self._numbers.get(what)
        if known is None:
            known = self._numbers[what] = len(self._numbers)
            self._names.append((what[1], self._bare.setdefault((number, state), len(self._bare))))
        return known

    @staticmethod
    def _marks(seen: Sequence[Hashable]) -> list[tuple[Component, Hashable]]:
        """Which values constraints have seen, as marks on the components of these values."""
        marks: list[tuple[Component, Hashable]] = []
        for index, values in enumerate(seen):
            if isinstance(values, frozenset):
                marks.extend((("", value), (index,)) for value in values)
            elif values is not None:
                marks.append((("", values), (index,)))
        return marks

    def _components(
        self, before: Sequence[int], after: Sequence[int], marks: Sequence[tuple[Component, Any]]
    ) -> tuple[Any, Any, Any]:
        """Like ``_view``, with components of the same shape treated as interchangeable: their states, sorted.

        ``marks`` is what is known about components besides their devices. It no longer matters for components
        without devices.
        """
        parts: dict[Component | None, tuple[list[int], list[int], list[Any]]] = {}
        for side, codes in enumerate((before, after)):
            for code in codes:
                component, bare = self._names[code]
                lists = parts.get(component)
                if lists is None:
                    lists = parts[component] = ([], [], [])
                (lists[1] if side else lists[0]).append(bare)
        for component, mark in marks:
            if component in parts:
                parts[component][2].append(mark)
        loose = parts.pop(None, ([], [], []))
        shapes = sorted((sorted(left), sorted(right), sorted(used)) for left, right, used in parts.values())
        shape = tuple((tuple(left), tuple(right), tuple(used)) for left, right, used in shapes)
        return tuple(sorted(loose[0])), tuple(sorted(loose[1])), shape

    def _alive_constraints(self, number: int) -> list[int]:
        """The constraints of the stage's claim that may still see a device."""
        stage = self.problem.stages[number]
        rest = [
            entry
            for other in self.problem.stages[number:]
            if other.claim == stage.claim
            for entry in other.alternatives
        ]
        return [
            index
            for index, state in enumerate(self._constraints[stage.claim])
            if any(state.constraint.covers(entry.parent.name, entry.subrequest) for entry in rest)
        ]

    def _place_any(self, chosen: Alternative, placed: int, start: int) -> SearchOutcome:
        context = self.context
        stage = self.problem.stages[self.problem.index[chosen.claim] + chosen.request]
        uses, classes = stage.uses[chosen.position], stage.classes_of[chosen.position]
        options = self._usable(chosen, uses)
        failed: set[Hashable] = set()
        expected = start
        for position in options[bisect_left(options, start) :]:
            candidate = context.candidates[position]
            context.budget.tick()
            self._skipped += position - expected
            expected = position + 1
            if not self._free(chosen, candidate):
                continue
            if uses[position] == FAILS:
                context.selectable(chosen, candidate)
            kind = (classes[position], self.problem.components[position], self.status[position])
            if kind in failed or not self._has_capacity(chosen, candidate):
                continue
            if not self._place(chosen, candidate, must=False):
                continue
            outcome = self._step(chosen.claim, chosen.request, chosen, placed + 1, position + 1)
            if outcome is SearchOutcome.SUCCESS:
                return outcome
            self._undo(chosen)
            if outcome is SearchOutcome.TOO_MANY:
                return outcome
            if self._skip_equal:
                failed.add(kind)
        self._skipped += len(context.candidates) - expected
        return SearchOutcome.FAIL

    def _usable(self, chosen: Alternative, uses: list[int]) -> list[int]:
        key = (chosen.claim, chosen.request, chosen.position)
        options = self._options.get(key)
        if options is None:
            options = self._options[key] = [position for position, use in enumerate(uses) if use != NEVER]
        return options

    def _has_capacity(self, chosen: Alternative, candidate: CandidateDevice) -> bool:
        """As in the plain search, except that whatever does not depend on earlier requests was computed ahead."""
        if not candidate.shareable or not candidate.device.capacity:
            return True
        held = self._held_capacity.get(candidate.id)
        if not held:
            return True
        amounts = self.amounts(chosen, candidate)
        return all(
            held[name].nanos + amount <= left for name, (amount, left) in amounts.items() if name in held
        ) or super()._has_capacity(chosen, candidate)

    def amounts(self, chosen: Alternative, candidate: CandidateDevice) -> dict[str, tuple[int, int]]:
        """For each capacity of a device: what a share takes and what the cluster leaves, in nano units."""
        key = (chosen.claim, chosen.request, chosen.position, candidate.position)
        known = self._amounts.get(key)
        if known is None:
            used = self.context.state.consumed.get(candidate.id, NOTHING)
            known = self._amounts[key] = {}
            for name, amount in consumption(
                candidate.device, chosen.spec.capacity, fractional=self.context.features.fractional_capacity
            ).items():
                value = Quantity.parse(candidate.device.capacity[name].get("value", "0")).nanos
                taken = used[name].nanos if name in used else 0
                known[name] = (amount.nanos, value - taken)
        return known

    def capacity_left(self, candidate: CandidateDevice) -> dict[str, int]:
        """What the cluster leaves of each capacity of a device, in nano units."""
        used = self.context.state.consumed.get(candidate.id, NOTHING)
        return {
            name: Quantity.parse(capacity.get("value", "0")).nanos - (used[name].nanos if name in used else 0)
            for name, capacity in candidate.device.capacity.items()
        }

    def constraints(self, claim: int) -> list[ConstraintState]:
        """The constraints of a claim, in the search's current state."""
        return self._constraints[claim]

    def counts(self, position: int) -> bool:
        """Whether the device at a position is charged for counters."""
        return self._counts(self.context.candidates[position])

    def _place(self, chosen: Alternative, candidate: CandidateDevice, *, must: bool) -> bool:
        if not super()._place(chosen, candidate, must=must):
            return False
        self._mark(candidate)
        return True

    def _undo(self, chosen: Alternative) -> None:
        candidate = self.results[chosen.claim][-1].candidate
        super()._undo(chosen)
        self._mark(candidate)

    def _mark(self, candidate: CandidateDevice) -> None:
        """Record what later requests see of a device."""
        if candidate.shareable:
            held = self._held_capacity.get(candidate.id, {})
            state: Hashable = tuple(sorted((name, amount.nanos) for name, amount in held.items() if amount.nanos))
        else:
            state = tuple(sorted(self._held.get(candidate.id, ())))
            if state and not self.problem.admin:
                state = HELD
        self.status[candidate.position] = state or None


class RelaxedSearch(MergedSearch):
    """A question never harder than the scheduler's: if this has no solution, neither has the scheduler's.

    Charges of refused devices are given back, which leaves more counters. distinctAttribute constraints that
    forget values are dropped. Shareable devices charge no counters, nor do devices of pools that share a
    table, because their charges depend on which pool came first. Mode All gives everything back when it fails
    half-way. Exceeding 32 results fails only where it occurs, not the enclosing levels of the search.
    """

    def __init__(self, problem: Problem, ledger: CounterLedger) -> None:
        claims = list(problem.claims)
        if problem.history.distinct or problem.history.listed:
            claims = [
                replace(claim, constraints=tuple(entry for entry in claim.constraints if entry.match_attribute))
                for claim in claims
            ]
        super().__init__(problem, ledger, skip_equal=True, bounded=True, claims=claims)

    def _step(self, claim: int, request: int, chosen: Alternative | None, placed: int, start: int) -> SearchOutcome:
        outcome = super()._step(claim, request, chosen, placed, start)
        return SearchOutcome.FAIL if outcome is SearchOutcome.TOO_MANY else outcome

    def _counts(self, candidate: CandidateDevice) -> bool:
        return super()._counts(candidate) and not candidate.shareable and not self.problem.history.tables

    def _place_listed(self, chosen: Alternative, placed: int) -> SearchOutcome:
        assert chosen.listed is not None
        candidate = self.context.candidates[chosen.listed[placed]]
        if not Search._has_capacity(self, chosen, candidate):
            return SearchOutcome.FAIL
        return super()._place_listed(chosen, placed)
