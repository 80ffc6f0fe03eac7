"""matchAttribute and distinctAttribute where attributes may be lists (KEP-5491): values are sets."""

from __future__ import annotations

from collections.abc import Hashable

from kubectl_dra.allocation.constraints import Values, values_of
from kubectl_dra.api.claims import DeviceConstraint
from kubectl_dra.api.slices import Device


class MatchValues:
    """All covered devices have a value in common."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self.constraint = constraint
        self._common: list[Values] = []

    def add(self, request: str, subrequest: str, device: Device) -> bool:
        if not self.constraint.covers(request, subrequest):
            return True
        common = values_of(device, self.constraint.match_attribute)
        if self._common:
            common &= self._common[-1]
        if not common:
            return False
        self._common.append(common)
        return True

    def remove(self, request: str, subrequest: str) -> None:
        if self.constraint.covers(request, subrequest):
            self._common.pop()

    def seen(self) -> Hashable:
        return self._common[-1] if self._common else None


class DistinctValues:
    """No two covered devices have a value in common."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self.constraint = constraint
        self._taken: list[Values] = []

    def add(self, request: str, subrequest: str, device: Device) -> bool:
        if not self.constraint.covers(request, subrequest):
            return True
        values = values_of(device, self.constraint.distinct_attribute)
        if not values or any(values & taken for taken in self._taken):
            return False
        self._taken.append(values)
        return True

    def remove(self, request: str, subrequest: str) -> None:
        if self.constraint.covers(request, subrequest):
            self._taken.pop()

    def seen(self) -> Hashable:
        return frozenset(self._taken)
