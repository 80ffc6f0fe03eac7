"""Checks of literals that Kubernetes makes after type checking.

They cover constant arguments of ``matches``, ``duration`` and ``timestamp``, the clauses of constant format
strings, and list and map literals, which must not mix types even where dyn would allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import EvaluationError, Issue
from kubectl_dra.cel.types import CelType

if TYPE_CHECKING:
    from kubectl_dra.cel.checker import Checked
    from kubectl_dra.cel.environment import Environment


_PANIC = "runtime error: index out of range [0] with length 0"


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
            from kubectl_dra.cel.library.regex import compile_pattern

            compile_pattern(literal.value)
        else:
            _convert(node.function, environment)(literal.value)
    except EvaluationError as error:
        issues.append(Issue(f"invalid {node.function} argument", literal.position, reason=error.message))


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
    node_type = node_types[node.id]
    if not optional:
        return node_type
    return node_type.parameters[0] if node_type.parameters else None


def _list_issues(node: ast.ListLiteral, node_types: Mapping[int, CelType]) -> list[Issue]:
    first: CelType | None = None
    for index, element in enumerate(node.elements):
        current = _value_type(element, index in node.optional_indices, node_types)
        if current is None:
            return [Issue(_PANIC, element.position)]
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
            return [*issues, Issue(_PANIC, entry.value.position)]
        if first is None:
            first = (key, value)
            continue
        if not _equivalent(first[0], key):
            issues.append(_mismatch(entry.key, first[0], key))
        if not _equivalent(first[1], value):
            issues.append(_mismatch(entry.value, first[1], value))
    return issues


# --- format strings -------------------------------------------------------------------------------


def _format_issues(node: ast.Call, node_types: Mapping[int, CelType]) -> list[Issue]:
    target = node.target
    if not isinstance(target, ast.Literal) or not isinstance(target.value, str) or len(node.arguments) != 1:
        return []
    argument = node.arguments[0]
    if not isinstance(argument, ast.ListLiteral):
        return []
    from kubectl_dra.cel.library.formatting import Clause, FormatError, clauses

    used = 0
    try:
        for clause in clauses(target.value, len(argument.elements), compiling=True):
            if isinstance(clause, Clause):
                problem = _clause_issue(clause.verb, argument.elements[used], node_types)
                if problem is not None:
                    return [problem]
                used += 1
    except FormatError as error:
        return [Issue(str(error), node.position)]
    given = len(argument.elements)
    if given > used:
        message = f"too many arguments supplied to string.format (expected {used}, got {given})"
        return [Issue(message, node.position)]
    return []


def _clause_issue(verb: str, argument: ast.Expression, node_types: Mapping[int, CelType]) -> Issue | None:
    """The first part of an argument that a clause cannot print. Only of ``%s`` it may be an element."""
    from kubectl_dra.cel.library.formatting import VERBS, refusal

    given = node_types[argument.id]
    if given.kind != "dyn" and given.kind not in VERBS[verb].types:
        return Issue(str(refusal(verb, given.name)), argument.position)
    if verb == "s" and isinstance(argument, (ast.ListLiteral, ast.MapLiteral)):
        for part in ast.children(argument):
            problem = _clause_issue(verb, part, node_types)
            if problem is not None:
                return problem
    return None
