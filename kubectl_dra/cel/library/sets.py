"""Lists as sets: whether one contains, equals or intersects another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import ONE, CallEstimate, CostNode, Estimate, Estimator
from kubectl_dra.cel.libraries import SETS
from kubectl_dra.cel.library.support import actual_size, function, overload, same
from kubectl_dra.cel.types import BOOL, list_of, type_param
from kubectl_dra.cel.values import Value

_LIBRARY = "sets"
_T = type_param("T")
_LIST_T = list_of(_T)


def _holds(values: Sequence[Value], wanted: Value) -> bool:
    return any(same(wanted, value) for value in values)


def _contains(values: Sequence[Value], part: Sequence[Value]) -> bool:
    return all(_holds(values, value) for value in part)


def _equivalent(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return any(_holds(right, value) for value in left)


def _estimate(factor: float) -> Estimate:
    def estimate(estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]) -> CallEstimate | None:
        left, right = (estimator.size(argument) for argument in arguments)
        return CallEstimate(left.times(right).scaled(factor).plus(ONE))

    return estimate


def _actual(factor: float) -> Callable[[Sequence[Value], Value], int]:
    def actual(values: Sequence[Value], result: Value) -> int:
        return 1 + int(float(actual_size(values[0]) * actual_size(values[1])) * factor)

    return actual


def functions() -> list[Function]:
    def of_sets(
        name: str,
        documentation: str,
        examples: Sequence[str],
        implementation: Callable[..., bool],
        factor: float,
    ) -> Function:
        declared = overload(
            f"list_sets_{name}_list",
            (_LIST_T, _LIST_T),
            BOOL,
            implementation,
            version=SETS,
            estimate=_estimate(factor),
            actual=_actual(factor),
        )
        return function(f"sets.{name}", _LIBRARY, documentation, examples, [declared])

    return [
        of_sets(
            "contains",
            "Whether the first list has all elements of the second.",
            ("sets.contains([1, 2, 3], [3, 1])",),
            _contains,
            1,
        ),
        of_sets(
            "equivalent",
            "Whether two lists have the same elements, in any order and number.",
            ("sets.equivalent([1, 2, 2], [2, 1])",),
            _equivalent,
            2,
        ),
        of_sets(
            "intersects",
            "Whether two lists have an element in common.",
            ('sets.intersects(["a", "b"], ["b", "c"])',),
            _intersects,
            1,
        ),
    ]
