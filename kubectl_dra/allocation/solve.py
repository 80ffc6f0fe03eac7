"""From the plain search to the pruned ones: how an attempt that takes long is answered after all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kubectl_dra.allocation.counters import CounterLedger
from kubectl_dra.allocation.distinct import lacks_values
from kubectl_dra.allocation.errors import SearchBudgetExceeded
from kubectl_dra.allocation.interchange import Problem
from kubectl_dra.allocation.merged import MergedSearch, RelaxedSearch
from kubectl_dra.allocation.request import PreparedClaim
from kubectl_dra.allocation.search import Budget, Context, Placement, Search
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.cel.recursion import with_room

PLAIN_STEPS = 20_000
"""How many devices the plain search tries before equal parts are looked for; 0.1 s or less."""

COUNTING_STEPS = 30_000
"""How many devices are tried to find out how long the plain search is, where it is merged."""

KNOWN_STEPS = 200_000
"""How many devices the plain search tries before an easier question is asked, where nothing can be merged."""

SECONDS = 6.0
"""How long the pruned searches may take in all."""

SCHEDULER_STEPS = 20_000_000
"""How many devices the scheduler can try before its time-out: 10 s (``filterTimeout``) at 2 million a second."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What a search found. ``would_time_out``: the scheduler's own search would probably not end in its time."""

    found: bool
    results: Sequence[Sequence[Placement]] = ()
    would_time_out: bool = False


def solve(
    context: Context,
    claims: Sequence[ResourceClaim],
    prepared: Sequence[PreparedClaim],
    ledger: Callable[[], CounterLedger],
    *,
    plain_steps: int = PLAIN_STEPS,
) -> Solution:
    """The first solution of the plain search, or that there is none.

    Raises:
        AllocationError: fatal, as the plain search would raise it.
        SearchBudgetExceeded: no answer within the budget.
    """
    budget = context.budget
    first = Budget(min(plain_steps, budget.max_steps - budget.steps), budget.deadline)

    context.budget = first

    def plain() -> Solution:
        search = Search(context, claims, prepared, ledger())
        return Solution(search.run(), search.results)

    try:
        return with_room(plain)
    except SearchBudgetExceeded:
        if budget.steps + first.steps >= budget.max_steps or time.process_time() > budget.deadline:
            raise
    finally:
        budget.steps += first.steps
        context.budget = budget
    return with_room(lambda: _pruned(context, claims, prepared, ledger))


def _pruned(
    context: Context,
    claims: Sequence[ResourceClaim],
    prepared: Sequence[PreparedClaim],
    ledger: Callable[[], CounterLedger],
) -> Solution:
    end = min(context.budget.deadline, time.process_time() + SECONDS)
    # Rejections were reported by the plain search; the pruned ones meet only some of them.
    quiet = replace(context, observer=None, budget=replace(context.budget, deadline=end))
    try:
        problem = Problem(quiet, claims, prepared, ledger())
        if problem.history.none:
            return _by_sets(problem, ledger)
        return _by_sequences(problem, ledger)
    finally:
        context.budget.steps = quiet.budget.steps


def _by_sets(problem: Problem, ledger: Callable[[], CounterLedger]) -> Solution:
    """Where failures leave nothing behind: merge, and drop hopeless parts if no error can hide in them."""
    counting = MergedSearch(_limited(problem, COUNTING_STEPS), ledger())
    try:
        found = counting.run()
        return Solution(found, counting.results, counting.tally > SCHEDULER_STEPS)
    except SearchBudgetExceeded:
        pass  # Not even the merged search ended soon, so the plain one is taken to be too long.
    finally:
        problem.context.budget.steps += counting.context.budget.steps
    search = MergedSearch(problem, ledger(), skip_equal=True, bounded=not problem.fails)
    return _run(search)


def _by_sequences(problem: Problem, ledger: Callable[[], CounterLedger]) -> Solution:
    """Where failures leave something behind: show that an easier question has no answer, or merge exactly."""
    if not problem.history.traceable:
        return _by_steps(problem, ledger)
    budget = problem.context.budget
    counting = MergedSearch(_limited(problem, COUNTING_STEPS), ledger(), exact=True)
    try:
        found = counting.run()
        return Solution(found, counting.results, counting.tally > SCHEDULER_STEPS)
    except SearchBudgetExceeded:
        pass
    finally:
        budget.steps += counting.context.budget.steps
    if _impossible(problem, ledger):
        return Solution(False, would_time_out=True)
    return _run(MergedSearch(problem, ledger(), exact=True))


def _by_steps(problem: Problem, ledger: Callable[[], CounterLedger]) -> Solution:
    """Where nothing can be merged: the plain search, and the easier question if that takes long."""
    budget = problem.context.budget
    known = _limited(problem, KNOWN_STEPS)
    search = Search(known.context, problem.claims, problem.prepared, ledger())
    try:
        found = search.run()
        return Solution(found, search.results)
    except SearchBudgetExceeded:
        pass
    finally:
        budget.steps += search.tally
    if _impossible(problem, ledger):
        return Solution(False, would_time_out=True)
    return _run(Search(problem.context, problem.claims, problem.prepared, ledger()))


def _impossible(problem: Problem, ledger: Callable[[], CounterLedger]) -> bool:
    """Whether an easier question has no answer, found out in half of the time that is left."""
    if problem.fails:
        return False
    if lacks_values(problem):
        return True
    budget = problem.context.budget
    half = replace(budget, deadline=(time.process_time() + budget.deadline) / 2)
    try:
        return not RelaxedSearch(problem.within(half), ledger()).run()
    except SearchBudgetExceeded:
        return False
    finally:
        budget.steps = half.steps


def _run(search: Search) -> Solution:
    try:
        found = search.run()
        return Solution(found, search.results, isinstance(search, MergedSearch) or search.tally > SCHEDULER_STEPS)
    except SearchBudgetExceeded:
        raise SearchBudgetExceeded(True) from None


def _limited(problem: Problem, steps: int) -> Problem:
    budget = problem.context.budget
    return problem.within(Budget(min(steps, budget.max_steps - budget.steps), budget.deadline))
