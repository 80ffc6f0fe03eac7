"""Which rule a constraint of a claim follows, by what the allocator can do and its defects."""

from __future__ import annotations

from kubectl_dra.allocation.constraints import (
    ConstraintState,
    DistinctAttribute,
    MatchAttribute,
    TrulyDistinctAttribute,
)
from kubectl_dra.allocation.features import Features, Quirks
from kubectl_dra.allocation.list_constraints import DistinctValues, MatchValues
from kubectl_dra.api.claims import DeviceConstraint


def constraint_state(constraint: DeviceConstraint, features: Features, quirks: Quirks) -> ConstraintState:
    """The state of one constraint. ``matchAttribute`` wins if both are set."""
    if constraint.match_attribute:
        return MatchValues(constraint) if features.list_attributes else MatchAttribute(constraint)
    if features.list_attributes:
        return DistinctValues(constraint)
    if quirks.distinct_remembers_one:
        return DistinctAttribute(constraint, compares=not quirks.distinct_compares_nothing)
    return TrulyDistinctAttribute(constraint)
