"""The search without repetition: a part that failed is not searched again where it would fail again.

The part of a search below a step depends on the request and what it still needs, the devices that are still
free, the constraints and the counters charged. If two steps agree in all of that, up to an exchange of
interchangeable devices (see ``interchangeable``), one answer serves both. Only failures are remembered, so the
first success is the scheduler's: no skipped part contains one. docs/decisions/allocator.md has the arguments.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import COMPARED_PER_STEP, COUNTING_STEPS, KNOWN_STEPS, SCHEDULER_STEPS
from kubectl_dra.allocation.counters import CounterLedger, CounterTableKey, Table
from kubectl_dra.allocation.errors import SearchBudgetExceeded
from kubectl_dra.allocation.interchangeable import FAILS, IRRELEVANT, NEVER, Component, Problem
from kubectl_dra.allocation.search import Search, SearchOutcome, Solution
from kubectl_dra.allocation.search_context import Alternative, CandidateDevice, PreparedClaim, SearchContext
from kubectl_dra.allocation.too_few import impossible
from kubectl_dra.api.claims import ResourceClaim

HELD = "held"
"""State of a device that is held already, for requests without admin access."""
MEMORY = 8_000_000
"""Largest total of numbers in the remembered steps, about 64 MB."""


def merged_solution(
    context: SearchContext,
    claims: Sequence[ResourceClaim],
    prepared: Sequence[PreparedClaim],
    ledger: Callable[[], CounterLedger],
) -> Solution:
    """What the plain search would find given enough time. ``context.budget`` counts the steps spent.

    Raises:
        AllocationError: fatal, as the plain search would raise it.
        SearchBudgetExceeded: no answer within the budget.
    """
    # Rejections were reported by the plain search; the merged one meets only some of them.
    problem = Problem(replace(context, observer=None), claims, prepared, ledger())
    merges = problem.traceable
    # How long the plain search takes is found out first. What the merged search does not end soon takes too long.
    counting = problem.within(COUNTING_STEPS if merges else KNOWN_STEPS)
    try:
        return _solution(_search(counting, ledger(), counts=True))
    except SearchBudgetExceeded:
        pass
    finally:
        context.budget.add(counting.context.budget)
    if impossible(problem):
        return Solution(False, would_time_out=True)
    try:
        return _solution(_search(problem, ledger()), late=merges)
    except SearchBudgetExceeded:
        raise SearchBudgetExceeded(True) from None


def _search(problem: Problem, ledger: CounterLedger, *, counts: bool = False) -> Search:
    if not problem.traceable:
        return Search(problem.context, problem.claims, problem.prepared, ledger)
    return MergedSearch(
        problem, ledger, in_order=not problem.restores, skip_equal=problem.restores and not counts, counting=counts
    )


def _solution(search: Search, *, late: bool = False) -> Solution:
    return Solution(search.run(), search.results, late or search.tally > SCHEDULER_STEPS)


class Remembered(Struct, frozen=True):
    """A failed part: how many devices the plain search tries in it, and what it leaves charged, if anything."""

    outcome: SearchOutcome
    steps: int
    charged: dict[CounterTableKey, Table] | None = None


class MergedSearch(Search):
    """The search of a ``Problem``. ``tally`` is how many devices the plain search would have tried.

    ``in_order``: free devices are compared as a sequence, otherwise as a set. ``skip_equal``: a device is skipped if an
    interchangeable one failed in its place; the tally then is too small. ``counting``: only devices that are tried
    count as steps.
    """

    def __init__(
        self,
        problem: Problem,
        ledger: CounterLedger,
        *,
        in_order: bool = False,
        skip_equal: bool = False,
        counting: bool = False,
    ) -> None:
        context = problem.context
        if not in_order:
            # Where failures leave nothing behind, these two defects do not show.
            defects = replace(context.defects, counters_leak=False, distinct_remembers_one=False)
            context = replace(context, defects=defects)
        super().__init__(context, problem.claims, problem.prepared, ledger)
        self.problem = problem
        self._in_order = in_order
        self._skip_equal = skip_equal
        self._skipped = 0
        self._started = context.budget.tried
        self._remembered: dict[Hashable, Remembered] = {}
        self._weight = 0 if counting else len(context.candidates) // COMPARED_PER_STEP
        self._state: list[Hashable] = [None] * len(context.candidates)
        # Whether a device that was taken can be of use again: another share, or admin access.
        self._lasting = problem.admin or any(candidate.shareable for candidate in context.candidates)
        # The number of each class, component and state, and per number the component and what it is without that.
        self._numbers: dict[tuple[int, Component | None, Hashable], int] = {}
        self._parts: list[tuple[Component | None, int]] = []
        self._bare: dict[Hashable, int] = {}
        self._free_numbers = [
            [
                [
                    number if number == IRRELEVANT else self._number(number, position, None)
                    for position, number in enumerate(classes)
                ]
                for classes in stage.classes
            ]
            for stage in problem.stages
        ]
        self._options = {
            alternative.indices: [position for position, use in enumerate(uses) if use != NEVER]
            for alternative, uses in problem.alternatives
        }
        self._alive = [self._alive_constraints(number) for number in range(len(problem.stages))]
        self._by_component = not in_order and any(problem.components)

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
        key = self._key(self.problem.index[claim] + request, chosen, placed, start)
        known = self._remembered.get(key)
        if known is not None:
            self._skipped += known.steps
            if known.charged is not None:
                self._ledger.restore(known.charged)
            return known.outcome
        before, charges = self.tally, self._ledger.charges() if self._in_order else ()
        outcome = super()._step(claim, request, chosen, placed, start)
        if outcome is SearchOutcome.FAIL or (self._in_order and outcome is SearchOutcome.TOO_MANY):
            leaked = self._in_order and self._ledger.charges() != charges
            if len(self._remembered) * (len(self._state) + 16) < MEMORY:
                charged = self._ledger.copy() if leaked else None
                self._remembered[key] = Remembered(outcome, self.tally - before, charged)
        return outcome

    def _key(self, number: int, chosen: Alternative | None, placed: int, start: int) -> tuple[Any, ...]:
        """Everything that the rest of the search depends on."""
        problem = self.problem
        stage = problem.stages[number]
        position = -1 if chosen is None else chosen.position
        before: Any = self._view(number + 1, -1, 0, start) if start and number + 1 < len(problem.stages) else []
        after: Any = self._view(number, position, start, len(self._state))
        charges: Any = self._ledger.charges()
        seen: Any = tuple(self._constraints[stage.claim][index].seen() for index in self._alive[number])
        if self._by_component:
            marks = _marks(seen) if problem.by_value else [(charge[:2], charge[2:]) for charge in charges]
            before, after, charges = self._components(before, after, marks)
            if problem.by_value:
                seen = tuple(bool(values) for values in seen)
        else:
            if not self._in_order:
                before.sort()
                after.sort()
            before, after = tuple(before), tuple(after)
        size = len(self.results[stage.claim]) if problem.too_long else 0
        return (number, position, placed, before, after, seen, charges, size)

    def _view(self, number: int, chosen: int, first: int, end: int) -> list[int]:
        """The numbers of the devices that can still be used, in order."""
        free = self._free_numbers[number][chosen]
        states = zip(free[first:end], self._state[first:end], strict=True)
        if not self._lasting:
            return [number for number, state in states if state is None and number != IRRELEVANT]
        classes = self.problem.stages[number].classes[chosen]
        return [
            number if state is None else self._number(classes[position], position, state)
            for position, (number, state) in enumerate(states, first)
            if number != IRRELEVANT and state is not HELD
        ]

    def _number(self, number: int, position: int, state: Hashable) -> int:
        """The number of devices of one class, component and state."""
        what = (number, self.problem.components[position], state)
        known = self._numbers.setdefault(what, len(self._numbers))
        if known == len(self._parts):
            self._parts.append((what[1], self._bare.setdefault((number, state), len(self._bare))))
        return known

    def _components(
        self, before: Sequence[int], after: Sequence[int], marks: Iterable[tuple[Component, Any]]
    ) -> tuple[Any, Any, Any]:
        """Views with components of the same shape treated as interchangeable: their states, sorted.

        ``marks`` is what is known about components besides their devices. It no longer matters for components
        without devices.
        """
        parts: dict[Component | None, tuple[list[int], list[int], list[Any]]] = {}
        for side, codes in enumerate((before, after)):
            for code in codes:
                component, bare = self._parts[code]
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
        claim = self.problem.stages[number].claim
        rest = [
            alternative
            for stage in self.problem.stages[number:]
            if stage.claim == claim
            for alternative in stage.alternatives
        ]
        return [
            index
            for index, state in enumerate(self._constraints[claim])
            if any(state.constraint.covers(alternative.parent.name, alternative.subrequest) for alternative in rest)
        ]

    def _place_any(self, chosen: Alternative, placed: int, start: int) -> SearchOutcome:
        context = self.context
        stage = self.problem.stages[self.problem.index[chosen.claim] + chosen.request]
        uses, classes = stage.uses[chosen.position], stage.classes[chosen.position]
        options = self._options[chosen.indices]
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
            kind = (classes[position], self.problem.components[position], self._state[position])
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
        state: Hashable
        if candidate.shareable:
            held = self._held_capacity.get(candidate.id, {})
            state = tuple(sorted((name, amount.nanos) for name, amount in held.items() if amount.nanos))
        else:
            state = tuple(sorted(self._held.get(candidate.id, ())))
            if state and not self.problem.admin:
                state = HELD
        self._state[candidate.position] = state or None


def _marks(seen: Iterable[Hashable]) -> list[tuple[Component, Hashable]]:
    """Which values constraints have seen, as marks on the components of these values."""
    marks: list[tuple[Component, Hashable]] = []
    for index, values in enumerate(seen):
        if isinstance(values, frozenset):
            marks.extend((("", value), (index,)) for value in values)
        elif values is not None:
            marks.append((("", values), (index,)))
    return marks
