"""Amounts of the capacity of devices that several claims may have: what is asked for, and what there is room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device

_MEBI: Final = 1 << 20


class Amount(NamedTuple):
    """Amount of a capacity that each pod gets, as it is written."""

    capacity: str
    value: str


def shared_capacity(exactly: Mapping[str, Any], device: Device) -> str:
    """The capacity of a device that is divided: the one that a request names, else one of which each claim gets some
    by itself, else the one that says most.
    """
    counted = [name for name in sorted(device.capacity) if is_some(default_amount(device, name))]
    known = (*_asked(exactly), *counted, "memory", "cpu", *sorted(device.capacity))
    return next((name for name in known if name in device.capacity), "")


def default_amount(device: Device, name: str) -> str:
    """What a claim gets of a capacity that it does not name; empty where the policy does not say it."""
    return str((device.capacity[name].get("requestPolicy") or {}).get("default") or "")


def is_some(value: str) -> bool:
    """Whether it is an amount, and more than nothing."""
    try:
        return Quantity.parse(value).nanos > 0
    except ValueError:
        return False


def most_of(name: str, devices: Sequence[Device]) -> str:
    """The most of a capacity that a claim can get of one of the devices, as it is written."""
    amounts = []
    for device in devices:
        if device.allow_multiple_allocations and name in device.capacity:
            policy = device.capacity[name].get("requestPolicy") or {}
            value = str(device.capacity[name].get("value") or "0")
            limits = [(policy.get("validRange") or {}).get("max"), *_last(policy.get("validValues") or ())]
            amounts.append(min((value, *(str(limit) for limit in limits if limit is not None)), key=_nanos))
    return max(amounts, key=_nanos, default="")


def exceeds(value: str, most: str) -> bool:
    """Whether an amount is more than the most."""
    return bool(most) and _nanos(value) > _nanos(most)


def _last(values: Sequence[Any]) -> list[str]:
    return [max(map(str, values), key=_nanos)] if values else []


def _nanos(value: str) -> int:
    return Quantity.parse(value).nanos


def _asked(exactly: Mapping[str, Any]) -> dict[str, str]:
    """What a request asks of capacities, if it asks for some."""
    asked = (exactly.get("capacity") or {}).get("requests") or {}
    return {name: str(value) for name, value in asked.items() if is_some(str(value))}


def asked_amount(exactly: Mapping[str, Any], devices: Sequence[Device]) -> Amount | None:
    """What a request asks of devices that several claims may have; None if it names no amount, or they may not."""
    asked = _asked(exactly)
    device = next((device for device in devices if device.allow_multiple_allocations), None)
    name = shared_capacity(exactly, device) if device is not None else ""
    return Amount(name, asked[name]) if name in asked else None


def amounts_for(pods: int, left: Sequence[Quantity], policy: Mapping[str, Any]) -> Iterator[str]:
    """The amounts with which so many pods have room in what is ``left`` of devices, the largest first."""
    rooms = [room.value() for room in left]
    binary = any(room >= _MEBI and not room % _MEBI for room in rooms)
    shares = sorted({_rounded(room // parts, policy, binary) for room in rooms for parts in range(1, pods + 1)})
    for share in reversed(shares):
        if share > 0 and sum(room // share for room in rooms) >= pods:
            yield str(Quantity.of(share, "BinarySI" if binary else "DecimalSI"))


def _rounded(share: int, policy: Mapping[str, Any], binary: bool) -> int:
    """The largest amount up to this one that the policy of the capacity takes as it is."""
    if values := policy.get("validValues"):
        return max((value for text in values if (value := Quantity.parse(str(text)).value()) <= share), default=0)
    limits = policy.get("validRange") or {}
    least, most = (Quantity.parse(str(limits.get(key) or "0")).value() for key in ("min", "max"))
    share = min(share, most) if most else share
    if limits.get("step") is not None and share >= least:
        step = Quantity.parse(str(limits["step"])).value()
        return least + (share - least) // step * step if step else share
    share = share // _MEBI * _MEBI if binary and share >= _MEBI else share
    return share if share >= least else 0
