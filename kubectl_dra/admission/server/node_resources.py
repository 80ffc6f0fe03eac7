"""Resources of nodes that a device stands for: ``nodeAllocatableResourceMappings`` of 1.36, and what replaced it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.admission.server.classes import is_native_resource
from kubectl_dra.admission.server.model import INVALID, NOT_FOUND, Key, Path, Violations, missing, violation
from kubectl_dra.admission.server.resources import POD_RESOURCES, is_huge_page
from kubectl_dra.api.quantity import Quantity

_KEY: Final = "node-allocatable-key"
_CAPACITY: Final = "node-allocatable-capacity-key"
_MULTIPLIER: Final = "node-allocatable-multiplier"
_EMPTY: Final = "node-allocatable-empty"


def check_mappings(mappings: Mapping[str, Any] | None, capacity: Mapping[str, Any], at: Path) -> Violations:
    """``nodeAllocatableResourceMappings`` of a device ``at``."""
    for name, mapping in (mappings or {}).items():
        where: Path = (*at, "nodeAllocatableResourceMappings", Key(name))
        if not is_native_resource(name):
            yield _no_resource(name, where)
        multiplier, key = (mapping or {}).get("allocationMultiplier"), (mapping or {}).get("capacityKey")
        if multiplier is not None:
            yield from _positive(multiplier, (*where, "allocationMultiplier"))
        yield from _check_key(key, capacity, (*where, "capacityKey"))


def check_node_resources(resources: Mapping[str, Any] | None, capacity: Mapping[str, Any], at: Path) -> Violations:
    """``nodeAllocatableResources`` of a device ``at``."""
    for name, resource in (resources or {}).items():
        where: Path = (*at, "nodeAllocatableResources", Key(name))
        if name not in POD_RESOURCES and not is_huge_page(name):
            yield _no_resource(name, where)
        mapping, overhead = (resource or {}).get("mapping"), (resource or {}).get("overhead")
        if mapping is None and overhead is None:
            yield missing(where, _EMPTY, "must have a mapping or an overhead")
        if mapping is not None:
            yield from _check_mapping(mapping, capacity, (*where, "mapping"))
        if overhead is not None:
            yield from _check_overhead(overhead, (*where, "overhead"))


def _check_mapping(mapping: Mapping[str, Any], capacity: Mapping[str, Any], at: Path) -> Violations:
    key, multiplier = mapping.get("capacityKey"), mapping.get("capacityMultiplier")
    of_device = mapping.get("deviceMultiplier")
    if (key is None) == (of_device is None):
        yield violation(at, INVALID, _EMPTY, "must have either a capacityKey or a deviceMultiplier")
    yield from _check_key(key, capacity, (*at, "capacityKey"))
    if key is not None and multiplier is None:
        yield missing((*at, "capacityMultiplier"), _MULTIPLIER, "must be set with a capacityKey")
    elif key is not None and multiplier is not None:
        yield from _positive(multiplier, (*at, "capacityMultiplier"))
    elif multiplier is not None:
        yield missing((*at, "capacityKey"), _CAPACITY, "must be set with a capacityMultiplier")
    if of_device is not None:
        yield from _positive(of_device, (*at, "deviceMultiplier"))


def _check_overhead(overhead: Mapping[str, Any], at: Path) -> Violations:
    given = {name: overhead[name] for name in ("perPod", "perContainer") if overhead.get(name) is not None}
    if not given:
        yield violation(at, INVALID, _EMPTY, "must have perPod or perContainer")
    for name, amount in given.items():
        if Quantity.from_json(amount).sign() < 0:
            yield violation((*at, name), INVALID, _MULTIPLIER, f"{amount} must not be negative")


def _check_key(key: str | None, capacity: Mapping[str, Any], at: Path) -> Violations:
    if key == "":
        yield violation(at, INVALID, _CAPACITY, "must not be empty")
    elif key is not None and key not in capacity:
        yield violation(at, NOT_FOUND, _CAPACITY, f"{key!r} is not a capacity of this device")


def _positive(amount: Any, at: Path) -> Violations:
    if Quantity.from_json(amount).sign() <= 0:
        yield violation(at, INVALID, _MULTIPLIER, f"{amount} must be more than 0")


def _no_resource(name: str, at: Path) -> Any:
    return violation(at, INVALID, _KEY, f"{name!r} is not a resource of nodes such as cpu or memory")
