"""What the values of known drivers are: sizes of memory and names as products are sold with them, and types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel import ast, types
from kubectl_dra.cel.columns import Column
from kubectl_dra.cel.constants import mistyped
from kubectl_dra.cel.types import CelType, optional_of
from kubectl_dra.data.drivers import Attribute, Driver, catalogue
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


# Calls that take no value of the type that a driver's attribute has, and what can be meant.

WORDS: Final = {"int": "an int", "string": "a string", "bool": "a bool", "version": "a version", "double": "a number"}
_TYPES: Final = {"int": types.INT, "string": types.STRING, "bool": types.BOOL, "version": types.SEMVER}
_GENERAL: Final = {
    "int": "Compare it with a number: {0} == 1, {0} >= 1",
    "string": 'Compare it with a string: {0} == "…", {0}.contains("…")',
    "bool": "Use it as it is, or compare it with true or false",
    "version": 'Compare it with a version: {0}.compareTo(semver("…")) >= 0, {0}.major() == 1',
}
_TEXTS: Final = ("contains", "startsWith", "endsWith", "matches")


class MistypedCall(Struct, frozen=True):
    """A part of an expression that is an error on every device that has the attribute.

    ``told`` is a clause about what is called; ``instead`` is what was probably meant, empty if that is not known.
    """

    start: int
    end: int
    driver: Driver
    column: Column
    type: str
    told: str
    advice: str
    instead: str = ""

    @property
    def reason(self) -> str:
        """What is wrong, as a clause."""
        return f"{self.column.id} of {self.driver.name} is {WORDS[self.type]}, and {self.told}"


def wrong_constants(comparison: ConstantComparison, attribute: Attribute) -> bool:
    """Whether none of the constants has the attribute's type."""
    fitting = ("int", "double") if attribute.type == "int" else (attribute.type,)
    return bool(attribute.type) and all(value.type not in fitting for value in comparison.constants)


def mistyped_calls(context: Context, program: Program) -> tuple[MistypedCall, ...]:
    """What fails for the types of the attributes that are read, without comparisons with constants."""
    columns: dict[int, tuple[Driver, Column, str]] = {}
    known: dict[int, CelType] = {}
    for node, scope in scoped(program.ast.expression):
        column = column_of(node, scope)
        found = known_attribute(context, column)
        if column is not None and found is not None and found[1].type in _TYPES:
            columns[node.id] = (found[0], column, found[1].type)
            if isinstance(node, ast.Call) and node.function == "orValue":
                continue
            plain = _TYPES[found[1].type]
            known[node.id] = optional_of(plain) if program.type_of(node).is_optional else plain
    if not known:
        return ()
    compared = _compared_wrongly(context, program)
    failing = (comparison for comparison in mistyped(program, known, columns) if comparison.node.id not in compared)
    return tuple(_described(comparison.node, comparison.operand, columns, program) for comparison in failing)


def _compared_wrongly(context: Context, program: Program) -> frozenset[int]:
    """The comparisons of which it is said that the constant has the wrong type."""
    known = ((comparison, known_attribute(context, comparison.column)) for comparison in comparisons(program))
    return frozenset(
        comparison.node.id for comparison, found in known if found is not None and wrong_constants(comparison, found[1])
    )


def _described(
    node: ast.Expression,
    operand: ast.Expression,
    columns: Mapping[int, tuple[Driver, Column, str]],
    program: Program,
) -> MistypedCall:
    driver, column, kind = columns[operand.id]
    source = program.ast.source
    read = source[operand.start : operand.end]
    instead = _meant(node, operand, kind, source)
    advice = f"Write {instead}" if instead else _GENERAL[kind].format(read)
    return MistypedCall(node.start, node.end, driver, column, kind, _told(node, kind), advice, instead)


def _told(node: ast.Expression, kind: str) -> str:
    if isinstance(node, ast.Select):
        return f"has no field {node.field}"
    if isinstance(node, ast.Call) and node.function == "@in":
        return "in wants a list or a map on its right"
    name = node.function.strip("_") if isinstance(node, ast.Call) else "a loop"
    if isinstance(node, ast.Call) and name[:1].isalpha():
        name = f"{name}()"
    return f"{name} takes no {kind}"


def _meant(node: ast.Expression, operand: ast.Expression, kind: str, source: str) -> str:
    """The expression that was probably meant; empty if that is not known."""
    read = source[operand.start : operand.end]
    if isinstance(node, ast.Select):
        return read if node.field.removesuffix("Value").lower() in _TYPES else ""
    if not isinstance(node, ast.Call):
        return ""
    if node.function == "@in" and node.arguments[1] is operand:
        item = node.arguments[0]
        value, written = constant(item), source[item.start : item.end]
        if kind == "string" and value is not None and value.type == "string":
            return f"{read}.contains({written})"
        return f"{read} == {written}" if value is not None and value.type == kind else ""
    if node.function in _TEXTS and node.target is operand and len(node.arguments) == 1:
        value = constant(node.arguments[0])
        return _as(kind, read, value.text, node.function) if value is not None and value.type == "string" else ""
    return ""


def _as(kind: str, read: str, text: str, function: str) -> str:
    """A test of a text as one of a value."""
    if kind == "version" and function == "startsWith":
        numbers = text.removesuffix(".").split(".")
        if len(numbers) == 1 and (major := whole_number(numbers[0])) is not None:
            return f"{read}.major() == {major}"
    if kind == "int" and function != "endsWith" and (number := whole_number(text)) is not None:
        return f"{read} == {number}"
    return f"{read} == {text.lower()}" if kind == "bool" and text.lower() in ("true", "false") else ""
