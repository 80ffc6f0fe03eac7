"""matchAttribute and distinctAttribute during the search for devices."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from kubectl_dra.allocation.errors import AllocationCheck, AllocationError, ErrorDetail
from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.api.claims import DeviceConstraint, DeviceRequest
from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.cel import CompileError, EvaluationError

_SCALARS = ("int", "bool", "string", "version")
AttributeValue = tuple[str, Any]


def attribute_of(device: Device, name: str) -> AttributeValue | None:
    """The (type, value) of a fully qualified attribute, or None if the device lacks it.

    A literal key wins. Otherwise a name in the driver's own domain is looked up without its domain. A list or
    unknown value has the type "".
    """
    raw = raw_attribute(device, name)
    if raw is None:
        return None
    for kind in _SCALARS:
        value = raw.get(kind)
        if value is not None:
            return kind, value
    return "", None


def raw_attribute(device: Device, name: str) -> Mapping[str, Any] | None:
    """A fully qualified attribute as it is published; the driver's own may lack the domain."""
    raw = device.attributes.get(name)
    if raw is None:
        domain, _, identifier = name.partition("/")
        return device.attributes.get(identifier) if domain == device.driver else None
    return raw


_KINDS: Final = (("string", "strings"), ("int", "ints"), ("bool", "bools"), ("version", "versions"))
Values = frozenset[tuple[str, Any]]


def values_of(device: Device, name: str) -> Values:
    """The values of an attribute with their types, a scalar as a list of one; none if the device lacks it."""
    raw = raw_attribute(device, name) or {}
    for single, several in _KINDS:
        if raw.get(single) is not None:
            return frozenset(((single, raw[single]),))
        if raw.get(several):
            return frozenset((single, value) for value in raw[several])
    return frozenset()


class ConstraintState:
    """A constraint to which devices are added and from which they are removed, the last one first."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self.constraint = constraint
        self._taken: list[Any] = []

    def add(self, request: str, subrequest: str, device: Device) -> bool:
        """Accept a device, or refuse it and change nothing."""
        if self.constraint.covers(request, subrequest):
            taken = self._taking(device)
            if taken is None:
                return False
            self._taken.append(taken)
        return True

    def remove(self, request: str, subrequest: str) -> None:
        """Remove a device of the request."""
        if self.constraint.covers(request, subrequest):
            self._taken.pop()

    def seen(self) -> Hashable:
        """What decides about further devices. Equal values mean equal decisions from here on."""
        return frozenset(self._taken)

    def _taking(self, device: Device) -> Any:
        """What to remember of a device; None if it is refused."""
        raise NotImplementedError


class MatchAttribute(ConstraintState):
    """All covered devices have the value of the first one."""

    def _taking(self, device: Device) -> AttributeValue | None:
        value = attribute_of(device, self.constraint.match_attribute)
        if value is not None and self._taken and (not value[0] or value != self._taken[0]):
            return None
        return value

    def seen(self) -> Hashable:
        return self._taken[0] if self._taken else None


class DistinctAttribute(ConstraintState):
    """Covered devices differ, with the scheduler's bookkeeping: one remembered value per request."""

    def __init__(self, constraint: DeviceConstraint, *, compares: bool = True) -> None:
        super().__init__(constraint)
        self._compares = compares
        self._count = 0
        self._values: dict[str, AttributeValue] = {}

    def add(self, request: str, subrequest: str, device: Device) -> bool:
        if not self.constraint.covers(request, subrequest):
            return True
        value = attribute_of(device, self.constraint.distinct_attribute)
        if value is None:
            return False
        if self._count and (not value[0] or (self._compares and value in self._values.values())):
            return False
        self._values[request] = value
        self._count += 1
        return True

    def remove(self, request: str, subrequest: str) -> None:
        if self.constraint.covers(request, subrequest):
            self._values.pop(request, None)
            self._count -= 1

    def seen(self) -> Hashable:
        return bool(self._count), frozenset(self._values.items())


class TrulyDistinctAttribute(ConstraintState):
    """Covered devices differ from each other, as the API documents it."""

    def _taking(self, device: Device) -> AttributeValue | None:
        value = attribute_of(device, self.constraint.distinct_attribute)
        if value is None or (self._taken and not value[0]) or value in self._taken:
            return None
        return value


# matchAttribute and distinctAttribute where attributes may be lists (KEP-5491): values are sets.


class MatchValues(ConstraintState):
    """All covered devices have a value in common."""

    def _taking(self, device: Device) -> Values | None:
        values = values_of(device, self.constraint.match_attribute)
        return (values & self._taken[-1] if self._taken else values) or None

    def seen(self) -> Hashable:
        return self._taken[-1] if self._taken else None


class DistinctValues(ConstraintState):
    """No two covered devices have a value in common."""

    def _taking(self, device: Device) -> Values | None:
        values = values_of(device, self.constraint.distinct_attribute)
        return None if any(values & others for others in self._taken) else values or None


# Attributes that a request derives from those of a device, for constraints to compare (alpha in 1.37).


def as_compared(
    spec: DeviceRequest, constraint: DeviceConstraint, device: Device, place: DeviceID, selectors: Selectors
) -> Device:
    """The device as a constraint sees it: with the attribute that it compares, if the request derives that one.

    Raises:
        AllocationError: the expression does not compile, or gives no attribute for this device.
    """
    name = constraint.attribute
    expression = spec.derived_attributes.get(name)
    if expression is None:
        return device
    value = selectors.derived(expression, device)
    if isinstance(value, CompileError | EvaluationError):
        compiled = isinstance(value, EvaluationError)
        raise AllocationError(
            f"evaluate derived attribute {name} on device {place} failed: {value}"
            if compiled
            else f"compile derived attribute {name} failed: {value}",
            check=AllocationCheck.DERIVED_RUNTIME if compiled else AllocationCheck.DERIVED_COMPILE,
            subject=name,
            detail=ErrorDetail(attribute=name, expression=expression, place=place, problem=value),
        )
    return device.with_attributes({**device.attributes, name: value})
