"""Counters that devices share: the sets of a slice, and a device's consumption of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.admission.server.classes import is_native_resource
from kubectl_dra.admission.server.model import (
    INVALID,
    NOT_FOUND,
    TOO_MANY,
    Key,
    ServerContext,
    Violations,
    check_set,
    key_at,
    missing,
    text,
    violation,
)
from kubectl_dra.admission.server.names import check_format, check_required, check_rows, label_problems
from kubectl_dra.api.behaviour import COUNTERS_APART, COUNTERS_LIMITED_EACH, KEY_AT_MAP
from kubectl_dra.api.dra_fields import limit
from kubectl_dra.api.limits import MAX_COUNTERS
from kubectl_dra.api.pod_resources import is_pod_level
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.schema import FieldPath

_TOTAL_MAX: Final = 32
"""Up to 1.34: the most counters of a slice's sets together, and of those that one device consumes."""
_SLICE_MAX: Final = 1024
"""Up to 1.34: the most counters that the devices of a slice consume together."""
Sets = Mapping[str, frozenset[str]]
"""The counter sets of a slice, each with the names of its counters."""


def sets_of(spec: Mapping[str, Any]) -> Sets:
    """The counter sets that a slice declares."""
    return {
        text(counter_set, "name"): frozenset((counter_set or {}).get("counters") or ())
        for counter_set in spec.get("sharedCounters") or ()
    }


def check_counter_sets(sets: Any, at: FieldPath, context: ServerContext) -> Violations:
    """``sharedCounters`` of a slice."""

    def check(counter_set: Mapping[str, Any] | None, at: FieldPath) -> Violations:
        yield from check_required(text(counter_set, "name"), (*at, "name"), ("counter-set-name",) * 2, label_problems)
        rules = ("counters-missing", "counters-too-many", "counter-name")
        yield from _check_counters((counter_set or {}).get("counters"), (*at, "counters"), rules, context)

    total = _counters(sets)
    if context.release not in COUNTERS_LIMITED_EACH and total > _TOTAL_MAX:
        message = f"have {total} counters together, at most {_TOTAL_MAX} are allowed"
        yield violation(at, INVALID, "counters-too-many", message)
    most = limit("ResourceSliceSpec", "sharedCounters", context.release)
    rules = ("counter-sets-too-many", "counter-set-name")
    yield from check_set(sets, at, most, rules, check, context, named="name")


def check_consumed_together(devices: Any, at: FieldPath, context: ServerContext) -> Violations:
    """The counters that all devices of a slice consume, which only 1.34 and before limit."""
    total = sum(_counters((device or {}).get("consumesCounters")) for device in devices or ())
    if context.release not in COUNTERS_LIMITED_EACH and total > _SLICE_MAX:
        message = f"consume {total} counters together, at most {_SLICE_MAX} are allowed"
        yield violation(at, INVALID, "consumes-too-many", message)


def check_consumptions(
    device: Mapping[str, Any], device_at: FieldPath, sets: Sets, context: ServerContext
) -> Violations:
    """``consumesCounters`` of a device. ``sets`` are those of its slice, where they must be up to 1.34."""
    consumptions, at = device.get("consumesCounters"), (*device_at, "consumesCounters")
    together = context.release not in COUNTERS_APART

    def check(consumption: Mapping[str, Any] | None, at: FieldPath) -> Violations:
        name = text(consumption, "counterSet")
        if not name:
            yield missing((*at, "counterSet"), "consumes-set")
        elif not together:
            yield from check_format(name, (*at, "counterSet"), "consumes-set", label_problems)
        rules = ("consumes-counters",) * 3
        yield from _check_counters((consumption or {}).get("counters"), (*at, "counters"), rules, context)
        yield from check_rows(consumption, at, "DeviceCounterConsumption", context)

    most = limit("Device", "consumesCounters", context.release)
    rules = ("consumes-too-many", "consumes-duplicate")
    yield from check_set(consumptions, at, most, rules, check, context, named="counterSet")
    if together:
        total = _counters(consumptions)
        if total > _TOTAL_MAX:
            message = f"consumes {total} counters, at most {_TOTAL_MAX} are allowed"
            yield violation(device_at, INVALID, "consumes-too-many", message)
        yield from _check_known(consumptions or (), at, sets)


def _check_known(consumptions: Any, at: FieldPath, sets: Sets) -> Violations:
    for index, consumption in enumerate(consumptions):
        name = text(consumption, "counterSet")
        if name not in sets:
            message = f"{name!r} is not in sharedCounters of this slice"
            yield violation((*at, index, "counterSet"), INVALID, "consumes-set", message)
            continue
        for counter in (consumption or {}).get("counters") or ():
            if counter not in sets[name]:
                message = f"{counter!r} is not a counter of {name!r} in this slice"
                where = (*at, index, "counters")
                yield violation(where, INVALID, "consumes-counters", message, below=(counter,))


def _counters(entries: Any) -> int:
    return sum(len((consumption or {}).get("counters") or ()) for consumption in entries or ())


def _check_counters(
    counters: Mapping[str, Any] | None, at: FieldPath, rules: tuple[str, str, str], context: ServerContext
) -> Violations:
    """Check counters; ``rules``: missing, too many, bad name."""
    if not counters:
        yield missing(at, rules[0], "must have at least one counter")
        return
    if context.release in COUNTERS_LIMITED_EACH and len(counters) > MAX_COUNTERS:
        message = f"has {len(counters)} counters, at most {MAX_COUNTERS} are allowed"
        yield violation(at, TOO_MANY, rules[1], message)
        return
    for name in counters:
        for problem in label_problems(name):
            field = None if context.release in KEY_AT_MAP else key_at(at, name, 63)[1]
            yield violation(at, INVALID, rules[2], f"{name!r} {problem}", below=(name,), field=field)


# Resources of nodes that a device stands for: ``nodeAllocatableResourceMappings`` of 1.36, and what replaced it.

_KEY: Final = "node-allocatable-key"
_CAPACITY: Final = "node-allocatable-capacity-key"
_MULTIPLIER: Final = "node-allocatable-multiplier"
_EMPTY: Final = "node-allocatable-empty"


def check_mappings(mappings: Mapping[str, Any] | None, capacity: Mapping[str, Any], at: FieldPath) -> Violations:
    """``nodeAllocatableResourceMappings`` of a device ``at``."""
    for name, mapping in (mappings or {}).items():
        where: FieldPath = (*at, "nodeAllocatableResourceMappings", Key(name))
        if not is_native_resource(name):
            yield _no_resource(name, where)
        multiplier, key = (mapping or {}).get("allocationMultiplier"), (mapping or {}).get("capacityKey")
        if multiplier is not None:
            yield from _positive(multiplier, (*where, "allocationMultiplier"))
        yield from _check_key(key, capacity, (*where, "capacityKey"))


def check_node_resources(resources: Mapping[str, Any] | None, capacity: Mapping[str, Any], at: FieldPath) -> Violations:
    """``nodeAllocatableResources`` of a device ``at``."""
    for name, resource in (resources or {}).items():
        where: FieldPath = (*at, "nodeAllocatableResources", Key(name))
        if not is_pod_level(name):
            yield _no_resource(name, where)
        mapping, overhead = (resource or {}).get("mapping"), (resource or {}).get("overhead")
        if mapping is None and overhead is None:
            yield missing(where, _EMPTY, "must have a mapping or an overhead")
        if mapping is not None:
            yield from _check_mapping(mapping, capacity, (*where, "mapping"))
        if overhead is not None:
            yield from _check_overhead(overhead, (*where, "overhead"))


def _check_mapping(mapping: Mapping[str, Any], capacity: Mapping[str, Any], at: FieldPath) -> Violations:
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


def _check_overhead(overhead: Mapping[str, Any], at: FieldPath) -> Violations:
    given = {name: overhead[name] for name in ("perPod", "perContainer") if overhead.get(name) is not None}
    if not given:
        yield violation(at, INVALID, _EMPTY, "must have perPod or perContainer")
    for name, amount in given.items():
        if Quantity.from_json(amount).sign() < 0:
            yield violation((*at, name), INVALID, _MULTIPLIER, f"{amount} must not be negative")


def _check_key(key: str | None, capacity: Mapping[str, Any], at: FieldPath) -> Violations:
    if key == "":
        yield violation(at, INVALID, _CAPACITY, "must not be empty")
    elif key is not None and key not in capacity:
        yield violation(at, NOT_FOUND, _CAPACITY, f"{key!r} is not a capacity of this device")


def _positive(amount: Any, at: FieldPath) -> Violations:
    if Quantity.from_json(amount).sign() <= 0:
        yield violation(at, INVALID, _MULTIPLIER, f"{amount} must be more than 0")


def _no_resource(name: str, at: FieldPath) -> Any:
    return violation(at, INVALID, _KEY, f"{name!r} is not a resource of nodes such as cpu or memory")
