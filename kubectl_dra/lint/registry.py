"""Every rule there is, in the order of their codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubectl_dra.lint.rule import Rule
from kubectl_dra.lint.rules import api, catalogue, files

RULES: Final[tuple[type[Rule], ...]] = tuple(
    sorted((*api.RULES, api.ServerWarns, *catalogue.RULES, *files.RULES), key=lambda rule: rule.code)
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
