"""Consumable capacity (KEP-5075): what a request takes from a device, and whether it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device

Amounts = Mapping[str, Quantity]
NOTHING: Amounts = {}
ZERO = Quantity.parse("0")


@dataclass(frozen=True, slots=True)
class CapacityShortage:
    """Why a device's capacity does not serve a request.

    ``reason`` is "unknown" (the device has no such capacity), "policy" (the amount violates the request
    policy) or "insufficient" (``used`` + ``amount`` > ``value``). ``requested`` is None where the request
    does not name the capacity.
    """

    reason: str
    capacity: str
    requested: Quantity | None = None
    amount: Quantity | None = None
    used: Quantity | None = None
    value: Quantity | None = None


def amount_taken(requested: Quantity | None, capacity: Mapping[str, Any]) -> Quantity:
    """The amount a request takes from one capacity, after defaults and rounding up.

    Not requested: the policy's default, else all of it. Requested: rounded up to the policy's range, step
    or next valid value.
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
        step = Quantity.parse(valid_range["step"]).value()
        if step == 0:
            return requested
        base = minimum.value()
        steps = -(-(requested.value() - base) // step)
        return Quantity.of(base + step * steps, "BinarySI")
    for value in policy.get("validValues") or ():
        if requested <= (listed := Quantity.parse(value)):
            return listed
    return requested


def violates_policy(amount: Quantity, capacity: Mapping[str, Any]) -> bool:
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
        step = Quantity.parse(valid_range["step"]).value()
        minimum = Quantity.parse(valid_range.get("min") or "0").value()
        return step == 0 or (amount.value() - minimum) % step != 0
    values = policy.get("validValues") or ()
    return bool(values) and all(amount != Quantity.parse(value) for value in values)


def shortage(device: Device, requested: Amounts | None, consumed: Amounts, held: Amounts) -> CapacityShortage | None:
    """The first capacity that does not serve the request, or None where all do.

    ``consumed`` is taken in the cluster, ``held`` by earlier requests of the same attempt. Every capacity of
    the device counts, requested or not.
    """
    wanted = requested or NOTHING
    for name in wanted:
        if name not in device.capacity:
            return CapacityShortage("unknown", name, requested=wanted[name])
    for name, capacity in device.capacity.items():
        asked = wanted.get(name)
        amount = amount_taken(asked, capacity)
        value = Quantity.parse(capacity.get("value", "0"))
        if violates_policy(amount, capacity):
            return CapacityShortage("policy", name, asked, amount, None, value)
        used = consumed.get(name, ZERO) + held.get(name, ZERO)
        if used + amount > value:
            return CapacityShortage("insufficient", name, asked, amount, used, value)
    return None


def consumption(device: Device, requested: Amounts | None) -> dict[str, Quantity]:
    """What a share of the device records as consumed capacity, for each of its capacities."""
    wanted = requested or NOTHING
    return {name: amount_taken(wanted.get(name), capacity) for name, capacity in device.capacity.items()}
