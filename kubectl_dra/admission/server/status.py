"""The status of ResourceClaims and DeviceTaintRules, as the API server validates it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from ipaddress import IPv6Address, ip_interface
from typing import Any, Final

from kubectl_dra.admission.server.claims import RequestNames, check_claim_config, check_reference, request_names
from kubectl_dra.admission.server.classes import check_object, check_toleration
from kubectl_dra.admission.server.devices import check_binding
from kubectl_dra.admission.server.metadata import check_admin_allocation, check_metadata
from kubectl_dra.admission.server.model import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    TOO_LONG,
    TOO_MANY,
    ServerContext,
    Violations,
    check_list,
    check_set,
    missing,
    same_field,
    size,
    struct,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    Format,
    check_driver,
    check_format,
    check_pool,
    check_required,
    check_required_choice,
    label_key_problems,
    label_problems,
    subdomain_problems,
    unsupported,
)
from kubectl_dra.admission.server.selectors import check_node_selector
from kubectl_dra.admission.server.slices import check_skipped
from kubectl_dra.api.dra_fields import limit
from kubectl_dra.api.schema import FieldPath

# The status of a DeviceTaintRule, and conditions in any status.

CONDITIONS_MAX: Final = 8
_RULE: Final = "condition"
_STATES: Final = ("False", "True", "Unknown")
_REASON: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_MAX: Final = 1024
_MESSAGE_MAX: Final = 32 * 1024


def check_rule_status(rule: Mapping[str, Any], context: ServerContext) -> Violations:
    """The new status of a DeviceTaintRule."""
    at: FieldPath = ("status", "conditions")
    meta = (context.old or {}).get("metadata")
    yield from check_metadata(meta, subdomain_problems, namespaced=False, context=context)
    conditions = struct(rule, "status").get("conditions") or ()
    yield from check_conditions(conditions, at, context)
    if len(conditions) > CONDITIONS_MAX:
        message = f"has {len(conditions)} conditions, at most {CONDITIONS_MAX} are allowed"
        yield violation(at, TOO_MANY, _RULE, message)


def check_conditions(conditions: Sequence[Any], at: FieldPath, context: ServerContext) -> Violations:
    """Conditions of a status."""
    repeated = () if context.is_declarative() else ("type",)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        condition, here = condition or {}, (*at, index)
        kind = text(condition, "type")
        if kind in seen:
            yield violation((*here, *repeated), DUPLICATE, _RULE, f"{kind!r} is already in the list")
        seen.add(kind)
        yield from _check_condition(condition, here, context)


def _check_condition(condition: Mapping[str, Any], at: FieldPath, context: ServerContext) -> Violations:
    # Up to 1.36 what is empty is wrong like any other text.
    check = check_required if context.is_declarative() else _check_any
    yield from check(text(condition, "type"), (*at, "type"), (_RULE, _RULE), label_key_problems)
    if not text(condition, "status") and context.is_declarative():
        yield missing((*at, "status"), _RULE)
    elif text(condition, "status") not in _STATES:
        yield unsupported(text(condition, "status"), (*at, "status"), _RULE, _STATES)
    if (condition.get("observedGeneration") or 0) < 0:
        yield violation((*at, "observedGeneration"), INVALID, _RULE, "must not be negative")
    if not condition.get("lastTransitionTime"):
        yield missing((*at, "lastTransitionTime"), _RULE)
    reason = text(condition, "reason")
    if not reason:
        yield missing((*at, "reason"), _RULE)
    elif not _REASON.fullmatch(reason):
        message = f"{reason!r} must begin with a letter and have letters, digits, '_', ',' and ':'"
        yield violation((*at, "reason"), INVALID, _RULE, message)
    if len(reason) > _REASON_MAX:
        yield violation((*at, "reason"), TOO_LONG, _RULE, f"must not have more than {_REASON_MAX} characters")
    if len(text(condition, "message")) > _MESSAGE_MAX:
        yield violation((*at, "message"), TOO_LONG, _RULE, f"must not have more than {_MESSAGE_MAX} characters")


def _check_any(value: str, at: FieldPath, rules: tuple[str, str], problems: Format) -> Violations:
    return check_format(value, at, rules[1], problems)


_STATUS: Final[FieldPath] = ("status",)
_ALLOCATION: Final[FieldPath] = ("status", "allocation")
_RESULT: Final = "allocation-result"
_DEVICE: Final = "device-status"
_SOURCES: Final = ("FromClaim", "FromClass")
_IPS_MAX: Final = 16
_NETWORK_MAX: Final = {"interfaceName": 256, "hardwareAddress": 128}
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check_claim_status(claim: Mapping[str, Any], context: ServerContext) -> Violations:
    """A new status of a stored claim, which is ``context.old``."""
    old = context.old or {}
    status, before = struct(claim, "status"), struct(old, "status")
    allocation, earlier = status.get("allocation"), before.get("allocation")
    yield from check_admin_allocation(allocation, earlier, context)
    yield from check_metadata(old.get("metadata"), subdomain_problems, namespaced=True, context=context)
    yield from _check_consumers(status, before, old, context)
    known = frozenset(_identity(result) for result in _results(allocation))
    device = partial(_check_device, known=known, context=context)
    at, rules = (*_STATUS, "devices"), (_DEVICE, _DEVICE)
    yield from check_set(status.get("devices"), at, None, rules, device, context, named="deviceID", key=_identity)
    if allocation is None:
        return
    if earlier is None:
        spec = struct(struct(old, "spec"), "devices")
        yield from _check_allocation(allocation, request_names(spec), context)
    elif not same_field(status, before, "ResourceClaimStatus", "allocation"):
        yield violation(_ALLOCATION, INVALID, "allocation-immutable", "cannot be changed, only removed")


def without_deallocated(claim: dict[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """The claim as the server takes it: without statuses of devices that the claim had and no longer has."""
    status = claim.get("status")
    if not status:
        return claim
    had = {_identity(result) for result in _results(struct(old, "status").get("allocation"))}
    gone = had - {_identity(result) for result in _results(status.get("allocation"))}
    kept = [device for device in status.get("devices") or () if _identity(device) not in gone]
    return {**claim, "status": {**status, "devices": kept}}


def _results(allocation: Mapping[str, Any] | None) -> Sequence[Any]:
    return struct(allocation, "devices").get("results") or ()


def _identity(device: Mapping[str, Any] | None) -> tuple[str | None, ...]:
    """What names an allocated device: driver, pool, device, and its share where it is shared."""
    return (*(text(device, name) for name in ("driver", "pool", "device")), (device or {}).get("shareID"))


def _check_consumers(
    status: Mapping[str, Any], before: Mapping[str, Any], old: Mapping[str, Any], context: ServerContext
) -> Violations:
    at, rule = (*_STATUS, "reservedFor"), "reserved-for"
    consumers = status.get("reservedFor")

    def consumer(raw: Mapping[str, Any] | None, at: FieldPath) -> Violations:
        for name in ("resource", "name", "uid"):
            if not text(raw, name):
                yield missing((*at, name), rule)

    most = limit("ResourceClaimStatus", "reservedFor")
    yield from check_set(consumers, at, most, (rule, rule), consumer, context, named="uid")
    if not consumers:
        return
    if status.get("allocation") is None:
        yield violation(at, FORBIDDEN, rule, "needs an allocation")
    elif (old.get("metadata") or {}).get("deletionTimestamp") and any(
        reference not in (before.get("reservedFor") or ()) for reference in consumers
    ):
        yield violation(at, FORBIDDEN, rule, "cannot grow while the claim is being deleted")


def _check_allocation(allocation: Mapping[str, Any], names: RequestNames, context: ServerContext) -> Violations:
    devices, at = struct(allocation, "devices"), (*_ALLOCATION, "devices")
    result = partial(_check_result, names=names, context=context)

    def config(raw: Mapping[str, Any] | None, at: FieldPath) -> Violations:
        yield from check_required_choice(text(raw, "source"), (*at, "source"), _RESULT, _SOURCES)
        yield from check_claim_config(raw, at, names, context)

    most = limit("DeviceAllocationResult", "results")
    yield from check_list(devices.get("results"), (*at, "results"), most, _RESULT, result, context)
    most = limit("DeviceClaim", "config")
    yield from check_list(devices.get("config"), (*at, "config"), 2 * (most or 0), _RESULT, config, context)
    if allocation.get("nodeSelector") is not None:
        yield from check_node_selector(allocation["nodeSelector"], (*_ALLOCATION, "nodeSelector"))


def _check_result(
    raw: Mapping[str, Any] | None, at: FieldPath, names: RequestNames, context: ServerContext
) -> Violations:
    result = raw or {}
    yield from check_reference(text(result, "request"), (*at, "request"), _RESULT, names)
    yield from _check_names(result, at, _RESULT, context)
    yield from check_binding(result, at, context)
    if context.is_declarative():
        for index, toleration in enumerate(result.get("tolerations") or ()):
            yield from check_toleration(toleration, (*at, "tolerations", index), context)
    yield from check_skipped(result, at, "DeviceRequestAllocationResult", context)


def _check_names(device: Mapping[str, Any], at: FieldPath, rule: str, context: ServerContext) -> Violations:
    """The names of an allocated device."""
    yield from check_driver(text(device, "driver"), (*at, "driver"), (rule,) * 3, release=context.release)
    yield from check_pool(text(device, "pool"), (*at, "pool"), (rule,) * 3)
    yield from check_format(text(device, "device"), (*at, "device"), rule, label_problems)
    share = device.get("shareID")
    if share is not None and not _UUID.fullmatch(share):
        yield violation((*at, "shareID"), INVALID, rule, f"{share!r} is not a UUID in lower case")


def _check_device(
    raw: Mapping[str, Any] | None, at: FieldPath, known: frozenset[tuple[str | None, ...]], context: ServerContext
) -> Violations:
    """What a driver reports of a device."""
    device = raw or {}
    yield from _check_names(device, at, _DEVICE, context)
    if _identity(device) not in known:
        yield violation(at, INVALID, "device-status-unknown", "is not an allocated device of the claim")
    conditions, where = device.get("conditions") or (), (*at, "conditions")
    if len(conditions) > CONDITIONS_MAX:
        message = f"has {len(conditions)} conditions, at most {CONDITIONS_MAX} are allowed"
        yield violation(where, TOO_MANY, _DEVICE, message)
    yield from check_conditions(conditions, where, context)
    if "data" in device and device["data"] is not None:
        yield from check_object(device["data"], (*at, "data"), _DEVICE)
    yield from _check_network(device.get("networkData") or {}, (*at, "networkData"), context)


def _check_network(network: Mapping[str, Any], at: FieldPath, context: ServerContext) -> Violations:
    for name, most in _NETWORK_MAX.items():
        if size(text(network, name)) > most:
            yield violation((*at, name), TOO_LONG, _DEVICE, f"must not have more than {most} bytes")

    def address(value: str | None, at: FieldPath) -> Violations:
        if not _is_canonical(value or ""):
            message = f"{value!r} is not an address in its shortest form with a prefix, such as 10.0.0.1/24"
            yield violation(at, INVALID, _DEVICE, message)

    rules = (_DEVICE, _DEVICE)
    yield from check_set(network.get("ips"), (*at, "ips"), _IPS_MAX, rules, address, context, key=lambda value: value)


def _is_canonical(value: str) -> bool:
    """Whether a text is an address with a prefix, as Go would print it."""
    try:
        interface = ip_interface(value)
    except ValueError:
        return False
    address = interface.ip
    mapped = isinstance(address, IPv6Address) and (address.ipv4_mapped is not None or address.scope_id is not None)
    return not mapped and value == f"{address.compressed}/{interface.network.prefixlen}"
