"""Proofs by counting that no search can succeed, whatever it does and whatever it forgets.

Each answers an easier question: are there enough devices, enough of them with one value of a matchAttribute, enough
different values of a distinctAttribute, enough of each capacity in total? "No" means "no" to the real question as
well; "yes" proves nothing. A prioritized list needs at least its smallest alternative, and can use what any of them
can use. Requests with admin access are left out, because they take nothing away.

A distinctAttribute may forget: releases with that defect keep one value per request (that of the device placed last)
and drop it when a device of the request is given back. Two facts still hold when the search moves from one request to
the next. First, the last devices of all earlier covered requests have different values, because each was compared
with those of the requests before it. Second, a request for two or more devices can forget the value of its first one
only after a device with another value was accepted beside it. So each covered request needs a value of its own, and
the last one examined needs two if it wants more than one device.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from typing import NamedTuple

from kubectl_dra.allocation.budgets import COMPARED_PER_STEP
from kubectl_dra.allocation.capacity import NOTHING, consumption
from kubectl_dra.allocation.interchangeable import NEVER, USABLE, Problem, values_of
from kubectl_dra.allocation.search_context import Alternative
from kubectl_dra.api.claims import DeviceConstraint
from kubectl_dra.api.quantity import Quantity

MAX_VALUES = 64
"""Number of values of a matchAttribute that are tried."""


class Demand(NamedTuple):
    """A request that needs ``need`` devices, and the positions that each alternative can use."""

    claim: int
    need: int
    usable: Sequence[tuple[Alternative, frozenset[int]]]

    @property
    def positions(self) -> frozenset[int]:
        """What some alternative can use."""
        return frozenset().union(*(positions for _, positions in self.usable))

    def covered(self, claim: int, constraint: DeviceConstraint) -> bool:
        """Whether a constraint of a claim covers all alternatives."""
        return self.claim == claim and all(_covers(constraint, alternative) for alternative, _ in self.usable)

    def limited(self, claim: int, constraint: DeviceConstraint, allowed: Set[int]) -> frozenset[int]:
        """What it can use if a constraint of a claim admits only some devices."""
        return frozenset().union(
            *(
                positions & allowed if self.claim == claim and _covers(constraint, alternative) else positions
                for alternative, positions in self.usable
            )
        )


def impossible(problem: Problem) -> bool:
    """Whether the claims cannot be allocated. Never if an error can end the search first."""
    if problem.fails:
        return False
    demands = _demands(problem, USABLE)
    problem.context.budget.charge(len(demands) * len(problem.context.candidates) // COMPARED_PER_STEP)
    candidates = problem.context.candidates
    alone = [demand for demand in demands if not any(candidates[position].shareable for position in demand.positions)]
    return (
        _too_few([(demand.need, demand.positions) for demand in alone])
        or _lacks_match(problem, alone)
        or _lacks_capacity(problem, demands)
        or lacks_values(problem, forgets=problem.context.defects.distinct_remembers_one)
    )


def _demands(problem: Problem, *uses: int) -> list[Demand]:
    out: list[Demand] = []
    for stage in problem.stages:
        need = min(alternative.needed for alternative in stage.alternatives)
        if need and not any(alternative.spec.admin_access for alternative in stage.alternatives):
            usable = [
                (alternative, frozenset(position for position, use in enumerate(listed) if use in uses))
                for alternative, listed in zip(stage.alternatives, stage.uses, strict=True)
            ]
            out.append(Demand(stage.claim, need, usable))
    return out


def _too_few(needs: Sequence[tuple[int, Set[Hashable]]]) -> bool:
    """Whether the requests that have no choice beyond some set need more than there is in it.

    The sets are the choices of each request, and all of them together.
    """
    sets = [choices for _, choices in needs]
    return any(
        sum(need for need, own in needs if own <= choices) > len(choices)
        for choices in (*sets, set[Hashable]().union(*sets))
    )


def _lacks_match(problem: Problem, demands: Sequence[Demand]) -> bool:
    """Whether there are too few devices with any value of some matchAttribute."""
    for claim, constraint in _constraints(problem, match=True):
        own = [demand for demand in demands if demand.covered(claim, constraint)]
        if not own:
            continue
        by_value: dict[Hashable, set[int]] = {}
        for position, value in values_of(problem, constraint, range(len(problem.context.candidates))).items():
            by_value.setdefault(value, set()).add(position)
        enough = [
            allowed
            for allowed in by_value.values()
            if all(len(demand.limited(claim, constraint, allowed)) >= demand.need for demand in own)
        ]
        if len(enough) <= MAX_VALUES and all(
            _too_few([(demand.need, demand.limited(claim, constraint, allowed)) for demand in demands])
            for allowed in enough
        ):
            return True
    return False


def _lacks_capacity(problem: Problem, demands: Sequence[Demand]) -> bool:
    """Whether the smallest consumption of some capacity, summed up, exceeds what is left of it on all devices."""
    context, candidates = problem.context, problem.context.candidates
    least: dict[str, int] = {}
    for demand in demands:
        consumptions: list[dict[str, Quantity]] = [
            consumption(
                candidates[position].device, alternative.spec.capacity, fractional=context.features.fractional_capacity
            )
            if candidates[position].shareable
            else {}
            for alternative, positions in demand.usable
            for position in positions
        ]
        for name in set.intersection(*map(set, consumptions)) if consumptions else ():
            least[name] = least.get(name, 0) + demand.need * max(
                0, min(amounts[name].nanos for amounts in consumptions)
            )
    remaining = dict.fromkeys(least, 0)
    for position in frozenset[int]().union(*(demand.positions for demand in demands)) if least else ():
        device, used = candidates[position].device, context.state.consumed.get(candidates[position].id, NOTHING)
        for name in remaining.keys() & device.capacity:
            amount = Quantity.parse(device.capacity[name].get("value", "0")).nanos
            remaining[name] += max(0, amount - (used[name].nanos if name in used else 0))
    return any(amount > remaining[name] for name, amount in least.items())


def lacks_values(problem: Problem, *, forgets: bool = True) -> bool:
    """Whether some distinctAttribute has too few values for its requests, even if it forgets some."""
    demands = _demands(problem, *{use for _, uses in problem.alternatives for use in uses} - {NEVER})
    for claim, constraint in _constraints(problem, match=False):
        covered = [
            (demand.need, {*values_of(problem, constraint, demand.positions).values()})
            for demand in demands
            if demand.covered(claim, constraint)
        ]
        examined = range(len(covered)) if forgets else ()
        if any(
            _too_few([*((1, own) for _, own in covered[:last]), (min(2, covered[last][0]), covered[last][1])])
            for last in examined
        ):
            return True
        if not forgets and _too_few(covered):
            return True
    return False


def _constraints(problem: Problem, *, match: bool) -> list[tuple[int, DeviceConstraint]]:
    return [
        (claim, constraint)
        for claim, own in enumerate(problem.claims)
        for constraint in own.constraints
        if bool(constraint.match_attribute) is match
    ]


def _covers(constraint: DeviceConstraint, alternative: Alternative) -> bool:
    return constraint.covers(alternative.parent.name, alternative.subrequest)
