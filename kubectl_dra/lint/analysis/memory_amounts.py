"""A number that was compared with an attribute for the memory, as the quantity that a capacity is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import Driver
from kubectl_dra.lint.analysis.cel_terms import ConstantComparison, comparisons
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Path, Splice

if TYPE_CHECKING:
    from kubectl_dra.cel.program import Program

_UNITS: Final = {"gib": "Gi", "gb": "Gi", "mib": "Mi", "mb": "Mi"}
_UNIT_FROM: Final = 4096
"""A memory of fewer units can only be in Gi, if the name does not say in which unit it is."""
_LESS: Final = 0.93
"""GPUs that keep a part of their memory for ECC publish so much of the round size: 46068Mi of 48Gi."""


class _Compared(Struct, frozen=True):
    comparison: ConstantComparison
    number: int
    unit: str


def memory_fix(driver: Driver, column: Column, capacity: str, path: Path, program: Program) -> Fix | None:
    """How to ask for the same with a capacity; None if the expression does not compare the column with one number."""
    compared = _compared(column, program)
    if compared is None:
        return None
    comparison, whole = compared.comparison, f"{compared.number}{compared.unit}"
    facts = driver.capacities.get(capacity) or {}
    amount, why = whole, ""
    if comparison.operator == ">=" and facts.get("measured"):
        amount = f"{int(compared.number * _LESS)}{compared.unit}"
        why = f": devices sold as {whole} publish the size they measure, which is up to 7 % less"
    new = f'device.capacity["{driver.name}"].{capacity}.compareTo(quantity("{amount}")) {comparison.operator} 0'
    title = f"Write {new}{why}"
    if comparison.operator != ">=":
        return Fix(title, expression=new)
    node = comparison.node
    return Fix(title, (Splice(path, node.start, node.end, new),), "unsafe", expression=new)


def _compared(column: Column, program: Program) -> _Compared | None:
    """The one comparison of the column with a whole number, and the unit of that."""
    own = [each for each in comparisons(program) if each.column == column]
    if len(own) != 1 or own[0].operator == "in" or own[0].constants[0].type != "int":
        return None
    number, name = own[0].constants[0].value, (column.id or "").lower()
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "Gi" if number < _UNIT_FROM else "")
    return _Compared(own[0], number, unit) if unit and number > 0 else None
