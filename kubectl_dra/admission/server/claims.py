"""ResourceClaim and ResourceClaimTemplate: the spec, in v1's shape, after defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final

from kubectl_dra.admission.server.classes import check_config, check_toleration
from kubectl_dra.admission.server.metadata import (
    check_admin_access,
    check_generation,
    check_metadata,
    check_template_metadata,
)
from kubectl_dra.admission.server.model import (
    FORBIDDEN,
    INVALID,
    ServerContext,
    Violation,
    Violations,
    check_list,
    check_set,
    is_declared,
    missing,
    same_field,
    struct,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_format,
    check_fully_qualified,
    check_required,
    check_rows,
    label_problems,
    subdomain_problems,
    unsupported,
)
from kubectl_dra.admission.server.selectors import check_expression, check_selectors, derived_cost
from kubectl_dra.api.behaviour import BOTH_KINDS_READ, DISTINCT_READ_BESIDE_MATCH, STORED_UNREAD
from kubectl_dra.api.dra_fields import limit, values_of
from kubectl_dra.api.limits import MAX_EXPRESSION_COST, MAX_REQUESTS
from kubectl_dra.api.schema import FieldPath

# Attributes that a request derives from those of a device (alpha in 1.37).

_RULE: Final = "derived-attribute"
Used = Mapping[str, frozenset[str]]
"""The attributes in constraints, by the request that they are for: a name, ``name/alternative``, or "" for all."""


def used_by_constraints(devices: Mapping[str, Any]) -> Used:
    """The attributes that the constraints of a claim compare."""
    attributes: dict[str, set[str]] = {}
    for constraint in devices.get("constraints") or ():
        constraint = constraint or {}
        match, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
        name = distinct if match is None else match
        if name is not None:
            for request in constraint.get("requests") or ("",):
                attributes.setdefault(request or "", set()).add(name)
    return {request: frozenset(names) for request, names in attributes.items()}


def check_derived_attributes(
    attributes: Any, at: FieldPath, request: str, used: Used, context: ServerContext
) -> Violations:
    """``derivedAttributes`` of a request; ``request`` is its name, or ``name/alternative``."""
    targets = ("", request, request.partition("/")[0])
    compared = frozenset().union(*(used.get(target, frozenset()) for target in targets))

    def check(attribute: Mapping[str, Any] | None, at: FieldPath) -> Violations:
        if name := text(attribute, "name"):
            yield from check_fully_qualified(name, (*at, "name"), (_RULE, _RULE), release=context.release)
        else:
            yield missing((*at, "name"), _RULE)
        if not text(attribute, "expression"):
            yield missing((*at, "expression"), _RULE)

    most = limit("ExactDeviceRequest", "derivedAttributes")
    yield from check_set(attributes, at, most, (_RULE, _RULE), check, context, key=_name)
    # The server looks at these in a list that is too long, too.
    for index, attribute in enumerate(attributes or ()):
        name, expression = text(attribute, "name"), text(attribute, "expression")
        if name and name not in compared:
            message = f"no constraint of this request compares {name!r}"
            yield violation((*at, index, "name"), INVALID, "derived-attribute-unused", message)
        if expression:
            yield from check_expression(expression, (*at, index, "expression"), context, derived=True)


def check_total_cost(requests: Iterable[Any], at: FieldPath, context: ServerContext) -> Violations:
    """The derived attributes of a claim's requests, ``at`` its devices, may not cost too much together."""
    total = 0
    for request in requests:
        exactly, alternatives = (request or {}).get("exactly"), (request or {}).get("firstAvailable") or ()
        # Nothing inside a request with both is compiled.
        parts = () if exactly is not None and alternatives else (exactly, *alternatives)
        for attribute in (derived for part in parts for derived in (part or {}).get("derivedAttributes") or ()):
            # The server's sum of 64 bits starts again at 0.
            total = (total + derived_cost(text(attribute, "expression"), context)) % 2**64
    if total > MAX_EXPRESSION_COST:
        message = f"derived attributes may cost {total} together in the worst case, more than {MAX_EXPRESSION_COST}"
        yield violation(at, FORBIDDEN, "derived-attribute-cost", message)


_ATTRIBUTE: Final = ("constraint-attribute-format", "constraint-attribute-long")
IMMUTABLE: Final = "cannot be changed; delete the object and create it again"
RequestNames = Mapping[str, frozenset[str]]
"""The requests of a claim, each with the names of its subrequests."""


def check_claim(claim: Mapping[str, Any], context: ServerContext) -> Violations:
    """Check a ResourceClaim to be created. Its status is ignored."""
    spec = struct(claim, "spec")
    if context.old is None:
        yield from check_admin_access(spec, context)
    yield from check_metadata(claim.get("metadata"), subdomain_problems, namespaced=True, context=context)
    if context.old is None:
        yield from check_generation(claim.get("metadata"))
    elif not same_field(claim, context.old, "ResourceClaim", "spec"):
        yield violation(("spec",), INVALID, "spec-immutable", IMMUTABLE)
    if context.old is None or context.release not in STORED_UNREAD:
        yield from _check_devices(struct(spec, "devices"), ("spec", "devices"), context)


def check_template(template: Mapping[str, Any], context: ServerContext) -> Violations:
    """A ResourceClaimTemplate to be created."""
    spec = struct(template, "spec")
    claim_spec = struct(spec, "spec")
    if context.old is None:
        yield from check_admin_access(claim_spec, context, ("spec",))
    yield from check_metadata(template.get("metadata"), subdomain_problems, namespaced=True, context=context)
    if context.old is None:
        yield from check_generation(template.get("metadata"))
    elif not same_field(template, context.old, "ResourceClaimTemplate", "spec"):
        yield violation(("spec",), INVALID, "spec-immutable", IMMUTABLE)
    yield from check_template_metadata(spec.get("metadata"), ("spec", "metadata"))
    devices, at = struct(claim_spec, "devices"), ("spec", "spec", "devices")
    violations = tuple(_check_devices(devices, at, context))
    yield from violations
    if context.old is not None and context.release not in STORED_UNREAD:
        # Servers of 1.34 check the new spec once more, as if it were stored.
        known = {(violation.field, violation.reason) for violation in violations}
        again = _check_devices(devices, at, context.as_stored())
        yield from (violation for violation in again if (violation.field, violation.reason) not in known)


def _check_devices(devices: Mapping[str, Any], at: FieldPath, context: ServerContext) -> Violations:
    names = request_names(devices)
    request = partial(_check_request, used=used_by_constraints(devices), context=context)
    constraint = partial(_check_constraint, names=names, context=context)
    config = partial(check_claim_config, names=names, context=context)
    rules = ("requests-too-many", "request-name-duplicate")
    yield from check_set(
        devices.get("requests"), (*at, "requests"), MAX_REQUESTS, rules, request, context, named="name"
    )
    for name, check in (("constraints", constraint), ("config", config)):
        most = limit("DeviceClaim", name)
        yield from check_list(devices.get(name), (*at, name), most, f"{name}-too-many", check, context)
    yield from check_total_cost(devices.get("requests") or (), at, context)


def _name(raw: Mapping[str, Any] | None) -> str:
    return text(raw, "name")


def request_names(devices: Mapping[str, Any]) -> RequestNames:
    """The names of a claim's requests and their alternatives."""
    return {
        _name(request): frozenset(_name(alternative) for alternative in (request or {}).get("firstAvailable") or ())
        for request in devices.get("requests") or ()
    }


def check_claim_config(
    raw: Mapping[str, Any] | None, at: FieldPath, names: RequestNames, context: ServerContext
) -> Violations:
    """An entry of ``config`` of a claim, and the requests that it is for."""
    yield from check_references(raw, at, "config", names, context)
    yield from check_config(raw, at, context)


def _check_request(raw: Mapping[str, Any] | None, at: FieldPath, used: Used, context: ServerContext) -> Violations:
    request = raw or {}
    yield from check_format(_name(request), (*at, "name"), "request-name-invalid", label_problems)
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    inside = chain(_check_alternatives(request, at, used, context), _check_exact(request, at, used, context))
    if exactly is not None and alternatives:
        message = "has both exactly and firstAvailable; only one of them may be set"
        yield violation(at, INVALID, "request-kind-both", message)
        # The content was checked up to 1.34. Since 1.37 it is again, by the rules that the API's types declare.
        if context.is_declarative():
            yield from (violation for violation in inside if is_declared(violation))
        elif context.release in BOTH_KINDS_READ:
            yield from inside
    elif exactly is not None or alternatives:
        yield from inside
    else:
        yield missing(at, "request-kind-missing", "must have either exactly or firstAvailable")


def _check_exact(request: Mapping[str, Any], at: FieldPath, used: Used, context: ServerContext) -> Violations:
    exactly = request.get("exactly")
    if exactly is not None:
        yield from _check_device_request(exactly, (*at, "exactly"), _name(request), used, context)


def _check_alternatives(request: Mapping[str, Any], at: FieldPath, used: Used, context: ServerContext) -> Violations:
    def subrequest(raw: Mapping[str, Any] | None, at: FieldPath) -> Violations:
        yield from check_format(_name(raw), (*at, "name"), "sub-request-name-invalid", label_problems)
        yield from _check_device_request(raw or {}, at, f"{_name(request)}/{_name(raw)}", used, context)

    rules = ("sub-requests-too-many", "sub-request-name-duplicate")
    most, alternatives = limit("DeviceRequest", "firstAvailable"), request.get("firstAvailable")
    yield from check_set(alternatives, (*at, "firstAvailable"), most, rules, subrequest, context, named="name")


def _check_device_request(
    request: Mapping[str, Any], at: FieldPath, name: str, used: Used, context: ServerContext
) -> Violations:
    """Check what ``exactly`` and a subrequest have in common; ``name`` is how constraints refer to it."""
    class_rules = ("class-name-missing", "class-name-invalid")
    yield from check_required(
        text(request, "deviceClassName"), (*at, "deviceClassName"), class_rules, subdomain_problems
    )
    yield from check_selectors(request.get("selectors"), (*at, "selectors"), "selectors-too-many", context)
    yield from _check_count(text(request, "allocationMode"), request.get("count") or 0, at)
    for index, toleration in enumerate(request.get("tolerations") or ()):
        yield from check_toleration(toleration, (*at, "tolerations", index), context)
    attributes, where = request.get("derivedAttributes"), (*at, "derivedAttributes")
    yield from check_derived_attributes(attributes, where, name, used, context)
    yield from check_rows(request, at, "ExactDeviceRequest", context)


def _check_count(mode: str, count: int, at: FieldPath) -> Violations:
    if mode == "All":
        if count:
            yield violation((*at, "count"), INVALID, "count-with-all", "must not be set with allocationMode All")
    elif mode == "ExactCount":
        if count <= 0:
            yield violation((*at, "count"), INVALID, "count-not-positive", f"must be at least 1, not {count}")
    else:
        rule = "allocation-mode-unknown" if mode else "allocation-mode-missing"
        yield unsupported(mode, (*at, "allocationMode"), rule, values_of("allocationMode"))


def _check_constraint(
    raw: Mapping[str, Any] | None, at: FieldPath, names: RequestNames, context: ServerContext
) -> Violations:
    constraint = raw or {}
    yield from check_references(constraint, at, "constraint", names, context)
    given = [name for name in ("matchAttribute", "distinctAttribute") if constraint.get(name) is not None]
    for name in given if context.release in DISTINCT_READ_BESIDE_MATCH else given[:1]:
        yield from check_fully_qualified(constraint[name], (*at, name), _ATTRIBUTE, release=context.release)
    if given:
        return
    if context.on("DRAConsumableCapacity"):
        yield missing(at, "constraint-attribute-missing", "must have matchAttribute or distinctAttribute")
    else:
        yield missing((*at, "matchAttribute"), "constraint-attribute-missing")


def check_references(
    raw: Mapping[str, Any] | None, at: FieldPath, rule: str, names: RequestNames, context: ServerContext
) -> Violations:
    """Check the ``requests`` of a constraint or config; ``rule`` is the prefix of the rules' names."""
    reference = partial(check_reference, rule=f"{rule}-request-unknown", names=names)
    rules = (f"{rule}-requests-too-many", f"{rule}-request-duplicate")
    yield from check_set((raw or {}).get("requests"), (*at, "requests"), MAX_REQUESTS, rules, reference, context)


def check_reference(name: str | None, at: FieldPath, rule: str, names: RequestNames) -> Violations:
    """A reference to a request or to one of its alternatives."""
    name = name or ""
    parts = name.split("/")
    if len(parts) > 2:
        yield _unknown_request(name, at, rule, names)
        return
    for part in parts:
        yield from check_format(part, at, rule, label_problems)
    if parts[0] not in names or (len(parts) == 2 and parts[1] not in names[parts[0]]):
        yield _unknown_request(name, at, rule, names)


def _unknown_request(name: str, at: FieldPath, rule: str, names: RequestNames) -> Violation:
    owner = next((request for request, alternatives in names.items() if name in alternatives), None)
    hint = f"; the subrequest is written {owner}/{name}" if owner is not None else ""
    return violation(at, INVALID, rule, f"{name!r} is not a request of this claim{hint}")
