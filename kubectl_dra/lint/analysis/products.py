"""What products are sold as: sizes of memory, with what a capacity is compared instead, and names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import Driver, catalogue
from kubectl_dra.lint.analysis.cel_terms import TEXT_TESTS, ConstantComparison, column_of, comparisons, constant, scoped
from kubectl_dra.lint.analysis.published_devices import known_attribute
from kubectl_dra.lint.analysis.selector_targets import read_text
from kubectl_dra.lint.context import Context
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


def compared_with(
    path: FieldPath, comparison: ConstantComparison, least: Published, operator: str, read: Column, told: str = "Write"
) -> Fix:
    """To ask for an amount of a column in place of a comparison."""
    new = f'{read_text(read)}.compareTo(quantity("{least.amount}")) {operator} 0'
    change = Splice(path, comparison.node.start, comparison.node.end, new)
    return Fix.guess(f"{told} {new}{f': {least.why}' if least.why else ''}", change, expression=new)


def memory_fix(driver: Driver, column: Column, capacity: str, path: FieldPath, program: Program) -> Fix | None:
    """Fix that asks for the same with a capacity; None if the column is not compared with one whole number."""
    own = [comparison for comparison in comparisons(program) if comparison.column == column]
    if len(own) != 1 or own[0].operator == "in" or own[0].constants[0].type != "int":
        return None
    number, name, operator = own[0].constants[0].value, (column.id or "").lower(), own[0].operator
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "Gi" if number < _UNIT_FROM else "")
    if not unit or number <= 0:
        return None
    read = Column("capacity", driver.name, capacity)
    least = published(f"{number}{unit}") if operator == ">=" and is_measured(read) else Published(f"{number}{unit}")
    fix = compared_with(path, own[0], least, operator, read)
    return fix if operator == ">=" else fix.advice


# Names of products, of which manifests have a part, or another spelling.

_WORD: Final = re.compile(r"[^\s-]+")


def common_part(text: str, meant: Sequence[str]) -> str:
    """A word of the text, as all names that are meant spell it; empty if there is none."""
    words = text.lower().replace("-", " ").replace("_", " ").split()
    # A number of a model tells more than the vendor's name.
    for word in sorted(words, key=lambda word: not any(char.isdigit() for char in word)):
        spelled = next((part for part in _WORD.findall(meant[0]) if part.lower() == word), "")
        if spelled and all(spelled in name for name in meant):
            return spelled
    return ""


class MiscasedPart(Struct, frozen=True):
    """A part of a name that no known name has, but for its capitals.

    ``argument`` is where it is written, ``text`` what; ``spelled`` is how the names have it.
    """

    call: ast.Call
    argument: ast.Expression
    column: Column
    text: str
    spelled: tuple[str, ...]


def miscased_parts(context: Context, program: Program) -> Iterator[MiscasedPart]:
    """The tests of a part of an attribute, such as ``productName.contains("h100")``, that only capitals make false."""
    for node, scope in scoped(program.ast.expression):
        if not isinstance(node, ast.Call) or node.target is None or node.function not in TEXT_TESTS:
            continue
        column, value = column_of(node.target, scope), constant(node.arguments[0])
        known = known_attribute(context, column)
        if column is None or known is None or value is None or value.type != "string":
            continue
        driver, attribute = known
        names = attribute.values or (driver.product_names if attribute.names == "products" else ())
        spelled = _spelled(node.function, value.text, names)
        if spelled:
            yield MiscasedPart(node, node.arguments[0], column, value.text, spelled)


def _spelled(function: str, text: str, names: Sequence[str]) -> tuple[str, ...]:
    """How names spell a part that they have only in other capitals; none if one has it as it is, or in no way."""
    test, low = TEXT_TESTS[function], text.lower()
    if any(test(name, text) for name in names):
        return ()
    having = [name for name in names if test(name.lower(), low) and len(name.lower()) == len(name)]
    starts = [(name, name.lower().rfind(low) if function == "endsWith" else name.lower().find(low)) for name in having]
    return tuple(dict.fromkeys(name[start : start + len(low)] for name, start in starts))
