"""What can watch an evaluation: its actual cost, counted and limited as in the scheduler, and a trace.

The closures report their steps to a meter. Charges follow cel-go's run-time cost, with Kubernetes' additions:

* A chain of selections and indexes (``device.attributes["d"].model``) costs one unit per step and one for the
  whole; the identifier that it starts with is free. As a branch of ``?:`` or as an index, the whole is free.
  A step is free where it is optional and leads to no value, even to an error.
* Constants are free, including lists and maps of constants and conversions of constants. ``x in [constants]``
  is a set lookup and free. A presence test costs only its steps.
* ``&&``, ``||``, ``?:`` and loops are free, but what they evaluate is not. A list costs 10, a map 30.
* A call is charged by the sizes of its values. If its overload was chosen only at run time it costs 1, unless
  Kubernetes charges its function by name.
* An error as a value has size 1. Calls with a failed operand are charged like others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubectl_dra.api.limits import MAX_EXPRESSION_COST
from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import CostLimitExceeded, EvaluationError
from kubectl_dra.cel.known_sizes import UINT64_MAX
from kubectl_dra.cel.values import Value

if TYPE_CHECKING:
    from kubectl_dra.cel.functions import Overload


class CostMeter:
    """Counts the cost of one evaluation at a time. Call ``reset`` before the next."""

    __slots__ = ("cost", "limit")

    def __init__(self, limit: int = MAX_EXPRESSION_COST) -> None:
        self.limit = limit
        self.cost = 0

    def reset(self) -> None:
        self.cost = 0

    def spend(self, units: int) -> None:
        """Add units; raises CostLimitExceeded above the limit."""
        # Only absurd arguments get there, but then the counter wraps around.
        self.cost = self.cost + units & UINT64_MAX
        if self.cost > self.limit:
            raise CostLimitExceeded

    def call(self, overloads: Sequence[Overload], values: Sequence[Value], result: Value) -> None:
        """Add the cost of a completed call, from its possible overloads and its values.

        A failed operand is passed as its EvaluationError; a failed call has the result None.
        """
        # An error is as large as null.
        known = [None if isinstance(value, EvaluationError) else value for value in values]
        certain = len(overloads) == 1
        charged = (row.cost.actual for row in overloads if row.cost.actual and (certain or not row.cost.certain))
        actual = next(charged, None)
        self.spend(1 if actual is None else actual(known, result))


# The values of all sub-expressions, for explanations.

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
    traced: list[TraceEntry] = []
    pending: list[tuple[ast.Expression, int]] = [(tree.expression, 0)]
    while pending:
        node, depth = pending.pop()
        if depth and isinstance(node, ast.Literal):
            continue
        traced.append(
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
    return tuple(traced)


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
