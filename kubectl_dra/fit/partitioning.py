"""Whether the devices of a class could be partitioned where no partition is published, by labels and products."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

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
    if product in driver.without_mig:
        return False
    return True if driver.mig_profiles and product in driver.products else None


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
