"""Functions on lists: Kubernetes' own, version 3 of cel-go's list extension, and sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Any

from kubectl_dra.cel.cost_model import (
    LIST_CREATE_COST,
    ONE,
    STRING_TRAVERSAL_FACTOR,
    UINT64_MAX,
    CallEstimate,
    CostNode,
    CostRange,
    Estimate,
    Estimator,
    Size,
    fixed,
)
from kubectl_dra.cel.declarations import ALWAYS, Function
from kubectl_dra.cel.errors import CostLimitExceeded, EvaluationError, no_such_overload
from kubectl_dra.cel.library.operators import add
from kubectl_dra.cel.library.support import (
    COMPARABLE,
    actual_size,
    compare,
    element_scan_actual,
    element_scan_estimate,
    function,
    has_order,
    member,
    not_supported,
    overload,
    same,
)
from kubectl_dra.cel.types import BOOL, DOUBLE, DURATION, DYN, INT, UINT, A, CelType, list_of, type_param
from kubectl_dra.cel.values import Duration, Uint, Value, is_list, type_name

_LIBRARY = "lists"
_SETS = "sets"
# The list extension came with 1.34, sets with 1.29; new expressions may use them one release later.
_SINCE_EXTENSION = "1.35"
_STORED_SINCE_EXTENSION = "1.34"
_SINCE_SETS = "1.30"
_T = type_param("T")
_LIST_T = list_of(_T)
_LIST_A = list_of(A)
_LIST_DYN = list_of(DYN)
_INCLUDES_LIMIT = 48
# Up to this length upstream sorts by insertion, which matters for NaN, the only key without a place.
_INSERTION_SORTED = 12
_SUMMABLE: tuple[tuple[str, CelType, Value], ...] = (
    ("int", INT, 0),
    ("uint", UINT, Uint(0)),
    ("double", DOUBLE, 0.0),
    ("duration", DURATION, Duration(0)),
)


def _listed(value: Value) -> Sequence[Value]:
    if is_list(value):
        values: Sequence[Value] = value
        return values
    raise no_such_overload()


# Kubernetes' functions.


def _order(left: Value, right: Value) -> int | None:
    """None where two values cannot be compared, which these functions overlook."""
    try:
        return compare(left, right)
    except EvaluationError as error:
        if error.fatal:
            raise
        return None


def _is_sorted(values: Sequence[Value]) -> bool:
    for index, value in enumerate(values):
        if not has_order(value):
            raise no_such_overload()
        if index and _order(values[index - 1], value) == 1:
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
            if _order(best, value) == worse:
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


# The list extension.


def _slice(values: Sequence[Value], start: int, end: int) -> list[Value]:
    what = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise EvaluationError(what + "negative indexes not supported")
    if start > end:
        raise EvaluationError(what + "start index must be less than or equal to end index")
    if len(values) < end:
        raise EvaluationError(f"{what}list is length {len(values)}")
    return list(values[start:end])


def _flatten(target: Value, *depths: Value) -> list[Value]:
    if not is_list(target) or any(depth.__class__ is not int for depth in depths):
        shown = ", ".join(map(type_name, depths))
        raise EvaluationError(f"no such overload: {type_name(target)}.flatten({shown})")
    depth = depths[0] if depths else 1
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    return _flattened(target, depth)


def _flattened(values: Sequence[Value], depth: int) -> list[Value]:
    flat: list[Value] = []
    for value in values:
        if depth and is_list(value):
            flat.extend(_flattened(value, depth - 1))
        else:
            flat.append(value)
    return flat


def _sort(target: Value) -> Sequence[Value]:
    if not is_list(target):
        raise not_supported("sort", target)
    return _sort_by_keys(target, target)


def _sort_by_keys(target: Value, associated: Value) -> Sequence[Value]:
    """The values ordered by the keys at the same places; a short list keeps the order of equal keys."""
    values, keys = _listed(target), _listed(associated)
    if len(values) != len(keys):
        raise EvaluationError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return values
    if not has_order(keys[0]):
        raise EvaluationError("list elements must be comparable")
    if len(keys) > 1 and any(key.__class__ is not keys[0].__class__ for key in keys):
        raise EvaluationError("list elements must have the same type")

    def by_key(left: int, right: int) -> int:
        return _order(keys[left], keys[right]) or 0

    order = list(range(len(keys)))
    if len(order) > _INSERTION_SORTED:
        # Upstream does not keep the order of equal keys here; nothing can be said about it.
        order.sort(key=cmp_to_key(by_key))
        return [values[index] for index in order]
    for end in range(1, len(order)):
        at = end
        while at and by_key(order[at], order[at - 1]) < 0:
            order[at], order[at - 1] = order[at - 1], order[at]
            at -= 1
    return [values[index] for index in order]


def _range(count: int) -> list[Value]:
    # More elements than a cost limit lets anybody count are not worth the memory.
    if count > 10_000_000:
        raise CostLimitExceeded
    return list(range(count))


def _reverse(values: Sequence[Value]) -> list[Value]:
    return list(reversed(values))


def _distinct(values: Sequence[Value]) -> list[Value]:
    kept: list[Value] = []
    for value in values:
        if not any(same(value, other) for other in kept):
            kept.append(value)
    return kept


# Sets.


def _holds(values: Sequence[Value], wanted: Value) -> bool:
    return any(same(wanted, value) for value in values)


def _contains(values: Sequence[Value], part: Sequence[Value]) -> bool:
    return all(_holds(values, value) for value in part)


def _equivalent(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return any(_holds(right, value) for value in left)


# Costs.


def _allocating(factor: float, size: Size) -> CallEstimate:
    return CallEstimate(size.scaled(factor).plus(ONE).plus(fixed(LIST_CREATE_COST)), size)


def _allocated(factor: float, size: int) -> int:
    product = float(size) * factor
    # Beyond the range of unsigned integers upstream's conversion gives 2**63; sums wrap around.
    whole = int(product) if abs(product) < 2.0**64 else 2**63
    return (whole + 1 + LIST_CREATE_COST) % 2**64


def _whole(node: CostNode, default: int) -> int:
    """A literal int, 0 when it is negative, else the default."""
    return max(node.literal, 0) if type(node.literal) is int else default


def _slice_estimate(
    estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]
) -> CallEstimate | None:
    if target is None or len(arguments) != 2:
        return None
    count = _whole(arguments[1], estimator.size(target).max) - _whole(arguments[0], 0)
    return _allocating(1, fixed(count % 2**64))


def _range_estimate(
    estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]
) -> CallEstimate | None:
    return _allocating(1, fixed(_whole(arguments[0], UINT64_MAX)))


def _reverse_estimate(
    estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]
) -> CallEstimate | None:
    return None if target is None else _allocating(1, estimator.size(target))


def _flatten_estimate(
    estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]
) -> CallEstimate | None:
    if target is None:
        return None
    depth = _whole(arguments[0], UINT64_MAX) if arguments else 1
    return _allocating(float(depth), estimator.size(target))


def _self_compare_estimate(factor: float, by_keys: bool = False) -> Estimate:
    def estimate(estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]) -> CallEstimate | None:
        if target is None:
            return None
        size = estimator.size(arguments[0] if by_keys else target)
        return _allocating(factor, size.times(size))

    return estimate


def _output_actual(values: Sequence[Value], result: Value) -> int:
    return _allocated(1, actual_size(result))


def _flatten_actual(values: Sequence[Value], result: Value) -> int:
    depth = 1.0 if len(values) == 1 else float(values[1]) if values[1].__class__ is int else 0.0
    return _allocated(depth, actual_size(values[0]))


def _self_compare_actual(position: int) -> Callable[[Sequence[Value], Value], int | None]:
    def actual(values: Sequence[Value], result: Value) -> int | None:
        elements = values[position]
        if not is_list(elements):
            return None
        factor = 2.0
        if elements and type_name(elements[0]) in ("string", "bytes"):
            factor += STRING_TRAVERSAL_FACTOR
        return _allocated(factor, len(elements) ** 2)

    return actual


def _sets_estimate(factor: float) -> Estimate:
    def estimate(estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]) -> CallEstimate | None:
        left, right = (estimator.size(argument) for argument in arguments)
        return CallEstimate(left.times(right).scaled(factor).plus(ONE))

    return estimate


def _sets_actual(factor: float) -> Callable[[Sequence[Value], Value], int]:
    def actual(values: Sequence[Value], result: Value) -> int:
        return 1 + int(float(actual_size(values[0]) * actual_size(values[1])) * factor)

    return actual


def _includes_estimate(estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]) -> CallEstimate:
    return CallEstimate(CostRange(0, _INCLUDES_LIMIT))


def functions() -> list[Function]:
    return [*_kubernetes_functions(), *_extension_functions(), *_set_functions()]


def _kubernetes_functions() -> list[Function]:
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
                    since="1.36",
                    stored_since="1.36",
                    feature="DRAListTypeAttributes",
                    estimate=_includes_estimate,
                )
            ],
        ),
    ]


def _extension_functions() -> list[Function]:
    since: dict[str, Any] = {"since": _SINCE_EXTENSION, "stored_since": _STORED_SINCE_EXTENSION}
    flattening = {"estimate": _flatten_estimate, "actual": _flatten_actual, **since}
    return [
        function(
            "slice",
            _LIBRARY,
            "The elements from an index up to (not including) another one.",
            ("[1, 2, 3, 4].slice(1, 3) == [2, 3]",),
            [
                member(
                    "list_slice",
                    (_LIST_T, INT, INT),
                    _LIST_T,
                    _slice,
                    estimate=_slice_estimate,
                    actual=_output_actual,
                    **since,
                )
            ],
        ),
        function(
            "flatten",
            _LIBRARY,
            "The elements of the lists in a list, one level or so many deep.",
            ("[[1], [2, 3]].flatten() == [1, 2, 3]", "[[[1]], [[2]]].flatten(2) == [1, 2]"),
            [
                member("list_flatten", (list_of(_LIST_T),), _LIST_T, **flattening),
                member("list_flatten_int", (_LIST_DYN, INT), _LIST_DYN, **flattening),
            ],
            _flatten,
        ),
        function(
            "sort",
            _LIBRARY,
            "The elements in ascending order.",
            ("[3, 1, 2].sort() == [1, 2, 3]",),
            [
                member(
                    f"list_{of.name}_sort",
                    (list_of(of),),
                    list_of(of),
                    estimate=_self_compare_estimate(_sort_factor(of)),
                    actual=_self_compare_actual(0),
                    **since,
                )
                for _, of in COMPARABLE
            ],
            _sort,
        ),
        function(
            "@sortByAssociatedKeys",
            _LIBRARY,
            "Inside the macro sortBy only: the elements ordered by keys.",
            (),
            [
                member(
                    f"list_{of.name}_sortByAssociatedKeys",
                    (_LIST_T, list_of(of)),
                    _LIST_T,
                    estimate=_self_compare_estimate(_sort_factor(of), by_keys=True),
                    actual=_self_compare_actual(1),
                    **since,
                )
                for _, of in COMPARABLE
            ],
            _sort_by_keys,
        ),
        function(
            "lists.range",
            _LIBRARY,
            "The integers from 0 up to (not including) a number.",
            ("lists.range(3) == [0, 1, 2]",),
            [
                overload(
                    "lists_range",
                    (INT,),
                    list_of(INT),
                    _range,
                    estimate=_range_estimate,
                    actual=_output_actual,
                    **since,
                )
            ],
        ),
        function(
            "reverse",
            _LIBRARY,
            "The elements in reverse order.",
            ("[1, 2].reverse() == [2, 1]",),
            [
                member(
                    "list_reverse",
                    (_LIST_T,),
                    _LIST_T,
                    _reverse,
                    estimate=_reverse_estimate,
                    actual=_output_actual,
                    **since,
                )
            ],
        ),
        function(
            "distinct",
            _LIBRARY,
            "The elements without repetitions.",
            ("[1, 2, 1].distinct() == [1, 2]",),
            [
                member(
                    "list_distinct",
                    (_LIST_T,),
                    _LIST_T,
                    _distinct,
                    estimate=_self_compare_estimate(2.0),
                    actual=_self_compare_actual(0),
                    **since,
                )
            ],
        ),
    ]


def _sort_factor(of: CelType) -> float:
    return 2.0 + STRING_TRAVERSAL_FACTOR if of.kind in ("string", "bytes") else 2.0


def _set_functions() -> list[Function]:
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
            since=_SINCE_SETS,
            stored_since=ALWAYS,
            estimate=_sets_estimate(factor),
            actual=_sets_actual(factor),
        )
        return function(f"sets.{name}", _SETS, documentation, examples, [declared])

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
