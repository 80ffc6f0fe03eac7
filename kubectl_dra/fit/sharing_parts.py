"""Parts of devices: partitions, and whether some can be made; and amounts of a capacity that claims divide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device
from kubectl_dra.data.drivers import Driver
from kubectl_dra.explain.devices.device_state import product_of
from kubectl_dra.explain.phrase import Words, say

Profile = tuple[tuple[str, str], ...]
"""Attributes that name a kind of partition, with their values."""
_PROFILES: Final = (("profile",), ("partitionProfile",), ("computePartition", "memoryPartition"))
"""What drivers call it: NVIDIA, AMD, and AMD where the driver partitions GPUs itself."""
_WHOLE: Final = "spx"
"""AMD's partition that is a whole GPU."""
UNITS: Final = "partitions"
"""The capacity by which AMD's driver counts partitions that it makes."""


def profile_of(device: Device) -> Profile:
    """What kind of partition a device is; empty if it is none."""
    for names in _PROFILES:
        values = tuple((name, str((device.attributes.get(name) or {}).get("string") or "")) for name in names)
        if all(value for _, value in values) and not values[0][1].startswith(_WHOLE):
            return values
    return ()


def memory_of(device: Device) -> Quantity:
    """Memory of a device; zero where it does not say."""
    return Quantity.parse(str((device.capacity.get("memory") or {}).get("value") or "0"))


class Partitioning(Struct, frozen=True):
    """Models that can be partitioned, that cannot, and of which nothing tells."""

    can: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def partitioning(driver: Driver | None, located: Iterable[tuple[Device, Node | None]]) -> Partitioning:
    """What is known of devices and the nodes where they are: a label of the node decides, else the product."""
    found: dict[bool | None, dict[str, None]] = {True: {}, False: {}, None: {}}
    for device, node in located:
        found[_possible(driver, device, node)][product_of(device.attributes) or "a device"] = None
    return Partitioning(*(tuple(found[known]) for known in (True, False, None)))


def _possible(driver: Driver | None, device: Device, node: Node | None) -> bool | None:
    product = product_of(device.attributes)
    if driver is None:
        return None
    label = node.labels.get(driver.mig_label) if node is not None and driver.mig_label else None
    if label in ("true", "false"):
        return label == "true"
    return driver.has_mig_profile(product, "")


def why_no_partition(driver: Driver | None, found: Partitioning) -> Words:
    """Note that no partition is published, and what can be done where some can be made."""
    gate = next((gate for gate in (driver.gates if driver else ()) if gate.name == "DynamicMIG"), None)
    if gate is None:
        return "no partition is published"
    if found.cannot and not (found.can or found.unknown):
        return say("{models:some} cannot be partitioned (MIG)", models=found.cannot)
    which: Words = ""
    if found.cannot:
        which = say(" ({models:some} cannot be partitioned)", models=found.cannot)
    if not found.can:
        text = (
            "no partition is published, and nothing tells whether {models:some} can be partitioned (MIG){which}; if "
            "so, make some on the nodes, or set the driver's gate {gate}"
        )
        return say(text, models=found.unknown or ("its devices",), which=which, gate=gate.name)
    text = "no partition is published; make some on the nodes, or set the driver's gate {gate}{which}"
    return say(text, gate=gate.name, which=which)


# Amounts of the capacity of devices that several claims may have: what is asked for, and what there is room for.

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
