"""DeviceTaintRule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.metadata import check_metadata
from kubectl_dra.admission.server.model import Path, Violations, struct
from kubectl_dra.admission.server.names import (
    check_driver,
    check_format,
    check_pool,
    label_problems,
    subdomain_problems,
)
from kubectl_dra.admission.server.selectors import check_selectors
from kubectl_dra.admission.server.taints import check_taint


def check_taint_rule(rule: Mapping[str, Any], context: ServerContext) -> Violations:
    """A DeviceTaintRule to be created; its status does not matter then."""
    yield from check_metadata(rule.get("metadata"), subdomain_problems, namespaced=False, context=context)
    spec = struct(rule, "spec")
    yield from _check_selector(struct(spec, "deviceSelector"), ("spec", "deviceSelector"), context)
    yield from check_taint(spec.get("taint"), ("spec", "taint"), context, "rule-taint")


def _check_selector(selector: Mapping[str, Any], at: Path, context: ServerContext) -> Violations:
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
