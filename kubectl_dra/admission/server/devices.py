"""A device of a ResourceSlice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from kubectl_dra.admission.server.capacities import check_capacity
from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.counters import Sets, check_consumptions
from kubectl_dra.admission.server.declared import beyond_limit
from kubectl_dra.admission.server.equality import same_field
from kubectl_dra.admission.server.model import (
    DUPLICATE,
    INVALID,
    REQUIRED,
    Key,
    Path,
    Violations,
    check_list,
    key_at,
    missing,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_format,
    check_length,
    check_qualified,
    is_version,
    label_key_problems,
    label_problems,
    subdomain_problems,
)
from kubectl_dra.admission.server.node_resources import check_mappings, check_node_resources
from kubectl_dra.admission.server.node_selectors import check_node_selector
from kubectl_dra.admission.server.taints import check_taint
from kubectl_dra.api.behaviour import (
    EMPTY_IS_INVALID,
    KEY_AT_MAP,
    STORED_CAPACITY_UNREAD,
    STORED_UNREAD,
    VALUES_LIMITED,
)
from kubectl_dra.api.fields import limit
from kubectl_dra.api.limits import MAX_ATTRIBUTE_VALUE, MAX_DEVICE_ENTRIES, MAX_DOMAIN, MAX_IDENTIFIER

VALUES_MAX: Final = 48
LIST_VALUES: Final = ("bools", "ints", "strings", "versions")

_VALUES: Final = ("bool", "int", "string", "version", *LIST_VALUES)
_KEY_SHOWN: Final = MAX_DOMAIN + 1 + MAX_IDENTIFIER
_NODE_FIELDS: Final = ("nodeName", "nodeSelector", "allNodes")


def check_device(
    device: Mapping[str, Any],
    at: Path,
    per_device: bool,
    sets: Sets,
    context: ServerContext,
    old: Mapping[str, Any] | None = None,
) -> Violations:
    """One device; ``per_device`` is perDeviceNodeSelection of its slice, ``sets`` are the counter sets there.

    What the stored device ``old`` has is not checked again.
    """
    yield from check_format(text(device, "name"), (*at, "name"), "device-name-invalid", label_problems)
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    yield from _check_sizes(attributes, capacity, at, context)
    yield from _check_attributes(attributes, (*at, "attributes"), context)
    shared = device.get("allowMultipleAllocations") is True
    if not (
        context.release in STORED_CAPACITY_UNREAD and old is not None and same_field(device, old, "Device", "capacity")
    ):
        yield from _check_capacities(capacity, (*at, "capacity"), shared, context)

    def taint(raw: Mapping[str, Any] | None, at: Path) -> Violations:
        return check_taint(raw, at, context)

    most = limit("Device", "taints", context.release)
    if not (context.release in STORED_UNREAD and old is not None and same_field(device, old, "Device", "taints")):
        yield from check_list(
            device.get("taints"), (*at, "taints"), most, "taints-too-many", taint, release=context.release
        )
        yield from beyond_limit(device.get("taints"), (*at, "taints"), most, taint, context.release)
    yield from check_consumptions(device, at, sets, context)
    if per_device:
        yield from _check_nodes(device, at)
    elif any(device.get(field) is not None for field in _NODE_FIELDS):
        message = f"{', '.join(_NODE_FIELDS)} need perDeviceNodeSelection: true in the slice's spec"
        yield violation(at, INVALID, "per-device-node-unexpected", message)
    yield from check_binding(device, at, context)
    yield from check_mappings(device.get("nodeAllocatableResourceMappings"), capacity, at)
    yield from check_node_resources(device.get("nodeAllocatableResources"), capacity, at)


def _check_sizes(
    attributes: Mapping[str, Any], capacity: Mapping[str, Any], at: Path, context: ServerContext
) -> Violations:
    keys = len(attributes) + len(capacity)
    if keys > MAX_DEVICE_ENTRIES:
        message = f"has {keys} attributes and capacities together, at most {MAX_DEVICE_ENTRIES} are allowed"
        yield violation(at, INVALID, "device-keys-too-many", message)
    values = sum(_value_count(attribute or {}) for attribute in attributes.values())
    if values > VALUES_MAX and context.release in VALUES_LIMITED:
        message = f"has {values} attribute values, at most {VALUES_MAX} are allowed"
        yield violation(at, INVALID, "device-values-too-many", message)


def _value_count(attribute: Mapping[str, Any]) -> int:
    return sum(len(attribute.get(name) or ()) for name in LIST_VALUES) or 1


def _check_key(name: str, at: Path, rule: str, context: ServerContext) -> Violations:
    """The name of an attribute or capacity. The server reports it at the map, up to 1.35 at the entry."""
    for found in check_qualified(name, at, (rule, rule), below=(Key(name),), release=context.release):
        yield found if context.release in KEY_AT_MAP else replace(found, field=key_at(at, name, _KEY_SHOWN)[1])


def _check_attributes(attributes: Mapping[str, Any], at: Path, context: ServerContext) -> Violations:
    for name, attribute in attributes.items():
        yield from _check_key(name, at, "attribute-key", context)
        path, field = key_at(at, name, _KEY_SHOWN)
        for found in _check_attribute(attribute or {}, context):
            inside, reason, rule, message = found
            shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in inside)
            yield violation((*path, *inside), reason, rule, message, field=field + shown)


def _check_attribute(attribute: Mapping[str, Any], context: ServerContext) -> Any:
    """What is wrong with an attribute: (path inside it, reason, rule, message)."""
    for name, several in (("string", "strings"), ("version", "versions")):
        value = attribute.get(name)
        if value is not None:
            yield from _check_text(value, (name,), name)
        for index, item in enumerate(attribute.get(several) or ()):
            yield from _check_text(item or "", (several, index), name)
    for name in LIST_VALUES:
        if attribute.get(name) == []:
            yield (name,), INVALID, "attribute-list-empty", "must not be empty where it is set"
    given = [name for name in _VALUES if attribute.get(name) is not None]
    if len(given) != 1:
        has = " and ".join(given) if given else "no value"
        reason = INVALID if given or context.release in EMPTY_IS_INVALID else REQUIRED
        yield (), reason, "attribute-one-value", f"has {has}; exactly one of {', '.join(_VALUES[:4])} must be set"


def _check_text(value: str, inside: Path, kind: str) -> Any:
    if kind == "version" and not is_version(value):
        message = f"{value!r} is not a semantic version such as 1.2.3"
        yield inside, INVALID, "attribute-version", message
    rule = "attribute-version" if kind == "version" else "attribute-string-long"
    for found in check_length(value, inside, MAX_ATTRIBUTE_VALUE, rule):
        yield inside, found.reason, rule, found.message


def _check_capacities(capacity: Mapping[str, Any], at: Path, shared: bool, context: ServerContext) -> Violations:
    for name, entry in capacity.items():
        yield from _check_key(name, at, "capacity-key", context)
        path, field = key_at(at, name, _KEY_SHOWN)
        yield from check_capacity(entry, path, field, shared, context)


def _check_nodes(device: Mapping[str, Any], at: Path) -> Violations:
    name, selector = device.get("nodeName"), device.get("nodeSelector")
    if name is not None:
        if name:
            yield from check_format(name, (*at, "nodeName"), "slice-node-name-invalid", subdomain_problems)
        else:
            message = "must not be empty where it is set"
            yield violation((*at, "nodeName"), INVALID, "slice-node-name-empty", message)
    if selector is not None:
        yield from check_node_selector(selector, (*at, "nodeSelector"))
    if device.get("allNodes") is False:
        yield violation((*at, "allNodes"), INVALID, "slice-bool-false", "must be true where it is set")
    given = [field for field in _NODE_FIELDS if device.get(field) or (field == "nodeSelector" and selector is not None)]
    if not given:
        message = f"must have one of {', '.join(_NODE_FIELDS)}, as the slice has perDeviceNodeSelection"
        yield missing(at, "per-device-node-missing", message)
    elif len(given) > 1:
        message = f"has {' and '.join(given)}; only one of them may be set"
        yield violation(at, INVALID, "per-device-node-multiple", message)


def check_binding(device: Mapping[str, Any], at: Path, context: ServerContext) -> Violations:
    """Binding conditions and binding failure conditions, of a device."""
    lists = {name: device.get(name) or () for name in ("bindingConditions", "bindingFailureConditions")}

    def name_at(value: str | None, at: Path) -> Violations:
        return check_format(value or "", at, "binding-name", label_key_problems)

    for name, values in lists.items():
        yield from check_list(
            values, (*at, name), limit("Device", name), "binding-too-many", name_at, release=context.release
        )
    for name, values in lists.items():
        others = lists["bindingConditions"] if name == "bindingFailureConditions" else ()
        for index, value in enumerate(values):
            where = (*at, name, index)
            if value in values[:index]:
                yield violation(where, DUPLICATE, "binding-duplicate", f"{value!r} is already in the list")
            if value in others:
                yield violation(where, INVALID, "binding-overlap", f"{value!r} is a bindingCondition, too")
    for name, other in (tuple(lists), tuple(lists)[::-1]):
        if lists[other] and not lists[name]:
            yield violation((*at, name), INVALID, "binding-pair", f"must be set together with {other}")
