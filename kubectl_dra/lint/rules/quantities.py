"""Quantities that are valid but too expensive to compute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.cel import ast
from kubectl_dra.lint.analysis.claim_requests import CLAIM_KINDS
from kubectl_dra.lint.analysis.selector_targets import SELECTOR_KINDS, selectors
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Path

_ENDLESS: Final = 10_000_000
"""The exponent from which one such quantity takes a second of CPU time or more."""
_MINUTES: Final = 50_000_000
_POWER: Final = re.compile(r"\s*[+-]?([0-9]*)(?:\.([0-9]*))?[eE]([+-]?[0-9]{8,19})\s*")
_LARGE: Final = re.compile(r"[eE][+-]?[0-9]{8}")
_HOLDERS: Final = frozenset(("capacity", "counters", "hard", "limits", "overhead", "requests"))
# Mappings with quantities in them; requests of a claim are a list.


class _Power(Struct, frozen=True):
    """``worked_out``: even reading the text takes long, not only comparing the quantity."""

    exponent: int
    worked_out: bool


class EndlessQuantity(Rule):
    """A quantity with an enormous exponent."""

    code = "DRA311"
    name = "endless-quantity"
    severity = "error"
    kinds = (*CLAIM_KINDS, "DeviceClass", "ResourceSlice", "Pod", "ResourceQuota")

    def check(self, context: Context) -> Iterator[LintFinding]:
        # Only where they are compared at once do large numbers take as long as small ones.
        compared = context.item.kind in ("Pod", "ResourceQuota")
        for path, text, power in _written(context.raw.get("spec"), ("spec",), False):
            yield self._found(path, text, power, compared or "requestPolicy" in path, None)
        if context.item.kind not in SELECTOR_KINDS:
            return
        for selector in selectors(context):
            if selector.program is None or not _LARGE.search(selector.expression):
                continue
            for literal in _literals(selector.program.ast.expression):
                if found := _power(literal.value):
                    span = (literal.start, literal.end)
                    yield self._found(selector.path, literal.value, found, False, span)

    def _found(self, path: Path, text: str, power: _Power, compared: bool, cel: tuple[int, int] | None) -> LintFinding:
        short = text if len(text) <= 40 else f"{text[:20]}…{text[-15:]}"
        slow = power.worked_out or compared
        who = "the scheduler" if cel else "the API server" if slow else "whoever compares it exactly"
        message = f"{short} takes {who} {'minutes' if abs(power.exponent) >= _MINUTES else 'seconds'} to work out"
        fix = "Write the amount that is meant, such as 40Gi."
        return self.finding(path, message, fix=fix, severity=None if slow else "warning", cel=cel)


def _literals(root: ast.Expression) -> Iterator[ast.Literal]:
    """The texts from which a selector makes quantities."""
    for node in ast.walk(root):
        if isinstance(node, ast.Call) and node.function in ("quantity", "isQuantity") and node.arguments:
            first = node.arguments[0]
            if isinstance(first, ast.Literal) and isinstance(first.value, str):
                yield first


def _written(value: Any, path: Path, held: bool) -> Iterator[tuple[Path, str, _Power]]:
    """The quantities with such an exponent below a path, except in configuration that is opaque to Kubernetes."""
    if isinstance(value, str):
        power = _power(value) if held else None
        if power is not None:
            yield path, value, power
    elif isinstance(value, dict):
        for key, below in value.items():
            if key != "opaque" and isinstance(below, (dict, list, str) if held else (dict, list)):
                yield from _written(below, (*path, key), held or (key in _HOLDERS and isinstance(below, dict)))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _written(below, (*path, index), held)


def _power(text: str) -> _Power | None:
    found = _POWER.fullmatch(text) if "e" in text or "E" in text else None
    if found is None:
        return None
    whole, fraction = found[1].lstrip("0"), found[2] or ""
    if not (whole + fraction).strip("0"):
        return None
    # Kubernetes keeps 32 bits of the exponent.
    exponent = (int(found[3]) + 2**31) % 2**32 - 2**31
    if abs(exponent) < _ENDLESS:
        return None
    return _Power(exponent, exponent < 0 or len(whole or "0") + len(fraction) > 18)


RULES = (EndlessQuantity,)
