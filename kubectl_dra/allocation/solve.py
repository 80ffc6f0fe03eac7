"""The first solution of one attempt: by the plain search, or by the merged one if that takes long."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubectl_dra.allocation.budgets import PLAIN_STEPS, Budget
from kubectl_dra.allocation.counters import CounterLedger, uses_groups
from kubectl_dra.allocation.errors import SearchBudgetExceeded
from kubectl_dra.allocation.request import PreparedClaim
from kubectl_dra.allocation.search import Search, Solution
from kubectl_dra.allocation.search_context import SearchContext
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.cel.lexer import with_room


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
