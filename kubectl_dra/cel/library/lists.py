"""Kubernetes' own functions on lists: order, extremes, sums and searching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kubectl_dra.cel.errors import EvaluationError, no_such_overload
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import CallEstimate, CostNode, CostRange, Estimator
from kubectl_dra.cel.libraries import INCLUDES, INCLUDES_ANY
from kubectl_dra.cel.library.operators import add
from kubectl_dra.cel.library.support import (
    COMPARABLE,
    element_scan_actual,
    element_scan_estimate,
    function,
    has_order,
    member,
    same,
    try_compare,
)
from kubectl_dra.cel.types import BOOL, DOUBLE, DURATION, DYN, INT, UINT, A, CelType, list_of
from kubectl_dra.cel.values import Duration, Uint, Value, is_list

_LIBRARY = "lists"
_LIST_A = list_of(A)
_INCLUDES_LIMIT = 48
_SUMMABLE: tuple[tuple[str, CelType, Value], ...] = (
    ("int", INT, 0),
    ("uint", UINT, Uint(0)),
    ("double", DOUBLE, 0.0),
    ("duration", DURATION, Duration(0)),
)


def _is_sorted(values: Sequence[Value]) -> bool:
    for index, value in enumerate(values):
        if not has_order(value):
            raise no_such_overload()
        if index and try_compare(values[index - 1], value) == 1:
            return False
    return True


def _extreme(name: str, worse: int) -> Callable[[Sequence[Value]], Value]:
    def extreme(values: Sequence[Value]) -> Value:
        if not values:
            raise EvaluationError(f"{name} called on empty list")
        best = values[0]
        for value in values:
            if not has_order(value):
                raise no_such_overload()
            if try_compare(best, value) == worse:
                best = value
        return best

    return extreme


def _sum_from(zero: Value) -> Callable[[Sequence[Value]], Value]:
    def total(values: Sequence[Value]) -> Value:
        result = zero
        for value in values:
            result = add(result, value)
        return result

    return total


def _index_of(values: Sequence[Value], wanted: Value) -> int:
    for index, value in enumerate(values):
        if same(value, wanted):
            return index
    return -1


def _last_index_of(values: Sequence[Value], wanted: Value) -> int:
    for index in range(len(values) - 1, -1, -1):
        if same(values[index], wanted):
            return index
    return -1


def _includes(target: Value, wanted: Value) -> bool:
    if not is_list(target):
        return same(target, wanted)
    for index, value in enumerate(target):
        if index >= _INCLUDES_LIMIT:
            raise EvaluationError(
                f"'includes' function cannot be applied to lists longer than {_INCLUDES_LIMIT} values"
            )
        if same(value, wanted):
            return True
    return False


def _includes_estimate(estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]) -> CallEstimate:
    return CallEstimate(CostRange(0, _INCLUDES_LIMIT))


def _includes_any(target: Value, wanted: Value) -> bool:
    return any(same(value, wanted) for value in target) if is_list(target) else same(target, wanted)


def _includes_any_estimate(
    estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]
) -> CallEstimate | None:
    if target is None or estimator.element(target) is not None:
        return element_scan_estimate(estimator, target, arguments)
    return CallEstimate(estimator.size(target))


def functions() -> list[Function]:
    searching: dict[str, Any] = {"estimate": element_scan_estimate, "actual": element_scan_actual}
    largest = _extreme("max", -1)
    smallest = _extreme("min", 1)
    return [
        function(
            "isSorted",
            _LIBRARY,
            "Whether no element is greater than the next one.",
            ("[1, 2, 2].isSorted()", '!["b", "a"].isSorted()'),
            [
                member(f"list_{name}_is_sorted_bool", (list_of(of),), BOOL, _is_sorted, **searching)
                for name, of in COMPARABLE
            ],
        ),
        function(
            "sum",
            _LIBRARY,
            "The sum of numbers or durations; zero for an empty list.",
            ("[1, 2, 3].sum() == 6",),
            [
                member(f"list_{name}_sum_{name}", (list_of(of),), of, _sum_from(zero), **searching)
                for name, of, zero in _SUMMABLE
            ],
        ),
        function(
            "max",
            _LIBRARY,
            "The greatest element; an error for an empty list.",
            ("[1, 3, 2].max() == 3",),
            [member(f"list_{name}_max_{name}", (list_of(of),), of, largest, **searching) for name, of in COMPARABLE],
        ),
        function(
            "min",
            _LIBRARY,
            "The least element; an error for an empty list.",
            ("[2, 1, 3].min() == 1",),
            [member(f"list_{name}_min_{name}", (list_of(of),), of, smallest, **searching) for name, of in COMPARABLE],
        ),
        function(
            "indexOf",
            _LIBRARY,
            "Where an element first occurs, -1 if nowhere.",
            ("[1, 2, 2].indexOf(2) == 1",),
            [member("list_a_index_of_int", (_LIST_A, A), INT, _index_of, **searching)],
        ),
        function(
            "lastIndexOf",
            _LIBRARY,
            "Where an element last occurs, -1 if nowhere.",
            ("[1, 2, 2].lastIndexOf(2) == 2",),
            [member("list_a_last_index_of_int", (_LIST_A, A), INT, _last_index_of, **searching)],
        ),
        function(
            "includes",
            _LIBRARY,
            "Whether a list has an element, or a single value equals it; for attributes that may be either.",
            ('["a", "b"].includes("b")', '"a".includes("a")'),
            [
                member(
                    "dra_includes_dyn_dyn",
                    (DYN, DYN),
                    BOOL,
                    _includes,
                    version=INCLUDES,
                    estimate=_includes_estimate,
                ),
                member(
                    "list_includes_dyn_dyn",
                    (DYN, DYN),
                    BOOL,
                    _includes_any,
                    version=INCLUDES_ANY,
                    estimate=_includes_any_estimate,
                    actual=element_scan_actual,
                ),
            ],
        ),
    ]
