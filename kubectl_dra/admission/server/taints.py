"""Device taints and tolerations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_dra.admission.server.metadata import check_metadata
from kubectl_dra.admission.server.model import (
    INVALID,
    ServerContext,
    Violations,
    missing,
    struct,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_driver,
    check_format,
    check_pool,
    label_key_problems,
    label_problems,
    label_value_problems,
    subdomain_problems,
    unsupported,
)
from kubectl_dra.admission.server.selectors import check_selectors
from kubectl_dra.api.behaviour import EFFECT_NONE
from kubectl_dra.api.dra_fields import values_of
from kubectl_dra.api.releases import Release
from kubectl_dra.api.schema import FieldPath


def check_taint(
    taint: Mapping[str, Any] | None, at: FieldPath, context: ServerContext, rule: str = "taint"
) -> Violations:
    """A device taint; ``rule`` is the beginning of its rules' names."""
    yield from check_format(text(taint, "key"), (*at, "key"), f"{rule}-key", label_key_problems)
    yield from check_format(text(taint, "value"), (*at, "value"), f"{rule}-value", label_value_problems)
    effect = text(taint, "effect")
    if not effect:
        yield missing((*at, "effect"), f"{rule}-effect")
    else:
        yield from _check_effect(effect, (*at, "effect"), f"{rule}-effect", context.release)


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
    elif not operator:
        yield missing((*at, "operator"), "toleration-operator")
    else:
        yield unsupported(operator, (*at, "operator"), "toleration-operator", values_of("operator"))
    if effect:
        yield from _check_effect(effect, (*at, "effect"), "toleration-effect", context.release)


def _check_effect(effect: str, at: FieldPath, rule: str, release: Release) -> Violations:
    known = values_of("effect")[: None if release in EFFECT_NONE else 2]
    if effect not in known:
        yield unsupported(effect, at, rule, known)


# DeviceTaintRule.


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
