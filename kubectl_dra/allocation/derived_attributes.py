"""Attributes that a request derives from those of a device, for constraints to compare (alpha in 1.37)."""

from __future__ import annotations

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.api.claims import DeviceConstraint, DeviceRequest
from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.cel import CompileError, EvaluationError


def as_compared(
    spec: DeviceRequest, constraint: DeviceConstraint, device: Device, place: DeviceID, selectors: Selectors
) -> Device:
    """The device as a constraint sees it: with the attribute that it compares, if the request derives that one.

    Raises:
        AllocationError: the expression does not compile, or gives no attribute for this device.
    """
    name = constraint.match_attribute or constraint.distinct_attribute
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
            check="derived-runtime" if compiled else "derived-compile",
            subject=name,
            detail={"attribute": name, "expression": expression, "device": place, "error": value},
        )
    return device.with_attributes({**device.attributes, name: value})
