"""Amounts and claims of containers that are written otherwise than the API server reads them."""

from __future__ import annotations

import re
from typing import Any, Final

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Change, Delete, Set, value_at
from kubectl_dra.text import whole_number

_BYTES: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGTPE])(i?)B?", re.IGNORECASE)
_MILLI: Final = re.compile(r"([0-9]+) ?m(?:illi)?(?:cores?|v?cpus?)?", re.IGNORECASE)
_CORES: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?v?(?:cores?|cpus?)", re.IGNORECASE)


def resource_fix(raw: Any, path: FieldPath, value: Any) -> Fix | None:
    """What to write for an amount with a unit that is none, or for claims; None for any other value."""
    of_cpu = path[-1:] == ("cpu",)
    if of_cpu and isinstance(value, str) and (written := _MILLI.fullmatch(value)) and not _is_quantity(value):
        return Fix(f"Write {written[1]}m", (Set(path, f"{written[1]}m"),), "safe")
    if isinstance(value, str) and (written := _BYTES.fullmatch(value)) and not _is_quantity(value):
        amount, prefix = written[1], written[2].upper()
        # Of 40GB nobody knows whether 40 GiB are meant; 40GiB says so.
        if not written[3]:
            return Fix(f"Write {amount}{'k' if prefix == 'K' else prefix} or {amount}{prefix}i.")
        return Fix(f"Write {amount}{prefix}i", (Set(path, f"{amount}{prefix}i"),), "safe")
    if of_cpu and isinstance(value, str) and (cores := _CORES.fullmatch(value)):
        whole = whole_number(cores[1])
        return Fix(f"Write {cores[1]}", (Set(path, cores[1] if whole is None else whole),), "safe")
    if path[-3:-1] == ("resources", "claims") and isinstance(value, str):
        return Fix(f"Write {{name: {value}}}", (Set(path, {"name": value}),), "safe")
    if path[-1:] == ("claims",) and path[-3:-2] == ("resources",) and isinstance(value, list):
        beside = (*path[:-2], "claims")
        free = value_at(raw, beside) is None
        changes: tuple[Change, ...] = (Set(beside, value), Delete(path)) if free else ()
        return Fix(f"Put claims beside {path[-2]}, into resources itself", changes, "safe" if free else "none")
    return None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True
