"""Lists as sets: whether one contains, equals or intersects another."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import ONE, CallEstimate, Cost, Operands
from kubectl_dra.cel.libraries import SETS
from kubectl_dra.cel.library.support import actual_size, declared, overload, same
from kubectl_dra.cel.types import BOOL, list_of, type_param
from kubectl_dra.cel.values import Value

_LIST_T = list_of(type_param("T"))


def _holds(values: Sequence[Value], wanted: Value) -> bool:
    return any(same(wanted, value) for value in values)


def _contains(values: Sequence[Value], part: Sequence[Value]) -> bool:
    return all(_holds(values, value) for value in part)


def _equivalent(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return any(_holds(right, value) for value in left)


def _comparing(factor: float) -> Cost:
    """Each element with each, so many times."""

    def estimate(operands: Operands) -> CallEstimate:
        return CallEstimate(operands.size(0).times(operands.size(1)).scaled(factor).plus(ONE))

    def actual(values: Sequence[Value], result: Value) -> int:
        return 1 + int(float(actual_size(values[0]) * actual_size(values[1])) * factor)

    return Cost(estimate, actual)


def functions() -> list[Function]:
    rows = (("contains", _contains, 1), ("equivalent", _equivalent, 2), ("intersects", _intersects, 1))
    return declared(
        "sets",
        {
            f"sets.{name}": [
                overload(f"list_sets_{name}_list", (_LIST_T, _LIST_T), BOOL, holds, _comparing(factor), SETS)
            ]
            for name, holds, factor in rows
        },
    )
