"""Arithmetic that proves that a distinctAttribute cannot be met, whatever a search remembers about it.

A distinctAttribute may forget: releases with that defect keep one value per request (that of the device
placed last) and drop it when a device of the request is given back. Two facts still hold when the search
moves from one request to the next. First, the last devices of all earlier covered requests have different
values, because each was compared with those of the requests before it. Second, a request for two or more
devices can forget the value of its first one only after a device with another value was accepted beside it.

So each covered request needs a value of its own, and the last one examined needs two if it wants more than
one device. All values of its usable devices count, free or not. If no error is possible (``Problem.fails``),
a claim without enough values cannot be allocated.
"""

from __future__ import annotations

from collections.abc import Hashable

from kubectl_dra.allocation.pruning.bounds import Flow
from kubectl_dra.allocation.pruning.problem import NEVER, Problem, SearchStage, value_of
from kubectl_dra.api.claims import DeviceConstraint


def lacks_values(problem: Problem) -> bool:
    """Whether some distinctAttribute has too few values for its requests."""
    return any(
        _lacks(problem, number, constraint)
        for number, claim in enumerate(problem.claims)
        for constraint in claim.constraints
        if not constraint.match_attribute
    )


def _lacks(problem: Problem, claim: int, constraint: DeviceConstraint) -> bool:
    values: list[set[Hashable]] = []
    for stage in problem.stages:
        alternatives = stage.alternatives
        if stage.claim != claim or any(
            entry.spec.admin_access or not constraint.covers(entry.parent.name, entry.subrequest)
            for entry in alternatives
        ):
            continue
        values.append(_values(problem, stage, constraint))
        need = min(2, min(entry.needed for entry in alternatives))
        if need and _too_few(values, need):
            return True
        if not need:
            values.pop()
    return False


def _values(problem: Problem, stage: SearchStage, constraint: DeviceConstraint) -> set[Hashable]:
    found = {
        value_of(candidate.device, constraint)
        for candidate in problem.context.candidates
        if any(uses[candidate.position] != NEVER for uses in stage.uses)
    }
    return found - {None}


def _too_few(values: list[set[Hashable]], last: int) -> bool:
    """Whether there are too few different values: one for each request, and ``last`` for the last."""
    flow = Flow()
    for number, own in enumerate(values):
        flow.edge("source", number, last if number == len(values) - 1 else 1)
        for value in own:
            flow.edge(number, ("value", value), 1)
    for value in set().union(*values):
        flow.edge(("value", value), "sink", 1)
    return flow.maximum("source", "sink") < len(values) - 1 + last
