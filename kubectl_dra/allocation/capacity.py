"""Consumable capacity (KEP-5075): what a request takes from a device, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, NamedTuple

from msgspec import Struct

from kubectl_dra.api.decimals import wrapped
from kubectl_dra.api.quantity import Format, Quantity, is_plain
from kubectl_dra.api.slices import Device

Amounts = Mapping[str, Quantity]
NOTHING: Amounts = {}
ZERO = Quantity.parse("0")
INT64_MAX = 2**63 - 1
_MILLI = 1_000_000
_OUT_OF_RANGE = "capacity request cannot be represented in the device's range arithmetic"


class CapacityLack(Enum):
    """Why a capacity does not serve a request."""

    UNKNOWN = auto()
    """The device has no such capacity."""
    POLICY = auto()
    """The amount violates the request policy."""
    INSUFFICIENT = auto()
    """Too little is left."""


class CapacityShortage(Struct, frozen=True):
    """Why a device's capacity does not serve a request: ``used`` + ``amount`` > ``value`` where that is insufficient.

    ``requested`` is None where the request does not name the capacity.
    """

    reason: CapacityLack
    capacity: str
    requested: Quantity | None = None
    amount: Quantity | None = None
    used: Quantity | None = None
    value: Quantity | None = None


def amount_taken(
    requested: Quantity | None, capacity: Mapping[str, Any], format: Format = "BinarySI", *, fractional: bool = False
) -> Quantity:
    """The amount that a request takes from one capacity, after defaults and rounding up.

    If not requested: the policy's default, else all of it. If requested: rounded up to the policy's range,
    step or next valid value. A rounded step wraps around beyond the largest 64-bit integer, and has the given
    format. ``fractional``: steps are counted in thousandths wherever the range can be written in them (1.37).
    """
    policy = capacity.get("requestPolicy") or {}
    if requested is None:
        default = policy.get("default")
        return Quantity.parse(default if default is not None else capacity.get("value", "0"))
    valid_range = policy.get("validRange") or {}
    if valid_range.get("min") is not None:
        minimum = Quantity.parse(valid_range["min"])
        if requested < minimum:
            return minimum
        if valid_range.get("step") is None:
            return requested
        if fractional and (counted := _in_thousandths(valid_range)):
            return _rounded(requested, counted, _format_of_step(capacity))
        step = Quantity.parse(valid_range["step"]).value()
        if step == 0:
            return requested
        base = minimum.value()
        return Quantity.of(wrapped(base + step * _steps(wrapped(requested.value() - base), step)), format)
    for value in policy.get("validValues") or ():
        if requested <= (listed := Quantity.parse(value)):
            return listed
    return requested


def _steps(added: int, step: int) -> int:
    """Number of steps that cover an amount. Amounts wrapped below zero are divided toward zero, as in Go."""
    steps, rest = divmod(abs(added), step)
    return steps + (rest > 0) if added >= 0 else -steps + (rest > 0)


class _Thousandths(NamedTuple):
    """The smallest amount and the step of a range, in thousandths."""

    minimum: int
    step: int


def _in_thousandths(valid_range: Mapping[str, Any]) -> _Thousandths | None:
    """The range in thousandths, or None if the allocator counts in whole units instead.

    It does so if a bound needs smaller parts or passes 64 bits. Ranges of whole numbers are counted in thousandths too.
    """
    bounds = {name: _thousandths(Quantity.parse(value)) for name, value in valid_range.items() if value is not None}
    minimum, step = bounds.get("min"), bounds.get("step")
    if None in bounds.values() or minimum is None or step is None or step < 1:
        return None
    return _Thousandths(minimum, step)


def _thousandths(amount: Quantity) -> int | None:
    whole, rest = divmod(amount.nanos, _MILLI)
    return None if rest or abs(whole) > INT64_MAX else whole


def _rounded(requested: Quantity, counted: _Thousandths, format: Format) -> Quantity:
    """The first step of a range at or above an amount that is not below its minimum."""
    steps = -(-(requested.nanos - counted.minimum * _MILLI) // (counted.step * _MILLI))
    whole, rest = divmod(counted.minimum + counted.step * steps, 1000)
    return Quantity(whole * 1000 + rest, -3, format) if rest else Quantity.of(whole, format)


def fault(device: Device, requested: Amounts | None, *, fractional: bool = False) -> str:
    """Why a scheduler gives up at a capacity of the device, from 1.37 on; empty if it continues.

    The amount is negative, or cannot be rounded to a step of the policy's range within 64 bits. A device that
    merely lacks a requested capacity is skipped.
    """
    wanted = requested or NOTHING
    if any(name not in device.capacity for name in wanted):
        return ""
    for name, capacity in device.capacity.items():
        amount_requested = wanted.get(name)
        why = "" if amount_requested is None else _out_of_range(amount_requested, capacity, fractional)
        if not why and amount_taken(amount_requested, capacity, fractional=fractional).sign() < 0:
            why = "capacity value is negative"
        if why:
            return f'capacity "{name}": {why}'
    return ""


def _out_of_range(requested: Quantity, capacity: Mapping[str, Any], fractional: bool) -> str:
    valid_range = (capacity.get("requestPolicy") or {}).get("validRange") or {}
    if valid_range.get("min") is None or valid_range.get("step") is None:
        return ""
    minimum, step = Quantity.parse(valid_range["min"]), Quantity.parse(valid_range["step"]).value()
    if requested < minimum:
        return ""
    if fractional and (counted := _in_thousandths(valid_range)):
        if _thousandths(requested) is None:
            return f"{_OUT_OF_RANGE}: request {requested} is not a representable milli value"
        if _thousandths(_rounded(requested, counted, "DecimalSI")) is None:
            return f"{_OUT_OF_RANGE}: rounding request {requested} up to the next step passes the milli-value range"
        return ""
    if step == 0:
        return ""
    if requested > Quantity.of(INT64_MAX):
        return f"{_OUT_OF_RANGE}: request {requested} exceeds MaxInt64"
    base = minimum.value()
    if base >= 0 and base + step * _steps(requested.value() - base, step) > INT64_MAX:
        return f"{_OUT_OF_RANGE}: rounding request {requested} up to the next step passes MaxInt64"
    return ""


def violates_policy(amount: Quantity, capacity: Mapping[str, Any], *, fractional: bool = False) -> bool:
    """Whether a rounded amount is outside the capacity's request policy."""
    policy = capacity.get("requestPolicy") or {}
    default = policy.get("default")
    if default is not None and amount == Quantity.parse(default):
        return False
    valid_range = policy.get("validRange")
    if valid_range:
        maximum = valid_range.get("max")
        if maximum is not None and amount > Quantity.parse(maximum):
            return True
        if valid_range.get("step") is None:
            return False
        if fractional and (counted := _in_thousandths(valid_range)):
            exact = _thousandths(amount)
            return exact is None or (exact - counted.minimum) % counted.step != 0
        step = Quantity.parse(valid_range["step"]).value()
        minimum = Quantity.parse(valid_range.get("min") or "0").value()
        return step == 0 or (amount.value() - minimum) % step != 0
    values = policy.get("validValues") or ()
    return bool(values) and all(amount != Quantity.parse(value) for value in values)


def shortage(
    device: Device, requested: Amounts | None, consumed: Amounts, held: Amounts, *, fractional: bool = False
) -> CapacityShortage | None:
    """The first capacity that does not serve the request, or None if all do.

    ``consumed`` is taken in the cluster, ``held`` by earlier requests of the same attempt. Every capacity of
    the device counts, requested or not.
    """
    wanted = requested or NOTHING
    for name in wanted:
        if name not in device.capacity:
            return CapacityShortage(CapacityLack.UNKNOWN, name, requested=wanted[name])
    for name, capacity in device.capacity.items():
        amount_requested = wanted.get(name)
        if amount_requested is None and "requestPolicy" not in capacity and name not in consumed and name not in held:
            # Without a policy all of it is taken, and nothing is in use.
            continue
        amount = amount_taken(amount_requested, capacity, fractional=fractional)
        value = Quantity.parse(capacity.get("value", "0"))
        if violates_policy(amount, capacity, fractional=fractional):
            return CapacityShortage(CapacityLack.POLICY, name, amount_requested, amount, None, value)
        used = consumed.get(name, ZERO) + held.get(name, ZERO)
        if used + amount > value:
            return CapacityShortage(CapacityLack.INSUFFICIENT, name, amount_requested, amount, used, value)
    return None


def decides_nothing(device: Device) -> bool:
    """Whether the amounts of a device's capacity make no difference to requests that ask for no amount.

    One request takes all of the device, nothing has a policy, and no amount is negative.
    """
    return not device.allow_multiple_allocations and all(
        "requestPolicy" not in capacity and is_plain(str(capacity.get("value", "")))
        for capacity in device.capacity.values()
    )


def consumption(
    device: Device, requested: Amounts | None, *, binary: bool = True, fractional: bool = False
) -> dict[str, Quantity]:
    """The consumed capacity that a share of the device records, for each of the device's capacities.

    ``binary``: amounts rounded to a step become binary quantities, as up to 1.36, instead of keeping the
    step's format.
    """
    wanted = requested or NOTHING
    return {
        name: amount_taken(
            wanted.get(name), capacity, "BinarySI" if binary else _format_of_step(capacity), fractional=fractional
        )
        for name, capacity in device.capacity.items()
    }


def _format_of_step(capacity: Mapping[str, Any]) -> Format:
    valid_range = (capacity.get("requestPolicy") or {}).get("validRange") or {}
    step = valid_range.get("step")
    return "BinarySI" if step is None else Quantity.parse(step).format
