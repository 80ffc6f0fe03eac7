"""Arithmetic that shows that a distinctAttribute cannot be met, whatever a search remembers of it.

A distinctAttribute may forget: releases with that defect keep one value per request, that of the device placed last,
and drop it when a device of the request is given back. Two things hold nevertheless where the search goes on from
one request to the next. The last devices of all covered requests before have different values, since each was
compared with those of the requests before it. And a request that needs two devices or more can forget the value of
its first one only after a device with another value was accepted beside it.

So each covered request needs a value of its own, and the last one that is looked at needs two if it needs more than
one device. The values that its usable devices have are counted whether they are free or not. Where no error is
possible (``Problem.fails``), a claim without enough values cannot be allocated.
"""

from __future__ import annotations

from collections.abc import Hashable

from kubectl_dra.allocation.pruning.flow import Flow
from kubectl_dra.allocation.pruning.problem import NEVER, Problem, SearchStage, value_of
from kubectl_dra.api.claims import DeviceConstraint


def lacks_values(problem: Problem) -> bool:
    """Whether some distinctAttribute finds too few values for its requests."""
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
    """Whether the requests cannot have a value each, and the last one that many, all different."""
    flow = Flow()
    for number, own in enumerate(values):
        flow.edge("source", number, last if number == len(values) - 1 else 1)
        for value in own:
            flow.edge(number, ("value", value), 1)
    for value in set().union(*values):
        flow.edge(("value", value), "sink", 1)
    return flow.maximum("source", "sink") < len(values) - 1 + last
