"""Request policies of a device's capacity: which amounts one claim may take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.model import (
    DUPLICATE,
    FORBIDDEN,
    INTERNAL_ERROR,
    INVALID,
    TOO_MANY,
    Path,
    Violation,
    Violations,
    violation,
)
from kubectl_dra.api.behaviour import DEFAULT_OUT_OF_RANGE, STEP_ABOVE_ZERO
from kubectl_dra.api.fields import limit
from kubectl_dra.api.quantity import Quantity

FRACTIONS: Final = "DRAFractionalCapacityRange"
_UNIT: Final = 1_000_000_000
_MILLI: Final = 1_000_000


def check_capacity(
    capacity: Mapping[str, Any] | None, at: Path, field: str, shared: bool, context: ServerContext
) -> Violations:
    """One entry of ``capacity``; ``field`` is the text of ``at``, ``shared`` is allowMultipleAllocations."""
    policy = (capacity or {}).get("requestPolicy")
    if policy is None:
        return
    where = _Where((*at, "requestPolicy"), f"{field}.requestPolicy")
    if not shared:
        yield where.violation(FORBIDDEN, "policy-needs-multi", "needs allowMultipleAllocations: true on the device")
        return
    value = Quantity.from_json((capacity or {}).get("value"))
    values, limits = policy.get("validValues"), policy.get("validRange")
    if values and limits is not None:
        yield where.violation(FORBIDDEN, "policy-both", "has validValues and validRange; only one may be set")
    elif values or limits is not None:
        default = policy.get("default")
        if default is None:
            message = f"must be set with {'validValues' if values else 'validRange'}"
            yield where.child("default").violation("Required", "policy-default-missing", message)
        elif values:
            amounts = [Quantity.from_json(entry) for entry in values]
            exact = context.on(FRACTIONS)
            yield from _check_values(amounts, Quantity.from_json(default), value, where.child("validValues"), exact)
        else:
            yield from _check_range(limits, Quantity.from_json(default), value, where.child("validRange"), context)


class _Where(Struct, eq=False):
    """A path together with its text, which may be shortened."""

    path: Path
    field: str

    def child(self, part: str | int) -> _Where:
        """The place of a field or an item in it."""
        shown = f"[{part}]" if isinstance(part, int) else f".{part}"
        return _Where((*self.path, part), self.field + shown)

    def violation(self, reason: str, rule: str, message: str) -> Violation:
        """A violation at this place."""
        return violation(self.path, reason, rule, message, field=self.field)


def _check_values(
    values: list[Quantity], default: Quantity, capacity: Quantity, where: _Where, exact: bool
) -> Violations:
    for index in range(1, len(values)):
        if values[index - 1] > values[index]:
            message = f"{values[index]} is less than the value before it; values must ascend"
            yield where.child(index).violation(INVALID, "policy-values-order", message)
    most = limit("CapacityRequestPolicy", "validValues")
    too_many = most is not None and len(values) > most
    if too_many:
        message = f"has {len(values)} values, at most {most} are allowed"
        yield where.violation(TOO_MANY, "policy-values-too-many", message)
    else:
        yield from _check_each(values, capacity, where, exact)
    # The server looks for the default only in a list that is not too long.
    if too_many or default not in values:
        yield where.violation(INVALID, "policy-values-default", f"the default {default} is not among the values")


def _check_each(values: list[Quantity], capacity: Quantity, where: _Where, exact: bool) -> Violations:
    for index, value in enumerate(values):
        if value > capacity:
            message = f"{value} is more than the capacity's value {capacity}"
            yield where.child(index).violation(INVALID, "policy-values-large", message)
    seen: set[object] = set()
    for index, value in enumerate(values):
        # Without the feature compared as whole numbers, rounded up: 1200m and 1500m are equal then.
        whole = _digits(value) if exact else value.value()
        if whole in seen:
            message = f"{value} is already in the list" + ("" if exact else ", fractions rounded up")
            yield where.child(index).violation(DUPLICATE, "policy-values-duplicate", message)
        seen.add(whole)


def _check_range(
    limits: Mapping[str, Any], default: Quantity, capacity: Quantity, where: _Where, context: ServerContext
) -> Violations:
    least, most, step = (_optional(limits.get(name)) for name in ("min", "max", "step"))
    if least is None:
        yield where.child("min").violation("Required", "policy-range-min-missing", "must be set in a validRange")
        return
    own = context.release in DEFAULT_OUT_OF_RANGE
    comparisons = [
        ("min", "min", least > capacity, f"min {least} is more than the capacity's value {capacity}"),
        ("min", "default" if own else "min", default < least, f"the default {default} is less than min {least}"),
    ]
    if most is not None:
        comparisons += [
            ("max", "max", least > most, f"min {least} is more than max {most}"),
            ("max", "max", most > capacity, f"max {most} is more than the capacity's value {capacity}"),
            ("max", "default" if own else "max", default > most, f"the default {default} is more than max {most}"),
        ]
    for name, field, broken, message in comparisons:
        if broken:
            yield where.child(field).violation(INVALID, f"policy-range-{name}", message)
    named = (("default", default), ("min", least), ("max", most), ("step", step))
    amounts = {name: amount for name, amount in named if amount is not None}
    fractional = context.on(FRACTIONS) and any(amount.nanos % _UNIT for amount in amounts.values())
    uncountable: dict[str, str] = {}
    if fractional:
        text = "is not a number of thousandths below 2^63"
        uncountable = {name: text for name, amount in amounts.items() if not _in_thousandths(amount)}
    elif own and step is not None and step.nanos > 0:
        text = f"is not between 0 and {2**63 - 1}"
        uncountable = {name: text for name, amount in amounts.items() if not 0 <= amount.nanos <= (2**63 - 1) * _UNIT}
    for name, text in uncountable.items():
        yield where.child(name).violation(INVALID, "policy-range-step", f"{amounts[name]} {text}")
    if step is None or (fractional and uncountable):
        return
    where = where.child("step")
    yield from _check_step(step, least, most, default, capacity, where, context, fractional, not uncountable)


def _check_step(
    step: Quantity,
    least: Quantity,
    most: Quantity | None,
    default: Quantity,
    capacity: Quantity,
    where: _Where,
    context: ServerContext,
    fractional: bool,
    countable: bool,
) -> Violations:
    rule, above_zero = "policy-range-step", context.release in STEP_ABOVE_ZERO
    if above_zero and step.nanos <= 0:
        yield where.violation(INVALID, "policy-range-step-zero", "must be more than 0")
        return
    if least.nanos + step.nanos > capacity.nanos:
        message = f"min {least} and one step {step} are more than the capacity's value {capacity}"
        yield where.violation(INVALID, rule, message)
    if not countable:
        return
    if not above_zero and not step.value():
        message = "is 0, which crashes the API server's handler of this request"
        yield where.violation(INTERNAL_ERROR, "policy-range-step-zero", message)
        return
    for name, amount in (("the default", default), ("max", most)):
        if amount is None:
            continue
        if fractional:
            rest = (amount.nanos - least.nanos) % step.nanos
        else:
            rest = _int64(amount.value() - least.value()) % step.value()
        if rest:
            message = f"{name} {amount} is not min {least} plus a multiple of the step {step}"
            yield where.violation(INVALID, rule, message)


def _digits(value: Quantity) -> tuple[int, int]:
    """The number as it is written, with its fraction digits: 1 and 1000m differ."""
    return value.unscaled * 10 ** max(value.exponent, 0), max(-value.exponent, 0)


def _in_thousandths(amount: Quantity) -> bool:
    return amount.nanos % _MILLI == 0 and -(2**63) <= amount.nanos // _MILLI < 2**63


def _int64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _optional(value: Any) -> Quantity | None:
    return None if value is None else Quantity.from_json(value)
