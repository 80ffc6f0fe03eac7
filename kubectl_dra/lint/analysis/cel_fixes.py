"""Corrections for the most common errors in expressions that do not compile."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kubectl_dra.cel import ast
from kubectl_dra.lint.analysis.cel_terms import column_of, constant
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Path, Splice

_ORDER: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ASSIGNMENT: Final = re.compile(r"(?<![=!<>])=(?!=)")
STRINGS: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")


def expression_remedy(path: Path, text: str) -> Fix | None:
    """What to change in an expression that does not compile; None for an unknown kind of error."""
    from kubectl_dra.cel.environment import Environment
    from kubectl_dra.cel.parser import parse
    from kubectl_dra.cel.token_reader import ParseError

    try:
        root = parse(text, Environment.for_release().macros()).expression
    except (ParseError, RecursionError):
        return _assignments(path, text)
    changes: list[tuple[int, int, str]] = []
    titles: list[str] = []
    for node in ast.walk(root):
        new = _ordered(node, text) or split_domain(node, text) or _as_quantity(node, text)
        if new is None or any(node.start < end and start < node.end for start, end, _ in changes):
            continue
        title, start, end, put = new
        titles.append(title)
        changes.append((start, end, put))
    if not changes:
        return None
    return Fix(titles[0], (spliced(path, text, changes),), "unsafe")


def spliced(path: Path, text: str, edits: Iterable[tuple[int, int, str]]) -> Splice:
    """Several edits of one expression (each a range and its replacement) as one change."""
    ordered = sorted(edits)
    first, last = ordered[0][0], ordered[-1][1]
    out, done = [], first
    for start, end, put in ordered:
        out += [text[done:start], put]
        done = end
    return Splice(path, first, last, "".join(out))


_New = tuple[str, int, int, str]


def _ordered(node: ast.Expression, text: str) -> _New | None:
    """``<`` and the like between quantities or versions, which need compareTo."""
    if not isinstance(node, ast.Call) or node.function not in _ORDER:
        return None
    left, right = node.arguments
    operator = _ORDER[node.function]
    if (_made(left) and not _made(right)) or (_is_capacity(right) and constant(left) is not None):
        left, right, operator = right, left, _TURNED[operator]
    subject = text[left.start : left.end].strip()
    if _made(right):
        other = text[right.start : right.end].strip()
    elif _is_capacity(left) and (value := constant(right)) is not None and value.type in ("int", "string", "double"):
        other = f'quantity("{value.text}")'
    else:
        return None
    return "Compare by compareTo", node.start, node.end, f"{subject}.compareTo({other}) {operator} 0"


def _as_quantity(node: ast.Expression, text: str) -> _New | None:
    """A capacity compared with a number or a text."""
    if not isinstance(node, ast.Call) or node.function not in ("_==_", "_!=_"):
        return None
    left, right = node.arguments
    value = constant(right)
    if not _is_capacity(left) or value is None or value.type not in ("int", "string", "double"):
        return None
    put = f'quantity("{value.text}")'
    return f"Compare with {put}", right.start, right.end, put


def split_domain(node: ast.Expression, text: str) -> _New | None:
    """``attributes["domain/name"]``, which must be two steps: the advice, the range, and its replacement."""
    if not isinstance(node, ast.Call) or node.function != "_[_]":
        return None
    table, key = node.arguments
    if not isinstance(table, ast.Select) or table.field not in ("attributes", "capacity"):
        return None
    if not isinstance(key, ast.Literal) or not isinstance(key.value, str) or "/" not in key.value:
        return None
    domain, _, name = key.value.partition("/")
    put = f'{text[table.start : table.end]}["{domain}"].{name}'
    return f"Read it as {put}", node.start, node.end, put


def _assignments(path: Path, text: str) -> Fix | None:
    """A single ``=`` where ``==`` is meant."""
    hidden = STRINGS.sub(lambda found: "_" * len(found.group()), text)
    spots = [found.start() for found in _ASSIGNMENT.finditer(hidden)]
    if not spots:
        return None
    return Fix("Write == to compare", (spliced(path, text, [(spot, spot + 1, "==") for spot in spots]),), "unsafe")


def _made(node: ast.Expression) -> bool:
    """Whether it is a call of quantity(...) or semver(...)."""
    return isinstance(node, ast.Call) and node.target is None and node.function in ("quantity", "semver")


def _is_capacity(node: ast.Expression) -> bool:
    column = column_of(node, {})
    return column is not None and column.kind == "capacity"
