"""All rules, in the order of their codes, from the modules of this folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from kubectl_dra.lint.rule import Rule


def _all() -> Iterator[type[Rule]]:
    for module in iter_modules(__path__, f"{__name__}."):
        yield from import_module(module.name).RULES


RULES: Final[tuple[type[Rule], ...]] = tuple(sorted(_all(), key=lambda rule: rule.code))

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
"""The title of each family of rules, by prefix of its codes."""
