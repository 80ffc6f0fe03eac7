"""Checks of literals that Kubernetes makes after type checking.

They cover constant arguments of ``matches``, ``duration`` and ``timestamp``, the clauses of constant format
strings, and list and map literals, which must not mix types even where dyn would allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import EvaluationError, Issue
from kubectl_dra.cel.types import CelType

if TYPE_CHECKING:
    from kubectl_dra.cel.checker import Checked
    from kubectl_dra.cel.environment import Environment


def validate(checked: Checked, environment: Environment) -> list[Issue]:
    """All errors in literals of a checked expression."""
    issues: list[Issue] = []
    pending: list[tuple[ast.Expression, bool]] = [(checked.expression, False)]
    while pending:
        node, in_format = pending.pop()
        if isinstance(node, ast.Call):
            _validate_call(node, environment, issues)
            if node.function == "format":
                issues.extend(_format_issues(node, checked.node_types))
                in_format = True
        elif not in_format and isinstance(node, ast.ListLiteral):
            issues.extend(_list_issues(node, checked.node_types))
        elif not in_format and isinstance(node, ast.MapLiteral):
            issues.extend(_map_issues(node, checked.node_types))
        pending.extend([(child, in_format) for child in ast.children(node)])
    return issues


def _validate_call(node: ast.Call, environment: Environment, issues: list[Issue]) -> None:
    """Check the first written argument of these functions, even if it is not the pattern."""
    if node.function not in ("matches", "duration", "timestamp") or not node.arguments:
        return
    literal = node.arguments[0]
    if not isinstance(literal, ast.Literal):
        return
    try:
        if node.function == "matches":
            if not isinstance(literal.value, str):
                return
            compile_pattern(literal.value)
        else:
            _convert(node.function, environment)(literal.value)
    except EvaluationError as error:
        issues.append(Issue(f"invalid {node.function} argument", literal.position, hint=error.message))


def compile_pattern(pattern: str) -> None:
    """Raise EvaluationError unless the pattern is a valid regular expression."""
    from kubectl_dra.cel.library import regex

    try:
        regex.compile_pattern(pattern)
    except regex.PatternError as error:
        raise EvaluationError(str(error)) from None


def _convert(function: str, environment: Environment) -> Callable[[object], object]:
    from kubectl_dra.cel.functions import dispatcher

    declared = environment.function(function)
    assert declared is not None
    return dispatcher(declared, declared.overloads, 1)


def _mismatch(node: ast.Expression, expected: CelType, actual: CelType) -> Issue:
    return Issue(f"expected type '{expected}' but found '{actual}'", node.position)


def _equivalent(left: CelType, right: CelType) -> bool:
    return left == right or (left.kind == right.kind == "param")


def _value_type(node: ast.Expression, optional: bool, node_types: Mapping[int, CelType]) -> CelType | None:
    """The type of an element; None for an optional one of unknown type, where Kubernetes panics."""
    found = node_types[node.id]
    if not optional:
        return found
    return found.parameters[0] if found.parameters else None


def _panic(node: ast.Expression) -> Issue:
    return Issue("runtime error: index out of range [0] with length 0", node.position)


def _list_issues(node: ast.ListLiteral, node_types: Mapping[int, CelType]) -> list[Issue]:
    first: CelType | None = None
    for index, element in enumerate(node.elements):
        current = _value_type(element, index in node.optional_indices, node_types)
        if current is None:
            return [_panic(element)]
        if first is None:
            first = current
        elif not _equivalent(first, current):
            return [_mismatch(element, first, current)]
    return []


def _map_issues(node: ast.MapLiteral, node_types: Mapping[int, CelType]) -> list[Issue]:
    issues: list[Issue] = []
    first: tuple[CelType, CelType] | None = None
    for entry in node.entries:
        key = node_types[entry.key.id]
        value = _value_type(entry.value, entry.optional, node_types)
        if value is None:
            return [*issues, _panic(entry.value)]
        if first is None:
            first = (key, value)
            continue
        if not _equivalent(first[0], key):
            issues.append(_mismatch(entry.key, first[0], key))
        if not _equivalent(first[1], value):
            issues.append(_mismatch(entry.value, first[1], value))
    return issues


# --- format strings -------------------------------------------------------------------------------

_CLAUSE_KINDS: dict[str, tuple[frozenset[str], str]] = {
    "d": (frozenset({"int", "uint"}), "decimal clause can only be used on integers"),
    "f": (frozenset({"double", "string"}), "fixed-point clause can only be used on doubles"),
    "e": (frozenset({"double", "string"}), "scientific clause can only be used on doubles"),
    "b": (frozenset({"int", "uint", "bool"}), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset({"int", "uint", "string", "bytes"}),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset({"int", "uint"}), "octal clause can only be used on integers"),
}
_CLAUSE_KINDS["X"] = _CLAUSE_KINDS["x"]
_TEXT_KINDS = frozenset(
    ("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null")
)
_TEXT_MESSAGE = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
    "and timestamps"
)


class _FormatProblem(Exception):
    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


def _format_issues(node: ast.Call, node_types: Mapping[int, CelType]) -> list[Issue]:
    target = node.target
    if not isinstance(target, ast.Literal) or not isinstance(target.value, str) or len(node.arguments) != 1:
        return []
    argument = node.arguments[0]
    if not isinstance(argument, ast.ListLiteral):
        return []
    try:
        used = _check_format(target.value, argument.elements, node_types)
    except _FormatProblem as problem:
        position = node.position if problem.position is None else problem.position
        return [Issue(problem.message, position)]
    given = len(argument.elements)
    if given > used:
        message = f"too many arguments supplied to string.format (expected {used}, got {given})"
        return [Issue(message, node.position)]
    return []


def _check_format(text: str, arguments: Sequence[ast.Expression], node_types: Mapping[int, CelType]) -> int:
    """Check all clauses. Returns how many arguments they use."""
    used = index = 0
    while index < len(text):
        if text[index] != "%":
            index += 1
            continue
        if text[index + 1 : index + 2] == "%":
            index += 2
            continue
        if index + 1 >= len(text):
            raise _FormatProblem("unexpected end of string")
        if used >= len(arguments):
            raise _FormatProblem(f"index {used} out of range")
        index = _check_clause(text, index + 1, arguments[used], node_types)
        used += 1
    return used


def _check_clause(text: str, index: int, argument: ast.Expression, node_types: Mapping[int, CelType]) -> int:
    """Check one clause whose text after ``%`` starts at ``index``. Returns where it ends."""
    failed = "could not parse formatting clause"
    if text[index] == ".":
        digits = index + 1
        index = digits
        while index < len(text) and text[index] in "0123456789":
            index += 1
        if index >= len(text):
            raise _FormatProblem(f"{failed}: error while parsing precision: could not find end of precision specifier")
        if index == digits or index - digits > 18:
            reason = "invalid syntax" if index == digits else "value out of range"
            raise _FormatProblem(
                f"{failed}: error while parsing precision: error while converting precision to integer: "
                f'strconv.Atoi: parsing "{text[digits:index]}": {reason}'
            )
    clause = text[index]
    if clause == "s":
        bad = _not_text(argument, node_types)
        if bad is not None:
            shown = node_types[bad.id].name
            raise _FormatProblem(f"error during formatting: {_TEXT_MESSAGE}, was given {shown}", bad.position)
        return index + 1
    kinds = _CLAUSE_KINDS.get(clause)
    if kinds is None:
        raise _FormatProblem(f'{failed}: unrecognized formatting clause "{clause}"')
    given = node_types[argument.id]
    if given.kind != "dyn" and given.kind not in kinds[0]:
        raise _FormatProblem(f"error during formatting: {kinds[1]}, was given {given.name}", argument.position)
    return index + 1


def _not_text(node: ast.Expression, node_types: Mapping[int, CelType]) -> ast.Expression | None:
    """The first part of a value that ``%s`` cannot print, or None."""
    kind = node_types[node.id].kind
    if kind != "dyn" and kind not in _TEXT_KINDS:
        return node
    if isinstance(node, (ast.ListLiteral, ast.MapLiteral)):
        for part in ast.children(node):
            bad = _not_text(part, node_types)
            if bad is not None:
                return bad
    return None
