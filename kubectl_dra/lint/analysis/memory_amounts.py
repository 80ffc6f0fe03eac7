"""Sizes of memory as products are sold with them, and the quantities with which a capacity is compared instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import Driver, catalogue
from kubectl_dra.lint.analysis.cel_terms import ConstantComparison, comparisons
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Splice
from kubectl_dra.text import whole_number

if TYPE_CHECKING:
    from kubectl_dra.cel.program import Program

_UNITS: Final = {"gib": "Gi", "gb": "Gi", "mib": "Mi", "mb": "Mi"}
_UNIT_FROM: Final = 4096
"""A memory of fewer units can only be in Gi, if the name does not say in which unit it is."""
_LESS: Final = 0.93
"""GPUs that keep a part of their memory for ECC publish so much of the round size: 46068Mi of 48Gi."""
_SIZE: Final = re.compile(r"([1-9][0-9]{0,6})(Ki|Mi|Gi|Ti)")
_SMALLER: Final = {"Ti": "Gi", "Gi": "Mi", "Mi": "Ki", "Ki": ""}
_IN_PRODUCT: Final = re.compile(r"(?<![\w.])([1-9][0-9]{0,4}) ?GB\b")


class Published(NamedTuple):
    """The least quantity that devices sold with some size publish, and a reason for a sentence where it is smaller."""

    amount: str
    why: str = ""


def published(size: str) -> Published:
    """What devices sold with a size publish at least; the size itself unless it is a round one of binary units.

    What is sold as 80 GB publishes more than 80G.
    """
    match = _SIZE.fullmatch(size)
    whole = whole_number(match[1], 7) if match is not None else None
    if match is None or whole is None or (match[2] in ("Ki", "Mi") and whole % 1024):
        return Published(size)
    number, unit = int(whole * _LESS), match[2]
    if number < 1:
        number, unit = int(whole * _LESS * 1024), _SMALLER[unit]
    why = f"devices sold as {size} publish the size they measure, which is up to 7 % less"
    return Published(f"{number}{unit}", why)


def size_of(column: Column, number: int) -> str:
    """The size that a plain number compared with a memory stands for: of small ones the unit is missing."""
    return f"{number}Gi" if 0 < number < _UNIT_FROM and "memory" in (column.id or "").lower() else str(number)


def is_measured(column: Column) -> bool:
    """Whether a capacity is never a round number, as is known of its driver."""
    driver = catalogue().driver(column.domain or "") if column.kind == "capacity" else None
    return driver is not None and bool((driver.capacities.get(column.id or "") or {}).get("measured"))


def size_in(product: str) -> str:
    """The size that the name of a product has in it: 80Gi of one with 80GB; empty if there is none."""
    match = _IN_PRODUCT.search(product)
    return f"{match[1]}Gi" if match is not None else ""


class _Compared(Struct, frozen=True):
    comparison: ConstantComparison
    size: str


def memory_fix(driver: Driver, column: Column, capacity: str, path: FieldPath, program: Program) -> Fix | None:
    """Fix that asks for the same with a capacity; None if the column is not compared with one number."""
    compared = _compared(column, program)
    if compared is None:
        return None
    comparison = compared.comparison
    least = Published(compared.size)
    if comparison.operator == ">=" and is_measured(Column("capacity", driver.name, capacity)):
        least = published(compared.size)
    new = f'device.capacity["{driver.name}"].{capacity}.compareTo(quantity("{least.amount}")) {comparison.operator} 0'
    title = f"Write {new}{f': {least.why}' if least.why else ''}"
    if comparison.operator != ">=":
        return Fix(title, expression=new)
    node = comparison.node
    return Fix(title, (Splice(path, node.start, node.end, new),), "unsafe", expression=new)


def _compared(column: Column, program: Program) -> _Compared | None:
    """The one comparison of the column with a whole number, and the size that this is."""
    own = [comparison for comparison in comparisons(program) if comparison.column == column]
    if len(own) != 1 or own[0].operator == "in" or own[0].constants[0].type != "int":
        return None
    number, name = own[0].constants[0].value, (column.id or "").lower()
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "Gi" if number < _UNIT_FROM else "")
    return _Compared(own[0], f"{number}{unit}") if unit and number > 0 else None
