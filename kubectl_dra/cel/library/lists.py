"""Functions on lists: Kubernetes' own, version 3 of cel-go's list extension, and lists as sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key

from kubectl_dra.cel.errors import CostLimitExceeded, ErrorKind, EvaluationError, no_such_overload
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import (
    LIST_CREATE_COST,
    ONE,
    STRING_TRAVERSAL_FACTOR,
    UINT64_MAX,
    CallEstimate,
    Cost,
    CostNode,
    CostRange,
    Operands,
    Size,
    fixed,
)
from kubectl_dra.cel.libraries import FORMER_LISTS, INCLUDES, INCLUDES_ANY, LISTS, REVISED, SETS
from kubectl_dra.cel.library.operators import add
from kubectl_dra.cel.library.support import (
    COMPARABLE,
    SEARCH,
    actual_size,
    declared,
    has_order,
    member,
    not_supported,
    overload,
    same,
    try_compare,
)
from kubectl_dra.cel.types import BOOL, DOUBLE, DURATION, DYN, INT, UINT, A, CelType, list_of, type_param
from kubectl_dra.cel.values import Duration, Uint, Value, is_list, type_name

_LIST_A = list_of(A)
_LIST_T = list_of(type_param("T"))
_LIST_DYN = list_of(DYN)
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


def _includes_any_estimate(operands: Operands) -> CallEstimate:
    return SEARCH.estimate(operands) if operands.element(0) is not None else CallEstimate(operands.size(0))


def _of_kubernetes() -> list[Function]:
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


# Version 3 of cel-go's list extension: slicing, ordering and flattening lists.
#
# These functions return new lists, whose creation their costs include.

_LONGEST_RANGE = 1_000_000
"""The elements of ``lists.range`` at most, since 1.37."""
_TEXT_FACTOR = 2.0 + STRING_TRAVERSAL_FACTOR
# Up to this length upstream sorts by insertion, which matters for NaN, the only key without a place.
_INSERTION_SORTED = 12


def _listed(value: Value) -> Sequence[Value]:
    if is_list(value):
        values: Sequence[Value] = value
        return values
    raise no_such_overload()


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
        raise EvaluationError(f"no such overload: {type_name(target)}.flatten({shown})", kind=ErrorKind.NO_OVERLOAD)
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
    """The values ordered by the keys at the same positions. Short lists keep the order of equal keys."""
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
        return try_compare(keys[left], keys[right]) or 0

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


def _checked_range(count: int) -> list[Value]:
    if count < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {count}")
    if count > _LONGEST_RANGE:
        raise EvaluationError(f"lists.range: size {count} exceeds maximum allowed ({_LONGEST_RANGE})")
    return list(range(count))


def _distinct(values: Sequence[Value]) -> list[Value]:
    kept: list[Value] = []
    for value in values:
        if not any(same(value, other) for other in kept):
            kept.append(value)
    return kept


def _allocating(factor: float, size: Size) -> CallEstimate:
    return CallEstimate(size.scaled(factor).plus(ONE).plus(fixed(LIST_CREATE_COST)), size)


def _allocated(factor: float, size: int) -> int:
    product = float(size) * factor
    # Beyond the range of unsigned integers upstream's conversion gives 2**63; sums wrap around.
    whole = int(product) if abs(product) < 2.0**64 else 2**63
    return (whole + 1 + LIST_CREATE_COST) % 2**64


def _whole(node: CostNode, default: int) -> int:
    """A literal int (0 if negative), else the default."""
    return max(node.literal, 0) if type(node.literal) is int else default


def _slice_estimate(operands: Operands) -> CallEstimate:
    _, start, end = operands.nodes
    count = _whole(end, operands.size(0).max) - _whole(start, 0)
    return _allocating(1, fixed(count % 2**64))


def _flatten_estimate(operands: Operands) -> CallEstimate:
    depth = _whole(operands.nodes[1], UINT64_MAX) if len(operands.nodes) > 1 else 1
    return _allocating(float(depth), operands.size(0))


def _flatten_actual(values: Sequence[Value], result: Value) -> int:
    depth = 1.0 if len(values) == 1 else float(values[1]) if values[1].__class__ is int else 0.0
    return _allocated(depth, actual_size(values[0]))


def _output_actual(values: Sequence[Value], result: Value) -> int:
    return _allocated(1, actual_size(result))


def _comparing_itself(position: int, factor: float = 2.0) -> Cost:
    """Each element of the list at that position with each."""

    def estimate(operands: Operands) -> CallEstimate:
        size = operands.size(position)
        return _allocating(factor, size.times(size))

    def actual(values: Sequence[Value], result: Value) -> int:
        elements = values[position]
        if not is_list(elements):
            return 1
        texts = elements and type_name(elements[0]) in ("string", "bytes")
        return _allocated(_TEXT_FACTOR if texts else 2.0, len(elements) ** 2)

    return Cost(estimate, actual, certain=True)


def _sorting(of: CelType, position: int) -> Cost:
    return _comparing_itself(position, _TEXT_FACTOR if of.kind in ("string", "bytes") else 2.0)


def _of_extension() -> list[Function]:
    slicing = Cost(_slice_estimate, _output_actual, True)
    flattening = Cost(_flatten_estimate, _flatten_actual, True)
    counting = Cost(lambda operands: _allocating(1, fixed(_whole(operands.nodes[0], UINT64_MAX))), _output_actual, True)
    reversing = Cost(lambda operands: _allocating(1, operands.size(0)), _output_actual, True)
    return declared(
        "lists",
        {
            "slice": [member("list_slice", (_LIST_T, INT, INT), _LIST_T, _slice, slicing)],
            "flatten": [
                member("list_flatten", (list_of(_LIST_T),), _LIST_T, None, flattening),
                member("list_flatten_int", (_LIST_DYN, INT), _LIST_DYN, None, flattening),
            ],
            "sort": [
                member(f"list_{of.name}_sort", (list_of(of),), list_of(of), None, _sorting(of, 0)) for of in COMPARABLE
            ],
            "@sortByAssociatedKeys": [
                member(f"list_{of.name}_sortByAssociatedKeys", (_LIST_T, list_of(of)), _LIST_T, cost=_sorting(of, 1))
                for of in COMPARABLE
            ],
            "lists.range": [
                overload("lists_range", (INT,), list_of(INT), _range, counting, FORMER_LISTS),
                overload("lists_range", (INT,), list_of(INT), _checked_range, counting, REVISED),
            ],
            "reverse": [member("list_reverse", (_LIST_T,), _LIST_T, lambda values: list(reversed(values)), reversing)],
            "distinct": [member("list_distinct", (_LIST_T,), _LIST_T, _distinct, _comparing_itself(0))],
        },
        {"flatten": _flatten, "sort": _sort, "@sortByAssociatedKeys": _sort_by_keys},
        version=LISTS,
    )


# Lists as sets: whether one contains, equals or intersects another.


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

    return Cost(estimate, actual, certain=True)


def _of_sets() -> list[Function]:
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


def functions() -> list[Function]:
    return [*_of_kubernetes(), *_of_extension(), *_of_sets()]
