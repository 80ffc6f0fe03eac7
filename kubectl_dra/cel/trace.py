"""The values of all sub-expressions, for explanations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.values import Value

_MOST_OUTCOMES = 64


class TraceEntry(NamedTuple):
    """One sub-expression, written from ``start`` to ``end`` of the expression, ``depth`` levels down.

    ``outcomes`` are its values in order of evaluation, with errors as EvaluationError: none if it was
    skipped, several inside a loop (the first 64; ``evaluations`` counts them all).
    """

    start: int
    end: int
    text: str
    depth: int
    outcomes: tuple[Value, ...]
    evaluations: int

    @property
    def value(self) -> Value:
        """The last recorded outcome, or None if there is none."""
        return self.outcomes[-1] if self.outcomes else None

    @property
    def error(self) -> EvaluationError | None:
        """The last recorded outcome if it is an error."""
        last = self.value
        return last if isinstance(last, EvaluationError) else None


class Recording:
    """Collects outcomes by node id."""

    __slots__ = ("counts", "outcomes")

    def __init__(self) -> None:
        self.outcomes: dict[int, list[Value]] = {}
        self.counts: dict[int, int] = {}

    def clear(self) -> None:
        self.outcomes.clear()
        self.counts.clear()

    def __call__(self, node_id: int, outcome: Value) -> None:
        self.counts[node_id] = self.counts.get(node_id, 0) + 1
        kept = self.outcomes.setdefault(node_id, [])
        if len(kept) < _MOST_OUTCOMES:
            kept.append(list(outcome) if outcome.__class__.__name__ == "MutableList" else outcome)


def entries(tree: ast.Ast, recording: Recording) -> tuple[TraceEntry, ...]:
    """The entries of an expression as written, parents before children. Literals below it are left out."""
    found: list[TraceEntry] = []
    pending: list[tuple[ast.Expression, int]] = [(tree.expression, 0)]
    while pending:
        node, depth = pending.pop()
        if depth and isinstance(node, ast.Literal):
            continue
        found.append(
            TraceEntry(
                node.start,
                node.end,
                tree.source[node.start : node.end],
                depth,
                tuple(recording.outcomes.get(node.id, ())),
                recording.counts.get(node.id, 0),
            )
        )
        parts = _written_parts(node, tree.macro_calls)
        pending.extend([(part, depth + 1) for part in reversed(parts)])
    return tuple(found)


def _written_parts(node: ast.Expression, macro_calls: Mapping[int, ast.Call]) -> tuple[ast.Expression, ...]:
    """The sub-expressions as written: for a macro, its range and its bodies."""
    call = macro_calls.get(node.id)
    if call is None:
        return ast.children(node)
    if call.function == "has":
        argument = call.arguments[0]
        return (argument.operand,) if isinstance(argument, ast.Select) else ()
    parts = call.arguments if call.target is None else (call.target, *call.arguments)
    if call.function == "bind":
        return call.arguments[1:]
    # The leading identifiers of the other macros declare variables.
    first_body = 1 if call.target is None else 2
    if isinstance(node, ast.Comprehension) and node.iter_var2:
        first_body += 1
    return (*parts[:1], *parts[first_body:]) if call.target is not None else parts
