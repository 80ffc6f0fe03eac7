"""Every rule there is, in the order of their codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubectl_dra.lint.rule import Rule
from kubectl_dra.lint.rules import (
    cluster,
    comparisons,
    configs,
    device_plugins,
    driver_offers,
    files,
    guards,
    names,
    pod_references,
    published_names,
    quantities,
    quotas,
    releases,
    requests,
    server_rejections,
    taints,
)

_FAMILIES: Final = (
    cluster,
    comparisons,
    configs,
    device_plugins,
    driver_offers,
    files,
    guards,
    names,
    pod_references,
    published_names,
    quantities,
    quotas,
    releases,
    requests,
    server_rejections,
    taints,
)
"""A family of rules is a module; a new one is named here."""
RULES: Final[tuple[type[Rule], ...]] = tuple(
    sorted((rule for family in _FAMILIES for rule in family.RULES), key=lambda rule: rule.code)
)

BY_CODE: Final[Mapping[str, type[Rule]]] = {rule.code: rule for rule in RULES}

FAMILIES: Final[Mapping[str, str]] = {
    "DRA1": "Structure and API rules",
    "DRA2": "Selectors",
    "DRA3": "Requests and constraints",
    "DRA4": "Wiring between objects",
    "DRA5": "Versions and feature gates",
    "DRA6": "Drivers",
    "DRA7": "Device plugins",
    "DRA8": "Taints and admin access",
    "DRA9": "Files",
}
"""The title of each family of rules, by the beginning of its codes."""
