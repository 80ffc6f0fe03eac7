"""The entry to the pruned searches: how to answer an attempt for which the plain search takes too long."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from kubectl_dra.allocation.budgets import COUNTING_STEPS, KNOWN_STEPS, SCHEDULER_STEPS, Budget
from kubectl_dra.allocation.counters import CounterLedger
from kubectl_dra.allocation.errors import SearchBudgetExceeded
from kubectl_dra.allocation.pruning.distinct_values import lacks_values
from kubectl_dra.allocation.pruning.merged_search import MergedSearch, RelaxedSearch
from kubectl_dra.allocation.pruning.problem import Problem
from kubectl_dra.allocation.request import PreparedClaim
from kubectl_dra.allocation.search import Search, Solution
from kubectl_dra.allocation.search_context import SearchContext
from kubectl_dra.api.claims import ResourceClaim


def pruned_solution(
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
    # Rejections were reported by the plain search; the pruned ones meet only some of them.
    problem = Problem(replace(context, observer=None), claims, prepared, ledger())
    if problem.history.none:
        return _by_sets(problem, ledger)
    return _by_sequences(problem, ledger)


def _by_sets(problem: Problem, ledger: Callable[[], CounterLedger]) -> Solution:
    """If failures leave nothing behind: merge, and drop hopeless parts if they cannot hide an error."""
    counting = MergedSearch(_limited(problem, COUNTING_STEPS), ledger(), counting=True)
    try:
        found = counting.run()
        return Solution(found, counting.results, counting.tally > SCHEDULER_STEPS)
    except SearchBudgetExceeded:
        pass  # Not even the merged search ended soon, so the plain one is taken to be too long.
    finally:
        problem.context.budget.add(counting.context.budget)
    search = MergedSearch(problem, ledger(), skip_equal=True, bounded=not problem.fails)
    return _run(search)


def _by_sequences(problem: Problem, ledger: Callable[[], CounterLedger]) -> Solution:
    """If failures leave traces: prove that an easier question has no solution, or merge exactly."""
    if not problem.history.traceable:
        return _by_steps(problem, ledger)
    budget = problem.context.budget
    counting = MergedSearch(_limited(problem, COUNTING_STEPS), ledger(), exact=True, counting=True)
    try:
        found = counting.run()
        return Solution(found, counting.results, counting.tally > SCHEDULER_STEPS)
    except SearchBudgetExceeded:
        pass
    finally:
        budget.add(counting.context.budget)
    if _impossible(problem, ledger):
        return Solution(False, would_time_out=True)
    return _run(MergedSearch(problem, ledger(), exact=True))


def _by_steps(problem: Problem, ledger: Callable[[], CounterLedger]) -> Solution:
    """If nothing can be merged: the plain search, then the easier question if that takes long."""
    budget = problem.context.budget
    known = _limited(problem, KNOWN_STEPS)
    search = Search(known.context, problem.claims, problem.prepared, ledger())
    try:
        found = search.run()
        return Solution(found, search.results)
    except SearchBudgetExceeded:
        pass
    finally:
        budget.add(known.context.budget)
    if _impossible(problem, ledger):
        return Solution(False, would_time_out=True)
    return _run(Search(problem.context, problem.claims, problem.prepared, ledger()))


def _impossible(problem: Problem, ledger: Callable[[], CounterLedger]) -> bool:
    """Whether an easier question has no solution, using half of the steps that are left."""
    if problem.fails:
        return False
    if lacks_values(problem):
        return True
    budget = problem.context.budget
    half = Budget(budget.left // 2)
    try:
        return not RelaxedSearch(problem.within(half), ledger()).run()
    except SearchBudgetExceeded:
        return False
    finally:
        budget.add(half)


def _run(search: Search) -> Solution:
    try:
        found = search.run()
        return Solution(found, search.results, isinstance(search, MergedSearch) or search.tally > SCHEDULER_STEPS)
    except SearchBudgetExceeded:
        raise SearchBudgetExceeded(True) from None


def _limited(problem: Problem, steps: int) -> Problem:
    budget = problem.context.budget
    return problem.within(Budget(min(steps, budget.left)))
