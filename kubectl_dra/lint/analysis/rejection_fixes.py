"""Fixes for what the API server rejects: where a field has moved, how a value is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from kubectl_dra.admission.server.classes import is_native_resource
from kubectl_dra.admission.server.decoding import closest, decoding_errors
from kubectl_dra.admission.server.model import BAD_REQUEST, in_v1beta1
from kubectl_dra.admission.server.resources import is_huge_page
from kubectl_dra.api.dra_fields import KINDS, fields, fields_at, values_of
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.lint.analysis.constraint_attributes import attribute_fix
from kubectl_dra.lint.analysis.corrections import cheaper, device_requests, expression_remedy, meant_name
from kubectl_dra.lint.analysis.server_verdict import gated_fields, real_version, version_fix
from kubectl_dra.lint.analysis.workload_fixes import key_fix, resource_fix, selector_fix
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import AsWritten, Fix, Safety
from kubectl_dra.manifests.changes import Change, Delete, Rename, Set, Unwrap, Wrap, changed, value_at
from kubectl_dra.text import edit_distance, join, nearest

if TYPE_CHECKING:
    from kubectl_dra.admission.server.model import Violation

_FLAT: Final = tuple(fields("ExactDeviceRequest"))
_DEVICE_PARTS: Final = ("requests", "constraints", "config")
_VALUE_NAMES: Final = {
    "stringValue": "string",
    "intValue": "int",
    "boolValue": "bool",
    "versionValue": "version",
    "integer": "int",
    "boolean": "bool",
    "str": "string",
    "semver": "version",
}
_ADVICE: Final[Mapping[str, str]] = {
    "partitionRequest": (
        "There is no such field. A partition is a separate device. Ask for it by its class (for MIG mig.nvidia.com) "
        'and a selector such as device.attributes["gpu.nvidia.com"].profile == "2g.20gb". For a share of a device that '
        "allows several allocations, use capacity.requests in the request (1.34+)."
    ),
    "deviceRequests": (
        "Write spec.devices.requests; each has a name and exactly: {deviceClassName, count, selectors}, or "
        "firstAvailable, a list of such alternatives in the order of preference."
    ),
    "alternatives": "Write firstAvailable: a list of subrequests in the order of preference.",
    "selector": "Write selectors, a list of {cel: {expression: …}}.",
    "priority": "Write the alternatives in firstAvailable in the order of preference.",
    "parametersRef": "Parameters stand in the claim itself: devices.config[].opaque {driver, parameters}.",
    "parameters": "Parameters stand in the claim itself: devices.config[].opaque {driver, parameters}.",
    "driverName": 'A class chooses its driver by a selector: device.driver == "DRIVER".',
    "structuredParameters": "A class has spec.selectors and spec.config instead.",
    "suitableNodes": "Remove it: the ResourceSlice says which nodes a device can serve.",
    "controller": "Remove it: there are no control-plane controllers any more.",
    "namedResources": "Write devices: a list of {name, attributes, capacity}.",
    "nodeSelector": "Put it into the pod's spec.nodeSelector, or select devices by their attributes.",
    "operator": "Remove it: a constraint is matchAttribute (equal on all) or distinctAttribute (different on all).",
    "adminAccess": "Admin access is for a request without alternatives; those of firstAvailable cannot have it.",
}
_FORMER_CLASS: Final = ("resourceClassName", "resourceClass")
_FLAT_VERSIONS: Final = ("v1beta1", "v1alpha3")
_WITHOUT_REQUESTS: Final = ("DeviceTaintRule", "ResourceSlice")
_WHERE: Final[Mapping[str, str]] = {
    "requests": "It stands in spec.devices.requests.",
    "constraints": "It stands in spec.devices.constraints.",
    "config": "It stands in spec.devices.config.",
    "matchAttribute": "It stands in devices.constraints[].matchAttribute.",
    "firstAvailable": "It stands in devices.requests[].firstAvailable.",
    "exactly": "It stands in devices.requests[].exactly.",
}
_BY_RULE: Final[Mapping[str, str]] = {
    "request-kind-missing": "Add exactly: {deviceClassName: CLASS}, or firstAvailable with alternatives.",
    "request-kind-both": "Keep exactly, or put what it has into firstAvailable as one more alternative.",
    "request-name-duplicate": "Give each request its own name; for more devices of one kind use count.",
    "count-with-all": "Remove count to get all devices, or allocationMode to get that number.",
    "pod-claim-source-none": (
        "Say either resourceClaimName, for a claim that pods share, or resourceClaimTemplateName."
    ),
    "pod-claim-source-both": (
        "Say either resourceClaimName, for a claim that pods share, or resourceClaimTemplateName."
    ),
}
_OF_CLAIMS: Final = ("deviceClassName", "selectors")
"""What the selector of a DeviceTaintRule had besides names, up to 1.34."""
_PRIVILEGES: Final = ("adminAccess",)
"""Fields that take effect only once they are read, and then give access that nobody has yet."""
_INTEGER: Final = re.compile("[0-9]{1,18}")


def remedy(context: Context, violation: Violation) -> Fix | None:
    """The fix for a violation if one is certain, or advice."""
    path = tuple(str(part) if isinstance(part, str) else part for part in violation.path)
    if violation.rule == "unknown-field":
        version = real_version(context)
        return version_fix(version) if version else _unknown_field(context, path)
    if violation.reason == "NotSupported":
        return _member(context.raw, path)
    if violation.reason == BAD_REQUEST:
        return _wrong_type(context.raw, path) or _unquoted(context, path)
    if violation.rule in ("cel-compile", "cel-program", "cel-cost"):
        text = value_at(context.raw, path)
        if violation.rule == "cel-cost":
            return cheaper(text) if isinstance(text, str) else None
        return expression_remedy(context, path, text) if isinstance(text, str) else None
    if violation.rule in ("constraint-request-unknown", "config-request-unknown", "container-claim-unknown"):
        return _lost_in_build(context, violation.rule, path) or meant_name(context.raw, violation)
    if violation.rule == "toleration-exists-value":
        return Fix.guess("Leave value out: Exists matches every value", Delete(path))
    if violation.rule == "constraint-attribute-format":
        name = value_at(context.raw, path)
        return attribute_fix(context, path, name) if isinstance(name, str) else None
    if violation.rule == "quota-key":
        return key_fix(context.raw, path)
    if violation.rule == "ext-resource-limit":
        return _limit(context.raw, violation)
    if fix := selector_fix(context.raw, violation):
        return fix
    if dropped := _dropped(context, violation):
        instead = "deviceClassName" if _is_flat(context) else "exactly"
        return Fix(f"Turn the gate {dropped[1]} on, or write {instead} in its place.")
    if flat := _of_flat_request(context, violation):
        return flat
    return Fix(_BY_RULE[violation.rule]) if violation.rule in _BY_RULE else None


def _lost_in_build(context: Context, rule: str, path: FieldPath) -> Fix | None:
    """What to do where a patch of kustomize took away the claim or request that is named."""
    from kubectl_dra.lint.analysis.kustomized import replaced_list

    of_pod = rule == "container-claim-unknown"
    name = value_at(context.raw, (*path, "name") if of_pod else path)
    if not isinstance(name, str):
        return None
    lost = replaced_list(context.item, "resourceClaims" if of_pod else "requests", name.partition("/")[0])
    return None if lost is None else Fix(lost.advice)


def _limit(raw: Any, violation: Violation) -> Fix:
    """The limit of a device that has only a request, or another request than the limit."""
    if violation.reason != "Required":
        return Fix("Write one number in both; with the limit alone it is the request, too.")
    resources = violation.path[:-1]
    limits, requests = value_at(raw, violation.path) or {}, value_at(raw, (*resources, "requests"))
    exact = [name for name in requests if not is_native_resource(str(name)) or is_huge_page(str(name))]
    lacking = {name: requests[name] for name in exact if name not in limits}
    changes: tuple[Change, ...] = tuple(Set((*violation.path, name), amount) for name, amount in lacking.items())
    if not limits:
        changes = (Set(violation.path, lacking),)
    told = ", ".join(f"{name}: {amount}" for name, amount in lacking.items())
    return Fix.sure(f"Write limits: {{{told}}} beside it", *changes)


def _unknown_field(context: Context, path: FieldPath) -> Fix | None:
    raw = context.raw
    for attempt in _MOVES:
        fix = attempt(raw, path)
        if fix is not None:
            return fix
    name = str(path[-1])
    if name == "deviceRequests" and (exact := device_requests(value_at(raw, path))):
        return exact
    if context.item.kind == "DeviceTaintRule" and path[-2:-1] == ("deviceSelector",) and name in _OF_CLAIMS:
        return Fix("Name the driver, pool or device that is meant; one rule for each.")
    if name in _FORMER_CLASS:
        return Fix(f"Write {_in_request(context, 'deviceClassName')}: a DeviceClass succeeds a ResourceClass.")
    if name in _ADVICE:
        return Fix(_ADVICE[name])
    if name == "exactly" and _is_flat(context):
        return Fix(
            f"In {context.item.version} its fields stand in the request itself; exactly came with v1beta2 and v1."
        )
    if name == "tolerations":
        return Fix("Tolerations belong to a request: devices.requests[].exactly.tolerations.")
    if context.item.kind not in _WITHOUT_REQUESTS:
        if name in _FLAT:
            return Fix(f"It stands in {_in_request(context, name)}.")
        if name in _WHERE:
            return Fix(_WHERE[name])
    return _spelling(context, path)


def _is_flat(context: Context) -> bool:
    """Whether the object is of a version in which the content of ``exactly`` is in the request itself."""
    return context.item.is_dra and context.item.version in _FLAT_VERSIONS


def _in_request(context: Context, name: str) -> str:
    """Where a field of a request stands in the version that is written."""
    return f"devices.requests[].{name}" if _is_flat(context) else f"devices.requests[].exactly.{name}"


def told(context: Context, violation: Violation) -> Violation:
    """A violation with the fields of the version that is written; the server speaks of v1's."""
    # What cannot be decoded is reported as it is written.
    if violation.reason == BAD_REQUEST or violation.rule == "unknown-field":
        return violation
    if _is_flat(context) and violation.rule == "request-kind-both":
        names = join(_beside_alternatives(context, violation))
        violation = replace(violation, message=f"has both {names} and firstAvailable; only one of them may be set")
    if _is_flat(context) and violation.rule == "request-kind-missing":
        violation = replace(violation, message="must have either deviceClassName or firstAvailable")
    if dropped := _dropped(context, violation):
        why = f"{dropped[0]} is dropped, because the gate {dropped[1]} is off"
        violation = replace(violation, message=f"{why}, and the request has nothing else")
    return replace(violation, field=in_v1beta1(violation.field)) if _is_flat(context) else violation


def _dropped(context: Context, violation: Violation) -> tuple[str, str] | None:
    """The alternatives of a request that is refused because a gate drops them, and that gate."""
    path = (*violation.path, "firstAvailable")
    if violation.rule != "request-kind-missing" or not value_at(context.raw, path):
        return None
    off = (gate for at, field in gated_fields(context) if at == path for gate in field.gates)
    return next(((str(path[-1]), gate) for gate in off if gate not in context.features), None)


def _beside_alternatives(context: Context, violation: Violation) -> tuple[str, ...]:
    """The fields of a flat request that stand beside firstAvailable."""
    request = value_at(context.raw, violation.path)
    return tuple(name for name in _FLAT if isinstance(request, dict) and request.get(name) is not None)


def _of_flat_request(context: Context, violation: Violation) -> Fix | None:
    if not _is_flat(context):
        return None
    if violation.rule == "request-kind-missing":
        return Fix("Add deviceClassName: CLASS, or firstAvailable with alternatives.")
    if violation.rule == "request-kind-both":
        names = join(_beside_alternatives(context, violation))
        return Fix(f"Keep {names}, or make one more alternative of it in firstAvailable.")
    return None


def _flat_request(raw: Any, path: FieldPath) -> Fix | None:
    """Flat v1beta1 fields in a request of v1beta2 or v1."""
    if len(path) < 3 or path[-3] != "requests" or path[-1] not in _FLAT:
        return None
    if str(raw.get("apiVersion")).rpartition("/")[2] in _FLAT_VERSIONS:
        # Its release does not have the field yet.
        return None
    holder = value_at(raw, path[:-1])
    if not isinstance(holder, dict) or "exactly" in holder or "firstAvailable" in holder:
        return None
    moved = tuple(key for key in holder if key in _FLAT)
    return Fix.sure(f"Put {', '.join(moved)} under exactly", Wrap(path[:-1], "exactly", moved))


def _beside_cel(raw: Any, path: FieldPath) -> Fix | None:
    """``expression`` one level too high."""
    if path[-1] != "expression" or len(path) < 3 or path[-3] != "selectors":
        return None
    holder = value_at(raw, path[:-1])
    if not isinstance(holder, dict) or holder.get("cel"):
        return None
    if "cel" not in holder:
        return Fix.sure("Put expression under cel", Wrap(path[:-1], "cel", ("expression",)))
    changes: tuple[Change, ...] = (Set((*path[:-1], "cel"), {"expression": holder["expression"]}), Delete(path))
    return Fix.sure("Indent expression: it belongs to cel", *changes)


def _source(raw: Any, path: FieldPath) -> Fix | None:
    """The nesting of a pod's claim names before 1.31."""
    if path[-1] != "source" or len(path) < 3 or path[-3] != "resourceClaims":
        return None
    source = value_at(raw, path)
    if not isinstance(source, dict) or not source:
        return Fix(
            "source is gone since 1.31: write resourceClaimName or resourceClaimTemplateName in the entry itself."
        )
    names = ", ".join(source)
    return Fix.sure(f"Put {names} into the entry itself: source is gone since 1.31", Unwrap(path))


def _basic(raw: Any, path: FieldPath) -> Fix | None:
    """v1beta1's wrapper around the content of a device."""
    if path[-1] != "basic" or len(path) < 3 or path[-3] != "devices":
        return None
    inner = value_at(raw, path)
    holder = value_at(raw, path[:-1])
    if not isinstance(inner, dict) or any(key in holder for key in inner):
        return Fix("In v1beta2 and v1 the fields of basic stand in the device itself.")
    return Fix.sure("Put what is in basic into the device itself", Unwrap(path))


def _by_domain(raw: Any, path: FieldPath) -> Fix | None:
    """Attributes nested by domain, as in CEL. The API wants one key, domain/name."""
    if len(path) < 3 or path[-3] not in ("attributes", "capacity"):
        return None
    domain = path[-2]
    inner = value_at(raw, path[:-1])
    if not isinstance(inner, dict) or not all(isinstance(value, dict) for value in inner.values()):
        return None
    changes: tuple[Change, ...] = tuple(Rename((*path[:-1], str(key)), f"{domain}/{key}") for key in inner)
    changes += (Unwrap(path[:-1]),)
    names = ", ".join(f"{domain}/{key}" for key in inner)
    return Fix.sure(f"Write the domain into the key: {names}", *changes)


def _value_name(raw: Any, path: FieldPath) -> Fix | None:
    """An attribute's value under the name that it has in a Go client."""
    right = _VALUE_NAMES.get(str(path[-1]))
    if right is None or len(path) < 3 or path[-3] != "attributes":
        return None
    return Fix.sure(f"Write {right}", Rename(path, right))


def _without_devices(raw: Any, path: FieldPath) -> Fix | None:
    """requests, constraints and config directly under the claim's spec."""
    if path[-1] not in _DEVICE_PARTS or len(path) < 2 or path[-2] != "spec" or raw.get("kind") == "DeviceClass":
        return None
    spec = value_at(raw, path[:-1])
    moved = tuple(key for key in spec if key in _DEVICE_PARTS)
    if "devices" in spec or "requests" not in moved:
        return None
    return Fix.sure(f"Put {', '.join(moved)} under devices", Wrap(path[:-1], "devices", moved))


def _without_inner_spec(raw: Any, path: FieldPath) -> Fix | None:
    """``devices`` directly under the spec of a template, which has the claim's spec inside its own."""
    if raw.get("kind") != "ResourceClaimTemplate" or path != ("spec", "devices"):
        return None
    if "spec" in raw["spec"]:
        return Fix("Put devices into spec.spec, which is the spec of the claims.")
    return Fix.sure("Put devices under spec.spec, the spec of the claims", Wrap(("spec",), "spec", ("devices",)))


def _amounts_without_requests(raw: Any, path: FieldPath) -> Fix | None:
    """Amounts directly under a request's ``capacity``."""
    if len(path) < 4 or path[-2] != "capacity" or "requests" not in path:
        return None
    holder = value_at(raw, path[:-1])
    moved = tuple(key for key, value in holder.items() if key != "requests" and isinstance(value, str | int | float))
    if path[-1] not in moved:
        return None
    if "requests" in holder:
        return Fix(f"Put {path[-1]} under capacity.requests.")
    return Fix.sure(f"Put {', '.join(moved)} under capacity.requests", Wrap(path[:-1], "requests", moved))


def _template_spec(raw: Any, path: FieldPath) -> Fix | None:
    """The spec inside the spec of a template, in a claim."""
    if raw.get("kind") != "ResourceClaim" or path != ("spec", "spec"):
        return None
    inner, told = value_at(raw, path), "Put what is in spec.spec into spec, or write kind: ResourceClaimTemplate"
    if not isinstance(inner, dict) or any(key in raw["spec"] for key in inner):
        return Fix(f"{told}.")
    return Fix.guess(told, Unwrap(path))


_MOVES: Final[tuple[Callable[[Any, FieldPath], Fix | None], ...]] = (
    _flat_request,
    _beside_cel,
    _source,
    _basic,
    _by_domain,
    _value_name,
    _without_devices,
    _without_inner_spec,
    _amounts_without_requests,
    _template_spec,
)


def _spelling(context: Context, path: FieldPath) -> Fix | None:
    """The field of the same struct that was probably meant."""
    known = fields_at(context.item.kind, context.item.version, path[:-1])
    if path[-2:-1] == ("metadata",):
        known = fields("ObjectMeta")
    holder = value_at(context.raw, path[:-1])
    if not known or not isinstance(holder, dict):
        return None
    proposed = closest(str(path[-1]), tuple(known))
    alike = nearest(str(path[-1]), known)
    near = [name for name in (proposed, *alike) if name and name not in holder]
    if not near:
        # Of other kinds only what is read is known.
        return Fix(f"Known here are {', '.join(known)}.") if context.item.kind in KINDS else None
    sure = edit_distance(str(path[-1]), near[0], 2) is not None or near[0] == f"{path[-1]}Name"
    if not sure or near[0] not in alike:
        return Fix.guess(f"Did you mean {near[0]}?", Rename(path, near[0]))
    return Fix(f"Write {near[0]}", (Rename(path, near[0]),), "unsafe" if near[0] in _PRIVILEGES else "safe")


def _member(raw: Any, path: FieldPath) -> Fix | None:
    """The value in Kubernetes' spelling."""
    value = value_at(raw, path)
    members = values_of(str(path[-1]))
    if not isinstance(value, str) or not members:
        return None
    same = next(
        (member for member in members if member.lower() == value.replace("-", "").replace("_", "").lower()), None
    )
    if same is not None:
        return Fix.sure(f"Write {same}", Set(path, same))
    return Fix.named(path, nearest(value, members, 1)) or Fix(f"Write {' or '.join(members)}.")


def _wrong_type(raw: Any, path: FieldPath) -> Fix | None:
    """The value converted to the field's type."""
    value = value_at(raw, path)
    name = path[-1] if path else ""
    if fix := resource_fix(raw, path, value):
        return fix
    if name in ("config", "selectors", "requests", "constraints", "tolerations") and isinstance(value, dict) and value:
        return Fix(f"{name} is a list: put a dash before the entry.")
    if name in ("count", "generation", "resourceSliceCount", "tolerationSeconds") and isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            return None
        return Fix.sure(f"Write {value} without quotes", Set(path, int(value)))
    if name in ("adminAccess", "allNodes", "allowMultipleAllocations") and value in ("true", "false"):
        safety: Safety = "unsafe" if name in _PRIVILEGES and value == "true" else "safe"
        return Fix(f"Write {value} without quotes", (Set(path, value == "true"),), safety)
    if len(path) > 2 and path[-2] == "capacity" and isinstance(value, str | int | float):
        return Fix.sure("Write {value: …}", Set(path, {"value": value}))
    if len(path) > 2 and path[-2] == "attributes":
        kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
        if isinstance(value, bool | int | str):
            return Fix.sure(f"Write {{{kind}: …}}", Set(path, {kind: value}))
    return None


def _unquoted(context: Context, path: FieldPath) -> Fix | None:
    """A string that YAML reads as something else, because it is not in quotes."""
    value, item = value_at(context.raw, path), context.item
    if not isinstance(value, bool | int | float):
        return None
    quoted = changed(context.raw, [Set(path, "text")])
    if any(wrong.path == path for wrong in decoding_errors(quoted, item.group, item.version, context.release)):
        return None
    change = (Set(path, AsWritten()),)
    if not isinstance(value, bool):
        return Fix.sure("Put it in quotes: without them it is a number", *change)
    words = "y, yes, on and true" if value else "n, no, off and false"
    return Fix.sure(f"Put it in quotes: without them {words} are the boolean {str(value).lower()}", *change)
