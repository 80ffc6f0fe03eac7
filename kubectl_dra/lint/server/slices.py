"""ResourceSlice: the spec, in v1's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.api.fields import limit
from kubectl_dra.lint.server.context import ServerContext
from kubectl_dra.lint.server.counters import check_counter_sets
from kubectl_dra.lint.server.devices import LIST_VALUES, check_device
from kubectl_dra.lint.server.metadata import check_metadata
from kubectl_dra.lint.server.model import (
    INVALID,
    Path,
    Violations,
    check_set,
    missing,
    struct,
    text,
    violation,
)
from kubectl_dra.lint.server.names import check_driver, check_format, check_pool, lower, subdomain_problems
from kubectl_dra.lint.server.node_selectors import check_node_selector

COSTLY_DEVICES_MAX: Final = 64
"""The limit if any device has taints, consumes counters or has a list attribute."""

_SPEC: Final[Path] = ("spec",)
_NODE_FIELDS: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def check_slice(resource_slice: Mapping[str, Any], context: ServerContext) -> Violations:
    """A ResourceSlice to be created."""
    yield from check_metadata(resource_slice.get("metadata"), subdomain_problems, namespaced=False)
    spec = struct(resource_slice, "spec")
    rules = ("slice-driver-missing", "slice-driver-invalid", "slice-driver-long")
    yield from check_driver(text(spec, "driver"), (*_SPEC, "driver"), rules)
    yield from _check_pool(struct(spec, "pool"), (*_SPEC, "pool"))
    yield from _check_nodes(spec)
    yield from _check_contents(spec, context)


def slice_warnings(resource_slice: Mapping[str, Any]) -> tuple[str, ...]:
    """What the server accepts but warns about."""
    driver = text(struct(resource_slice, "spec"), "driver")
    return () if driver == lower(driver) else (f"spec.driver: {driver!r} should be lower case",)


def _check_pool(pool: Mapping[str, Any], at: Path) -> Violations:
    yield from check_pool(
        text(pool, "name"), (*at, "name"), ("pool-name-missing", "pool-name-invalid", "pool-name-long")
    )
    count = pool.get("resourceSliceCount") or 0
    if count <= 0:
        message = f"must be at least 1, not {count}"
        yield violation((*at, "resourceSliceCount"), INVALID, "pool-count", message)
    generation = pool.get("generation") or 0
    if generation < 0:
        yield violation((*at, "generation"), INVALID, "pool-generation", f"must not be negative, as {generation} is")


def _check_nodes(spec: Mapping[str, Any]) -> Violations:
    name, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if name is not None:
        at = (*_SPEC, "nodeName")
        if name:
            yield from check_format(name, at, "slice-node-name-invalid", subdomain_problems)
        else:
            yield violation(at, INVALID, "slice-node-name-empty", "must not be empty where it is set")
    if selector is not None:
        at = (*_SPEC, "nodeSelector")
        yield from check_node_selector(selector, at)
        terms = selector.get("nodeSelectorTerms") or ()
        if len(terms) != 1:
            message = f"must have exactly one term, not {len(terms)}"
            yield violation((*at, "nodeSelectorTerms"), INVALID, "node-selector-terms", message)
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field) is False:
            yield violation((*_SPEC, field), INVALID, "slice-bool-false", "must be true where it is set")
    given = [field for field in _NODE_FIELDS if spec.get(field) or (field == "nodeSelector" and selector is not None)]
    if not given:
        yield missing(_SPEC, "slice-node-missing", f"must have one of {', '.join(_NODE_FIELDS)}")
    elif len(given) > 1:
        message = f"has {' and '.join(given)}; only one of them may be set"
        yield violation(_SPEC, INVALID, "slice-node-multiple", message)


def _check_contents(spec: Mapping[str, Any], context: ServerContext) -> Violations:
    devices, sets = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and sets is not None and context.release.at_least(35):
        message = "has devices and sharedCounters, which must be in different slices"
        yield violation(_SPEC, INVALID, "devices-and-counters", message)
    per_device = spec.get("perDeviceNodeSelection") is True

    def check(device: Mapping[str, Any] | None, at: Path) -> Violations:
        return check_device(device or {}, at, per_device, context)

    most = COSTLY_DEVICES_MAX if _is_costly(devices or (), context) else limit("ResourceSliceSpec", "devices")
    rules = ("devices-too-many", "device-name-duplicate")
    yield from check_set(devices, (*_SPEC, "devices"), most, rules, check, _name)
    yield from check_counter_sets(sets, (*_SPEC, "sharedCounters"), context)


def _name(raw: Mapping[str, Any] | None) -> str:
    return text(raw, "name")


def _is_costly(devices: Any, context: ServerContext) -> bool:
    if not context.release.at_least(35):
        return False
    return any(
        device and (device.get("taints") or device.get("consumesCounters") or _has_lists(device)) for device in devices
    )


def _has_lists(device: Mapping[str, Any]) -> bool:
    attributes = device.get("attributes") or {}
    return any((attribute or {}).get(name) is not None for attribute in attributes.values() for name in LIST_VALUES)
