"""DeviceClass and DeviceTaintRule, and what they share with claims and slices: parameters, taints, tolerations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from kubectl_dra.admission.server.decoding import type_name
from kubectl_dra.admission.server.metadata import check_metadata
from kubectl_dra.admission.server.model import (
    INVALID,
    TOO_LONG,
    ServerContext,
    Violations,
    check_list,
    missing,
    same_field,
    struct,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_choice,
    check_driver,
    check_format,
    check_pool,
    check_required_choice,
    check_rows,
    label_key_problems,
    label_problems,
    label_value_problems,
    subdomain_problems,
)
from kubectl_dra.admission.server.selectors import check_selectors
from kubectl_dra.api.behaviour import CLAIM_PREFIX_READ, EFFECT_NONE
from kubectl_dra.api.dra_fields import limit, values_of
from kubectl_dra.api.releases import Release
from kubectl_dra.api.schema import FieldPath

# Opaque driver parameters, in classes and claims.

_DRIVER: Final = ("config-driver-missing", "config-driver-invalid", "config-driver-long")
# As Go's encoder, which kubectl sends with, writes these characters.
_ESCAPED: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def check_config(config: Mapping[str, Any] | None, at: FieldPath, context: ServerContext) -> Violations:
    """The ``opaque`` part of an entry of ``config``."""
    opaque = (config or {}).get("opaque")
    at = (*at, "opaque")
    if opaque is None:
        yield missing(at, "config-opaque-missing")
        return
    yield from check_driver(text(opaque, "driver"), (*at, "driver"), _DRIVER, release=context.release)
    yield from _check_parameters(opaque.get("parameters"), (*at, "parameters"))


def _check_parameters(parameters: Any, at: FieldPath) -> Violations:
    if parameters is None:
        yield missing(at, "config-parameters-missing")
    else:
        yield from check_object(parameters, at, "config-parameters")


def check_object(parameters: Any, at: FieldPath, rule: str) -> Violations:
    """Raw JSON that must be an object; ``rule`` is the beginning of its rules' names."""
    length, most = sent_size(parameters), limit("OpaqueDeviceConfiguration", "parameters")
    if most is not None and length > most:
        message = f"has {length} bytes as JSON, at most {most} are allowed"
        yield violation(at, TOO_LONG, f"{rule}-long", message)
    elif not isinstance(parameters, dict):
        message = f"must be an object, not {type_name(parameters)}"
        yield violation(at, INVALID, f"{rule}-not-object", message)


def sent_size(value: Any) -> int:
    """The bytes of a value as kubectl sends it: JSON without blanks, with some characters escaped."""
    from json import dumps

    written = dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED)
    return len(written.encode("utf-8", "surrogatepass"))


def check_class(device_class: Mapping[str, Any], context: ServerContext) -> Violations:
    """A DeviceClass to be created."""
    yield from check_metadata(
        device_class.get("metadata"),
        subdomain_problems,
        namespaced=False,
        context=context,
        check_prefix=context.release not in CLAIM_PREFIX_READ,
    )
    spec = struct(device_class, "spec")
    stored = context.old is not None and same_field(spec, struct(context.old, "spec"), "DeviceClassSpec", "selectors")
    if not stored:
        yield from check_selectors(spec.get("selectors"), ("spec", "selectors"), "class-selectors-too-many", context)
    at: FieldPath = ("spec", "config")
    most = limit("DeviceClassSpec", "config")
    config = partial(check_config, context=context)
    yield from check_list(spec.get("config"), at, most, "class-config-too-many", config, context)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended_resource(name):
        message = f"{name!r} {_extended_resource_problem(name)}"
        yield violation(("spec", "extendedResourceName"), INVALID, "extended-resource-name", message)
    yield from check_rows(spec, ("spec",), "DeviceClassSpec", context)


def is_native_resource(name: str) -> bool:
    """Whether Kubernetes considers a resource name its own: no domain, or kubernetes.io anywhere in it."""
    return "/" not in name or "kubernetes.io/" in name


def _extended_resource_problem(name: str) -> str:
    """What is wrong with a name that is not valid for an extended resource."""
    if "/" not in name:
        return "must have a domain, as in 'example.com/gpu'"
    if is_native_resource(name):
        return "must not be under kubernetes.io/: such names are Kubernetes' own"
    if name.startswith("requests."):
        return "must not begin with 'requests.', which is what a quota puts before it"
    if name.count("/") > 1:
        return "must have one '/' only, between its domain and its name"
    wrong = label_key_problems(name)
    if not wrong:
        return "must have a domain of at most 244 characters: a quota puts 'requests.' before it"
    return "; ".join(f"domain {each.removeprefix('prefix ')}" if each.startswith("prefix ") else each for each in wrong)


def is_extended_resource(name: str) -> bool:
    """Whether a name is valid for an extended resource. With its prefix it must also be a valid quota key."""
    if is_native_resource(name) or name.startswith("requests."):
        return False
    return not label_key_problems(f"requests.{name}")


# Device taints and tolerations, and DeviceTaintRule.


def check_taint(
    taint: Mapping[str, Any] | None, at: FieldPath, context: ServerContext, rule: str = "taint"
) -> Violations:
    """A device taint; ``rule`` is the beginning of its rules' names."""
    yield from check_format(text(taint, "key"), (*at, "key"), f"{rule}-key", label_key_problems)
    yield from check_format(text(taint, "value"), (*at, "value"), f"{rule}-value", label_value_problems)
    effect, where = text(taint, "effect"), (*at, "effect")
    yield from check_required_choice(effect, where, f"{rule}-effect", _effects(context.release))


def check_toleration(toleration: Mapping[str, Any] | None, at: FieldPath, context: ServerContext) -> Violations:
    """A toleration of a request, after defaults."""
    key, value, effect = (text(toleration, name) for name in ("key", "value", "effect"))
    if key:
        yield from check_format(key, (*at, "key"), "toleration-key-invalid", label_key_problems)
    operator = text(toleration, "operator")
    if operator == "Exists":
        if value:
            message = f"must be empty with the operator Exists, not {value!r}"
            yield violation((*at, "value"), INVALID, "toleration-exists-value", message)
    elif operator == "Equal":
        yield from check_format(value, (*at, "value"), "toleration-value-invalid", label_value_problems)
    else:
        where = (*at, "operator")
        yield from check_required_choice(operator, where, "toleration-operator", values_of("operator"))
    yield from check_choice(effect, (*at, "effect"), "toleration-effect", _effects(context.release))


def _effects(release: Release) -> tuple[str, ...]:
    return values_of("effect")[: None if release in EFFECT_NONE else 2]


def check_taint_rule(rule: Mapping[str, Any], context: ServerContext) -> Violations:
    """A DeviceTaintRule to be created; its status does not matter then."""
    yield from check_metadata(rule.get("metadata"), subdomain_problems, namespaced=False, context=context)
    spec = struct(rule, "spec")
    yield from _check_selector(struct(spec, "deviceSelector"), ("spec", "deviceSelector"), context)
    yield from check_taint(spec.get("taint"), ("spec", "taint"), context, "rule-taint")


def _check_selector(selector: Mapping[str, Any], at: FieldPath, context: ServerContext) -> Violations:
    driver, pool, device = (selector.get(name) for name in ("driver", "pool", "device"))
    name = selector.get("deviceClassName")
    if name is not None:
        yield from check_format(name, (*at, "deviceClassName"), "rule-selector-class", subdomain_problems)
    yield from check_selectors(selector.get("selectors"), (*at, "selectors"), "rule-selectors-too-many", context)
    if driver is not None:
        yield from check_driver(driver, (*at, "driver"), ("rule-selector-driver",) * 3, release=context.release)
    if pool is not None:
        yield from check_pool(pool, (*at, "pool"), ("rule-selector-pool",) * 3)
    if device is not None:
        yield from check_format(device, (*at, "device"), "rule-selector-device", label_problems)
