"""ResourceSlice: the spec, in v1's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.admission.server.counters import check_consumed_together, check_counter_sets, sets_of
from kubectl_dra.admission.server.devices import LIST_VALUES, check_device
from kubectl_dra.admission.server.metadata import check_generation, check_metadata
from kubectl_dra.admission.server.model import (
    INVALID,
    Key,
    ServerContext,
    Violations,
    beyond_limit,
    check_set,
    missing,
    struct,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_driver,
    check_format,
    check_fully_qualified,
    check_length,
    check_pool,
    check_rows,
    lower,
    subdomain_problems,
)
from kubectl_dra.admission.server.selectors import check_nodes
from kubectl_dra.api.behaviour import COUNTERS_APART, FEWER_COSTLY_DEVICES
from kubectl_dra.api.dra_fields import limit
from kubectl_dra.api.limits import MAX_POOL
from kubectl_dra.api.schema import FieldPath

COSTLY_DEVICES_MAX: Final = 64
"""The limit if any device has taints, consumes counters or has a list attribute."""
_SPEC: Final[FieldPath] = ("spec",)
_NODE_FIELDS: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")


def check_slice(resource_slice: Mapping[str, Any], context: ServerContext) -> Violations:
    """A ResourceSlice to be created."""
    yield from check_metadata(resource_slice.get("metadata"), subdomain_problems, namespaced=False, context=context)
    spec = struct(resource_slice, "spec")
    rules = ("slice-driver-missing", "slice-driver-invalid", "slice-driver-long")
    yield from check_driver(text(spec, "driver"), (*_SPEC, "driver"), rules, release=context.release)
    yield from _check_pool(struct(spec, "pool"), (*_SPEC, "pool"))
    if context.old is not None:
        yield from _check_fixed(spec, struct(context.old, "spec"))
    needed = f"must have one of {', '.join(_NODE_FIELDS)}"
    yield from check_nodes(spec, _SPEC, _NODE_FIELDS, "slice-node", needed, one_term=True)
    yield from _check_contents(spec, context)


def _check_fixed(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Violations:
    """What cannot change in a stored slice."""
    pools = (text(struct(either, "pool"), "name") for either in (spec, old))
    drivers = (text(either, "driver") for either in (spec, old))
    nodes = (either.get("nodeName") for either in (spec, old))
    for at, (now, before) in ((("pool", "name"), pools), (("driver",), drivers), (("nodeName",), nodes)):
        if now != before:
            yield violation((*_SPEC, *at), INVALID, "slice-immutable", f"cannot be changed from {before!r}")


def slice_warnings(resource_slice: Mapping[str, Any]) -> tuple[str, ...]:
    """What the server accepts but warns about."""
    driver = text(struct(resource_slice, "spec"), "driver")
    return () if driver == lower(driver) else (f"spec.driver: {driver!r} should be lower case",)


def _check_pool(pool: Mapping[str, Any], at: FieldPath) -> Violations:
    yield from check_pool(
        text(pool, "name"), (*at, "name"), ("pool-name-missing", "pool-name-invalid", "pool-name-long")
    )
    count = pool.get("resourceSliceCount") or 0
    if count <= 0:
        is_set = pool.get("resourceSliceCount") is not None
        message = f"must be at least 1, not {count}" if is_set else "is not set; it must be at least 1"
        yield violation((*at, "resourceSliceCount"), INVALID, "pool-count", message)
    generation = pool.get("generation") or 0
    if generation < 0:
        yield violation((*at, "generation"), INVALID, "pool-generation", f"must not be negative, as {generation} is")


def _check_contents(spec: Mapping[str, Any], context: ServerContext) -> Violations:
    devices, sets = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and sets is not None and context.release in COUNTERS_APART:
        message = "has devices and sharedCounters, which must be in different slices"
        yield violation(_SPEC, INVALID, "devices-and-counters", message)
    per_device = spec.get("perDeviceNodeSelection") is True
    known = sets_of(spec)
    stored = {_name(device): device or {} for device in reversed(struct(context.old, "spec").get("devices") or ())}

    def check(device: Mapping[str, Any] | None, at: FieldPath) -> Violations:
        return check_device(device or {}, at, per_device, known, context, stored.get(_name(device)))

    most = COSTLY_DEVICES_MAX if _is_costly(devices or (), context) else limit("ResourceSliceSpec", "devices")
    rules = ("devices-too-many", "device-name-duplicate")
    yield from check_set(devices, (*_SPEC, "devices"), most, rules, check, context, named="name")
    yield from beyond_limit(devices, (*_SPEC, "devices"), most, check, context)
    yield from check_consumed_together(devices, (*_SPEC, "devices"), context)
    yield from check_counter_sets(sets, (*_SPEC, "sharedCounters"), context)
    yield from _check_partition_type(spec, context)
    yield from check_skipped(spec, _SPEC, "ResourceSliceSpec", context)


def _check_partition_type(spec: Mapping[str, Any], context: ServerContext) -> Violations:
    """``partitionTypeAttribute``: an attribute that every device with counters has, as a string."""
    name = spec.get("partitionTypeAttribute")
    if name is None:
        return
    at, rule = (*_SPEC, "partitionTypeAttribute"), "partition-type"
    malformed = tuple(check_fully_qualified(name, at, (rule, rule), release=context.release))
    yield from malformed
    consumers = [
        (index, device)
        for index, device in enumerate(spec.get("devices") or ())
        if (device or {}).get("consumesCounters")
    ]
    if not consumers:
        yield violation(at, INVALID, rule, "needs devices that consume counters")
        return
    if malformed:
        return
    bare = name.removeprefix(f"{text(spec, 'driver')}/")
    for index, device in consumers:
        attributes = device.get("attributes") or {}
        where = (*_SPEC, "devices", index, "attributes", Key(name))
        attribute = attributes.get(name, attributes.get(bare))
        if attribute is None and name not in attributes and bare not in attributes:
            yield missing(where, rule, "must be set, as partitionTypeAttribute names it")
        elif (attribute or {}).get("string") is None:
            yield violation(where, INVALID, rule, "must be a string, as partitionTypeAttribute names it")


def check_skipped(holder: Mapping[str, Any], at: FieldPath, struct: str, context: ServerContext) -> Violations:
    """What rows say of a slice or of an allocated device, and how its ``skipNodeOperations`` go together."""
    yield from check_rows(holder, at, struct, context)
    skipped = set(holder.get("skipNodeOperations") or ())
    if "NodePrepareResources" in skipped and not skipped & {"NodeUnprepareResources", "*"}:
        message = "NodePrepareResources is skipped only together with NodeUnprepareResources"
        yield violation((*at, "skipNodeOperations"), INVALID, "skip-node-operations", message)


def _name(raw: Mapping[str, Any] | None) -> str:
    return text(raw, "name")


def _is_costly(devices: Any, context: ServerContext) -> bool:
    if context.release not in FEWER_COSTLY_DEVICES:
        return False
    return any(
        device and (device.get("taints") or device.get("consumesCounters") or _has_lists(device)) for device in devices
    )


def _has_lists(device: Mapping[str, Any]) -> bool:
    attributes = device.get("attributes") or {}
    return any((attribute or {}).get(name) is not None for attribute in attributes.values() for name in LIST_VALUES)


# ResourcePoolStatusRequest.

LIMIT_MAX: Final = 1000


def check_pool_request(request: Mapping[str, Any], context: ServerContext) -> Violations:
    """A ResourcePoolStatusRequest to be created; its status does not matter then."""
    yield from check_metadata(request.get("metadata"), subdomain_problems, namespaced=False, context=context)
    yield from check_generation(request.get("metadata"))
    spec = struct(request, "spec")
    driver, pool, limit = text(spec, "driver"), spec.get("poolName"), spec.get("limit")
    if not driver:
        yield missing(("spec", "driver"), "pool-request-driver")
    else:
        # Compared without regard to case, for which these two count as letters.
        folded = driver.translate({0x212A: "k", 0x17F: "s"})
        for problem in subdomain_problems(folded.lower() if folded.isascii() else folded):
            yield violation(("spec", "driver"), INVALID, "pool-request-driver", f"{driver!r} {problem}")
    if pool is not None:
        yield from check_length(pool, ("spec", "poolName"), MAX_POOL, "pool-request-pool")
        for part in pool.split("/"):
            yield from check_format(part, ("spec", "poolName"), "pool-request-pool", subdomain_problems)
    if limit is not None and not 1 <= limit <= LIMIT_MAX:
        message = f"must be from 1 to {LIMIT_MAX}, not {limit}"
        yield violation(("spec", "limit"), INVALID, "pool-request-limit", message)
    attribute = spec.get("defaultPartitionTypeAttribute")
    if attribute is not None and context.on("DRAPartitionableDevicesType"):
        at, rules = ("spec", "defaultPartitionTypeAttribute"), ("pool-request-attribute",) * 2
        yield from check_fully_qualified(attribute, at, rules, release=context.release)
