"""Kubernetes' own functions on lists: order, extremes, sums and searching."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubectl_dra.cel.errors import EvaluationError, no_such_overload
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import CallEstimate, Cost, CostRange, Operands
from kubectl_dra.cel.libraries import INCLUDES, INCLUDES_ANY
from kubectl_dra.cel.library.operators import add
from kubectl_dra.cel.library.support import COMPARABLE, SEARCH, declared, has_order, member, same, try_compare
from kubectl_dra.cel.types import BOOL, DOUBLE, DURATION, DYN, INT, UINT, A, CelType, list_of
from kubectl_dra.cel.values import Duration, Uint, Value, is_list

_LIST_A = list_of(A)
_INCLUDES_LIMIT = 48
_SUMMABLE: tuple[tuple[CelType, Value], ...] = ((INT, 0), (UINT, Uint(0)), (DOUBLE, 0.0), (DURATION, Duration(0)))


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
    return next((index for index, value in enumerate(values) if same(value, wanted)), -1)


def _last_index_of(values: Sequence[Value], wanted: Value) -> int:
    return next((index for index in range(len(values) - 1, -1, -1) if same(values[index], wanted)), -1)


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


def _includes_any(target: Value, wanted: Value) -> bool:
    return any(same(value, wanted) for value in target) if is_list(target) else same(target, wanted)


def _includes_any_estimate(operands: Operands) -> CallEstimate | None:
    assert SEARCH.estimate is not None
    return SEARCH.estimate(operands) if operands.element(0) is not None else CallEstimate(operands.size(0))


def functions() -> list[Function]:
    largest, smallest = _extreme("max", -1), _extreme("min", 1)
    limited = Cost(lambda operands: CallEstimate(CostRange(0, _INCLUDES_LIMIT)))
    unlimited = Cost(_includes_any_estimate, SEARCH.actual)
    return declared(
        "lists",
        {
            "isSorted": [
                member(f"list_{of.kind}_is_sorted_bool", (list_of(of),), BOOL, _is_sorted, SEARCH) for of in COMPARABLE
            ],
            "sum": [
                member(f"list_{of.kind}_sum_{of.kind}", (list_of(of),), of, _sum_from(zero), SEARCH)
                for of, zero in _SUMMABLE
            ],
            "max": [member(f"list_{of.kind}_max_{of.kind}", (list_of(of),), of, largest, SEARCH) for of in COMPARABLE],
            "min": [member(f"list_{of.kind}_min_{of.kind}", (list_of(of),), of, smallest, SEARCH) for of in COMPARABLE],
            "indexOf": [member("list_a_index_of_int", (_LIST_A, A), INT, _index_of, SEARCH)],
            "lastIndexOf": [member("list_a_last_index_of_int", (_LIST_A, A), INT, _last_index_of, SEARCH)],
            "includes": [
                member("dra_includes_dyn_dyn", (DYN, DYN), BOOL, _includes, limited, INCLUDES),
                member("list_includes_dyn_dyn", (DYN, DYN), BOOL, _includes_any, unlimited, INCLUDES_ANY),
            ],
        },
    )
