"""Calls that take no value of the type that a driver's attribute has, and what can be meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kubectl_dra.cel import ast, types
from kubectl_dra.cel.columns import Column
from kubectl_dra.cel.constants import mistyped
from kubectl_dra.cel.types import CelType, optional_of
from kubectl_dra.data.drivers import Attribute, Driver
from kubectl_dra.lint.analysis.cel_terms import ConstantComparison, column_of, comparisons, constant, scoped
from kubectl_dra.lint.analysis.published_devices import known_attribute
from kubectl_dra.lint.context import Context
from kubectl_dra.text import whole_number

if TYPE_CHECKING:
    from kubectl_dra.cel.program import Program

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
