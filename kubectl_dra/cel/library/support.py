"""Shared by all families: declaring overloads, comparing values, sizes for cost hooks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kubectl_dra.cel import types
from kubectl_dra.cel.errors import ErrorKind, EvaluationError, no_such_overload
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.known_sizes import ONE, STRING_TRAVERSAL_FACTOR, CallEstimate, CostNode, Estimate, Estimator
from kubectl_dra.cel.types import CelType
from kubectl_dra.cel.values import Duration, Timestamp, Uint, Value, equals, is_list

Call = Callable[..., Any]

"""For overloads that Kubernetes 1.37 changed, with version 0.29 of cel-go."""

COMPARABLE: tuple[tuple[str, CelType], ...] = (
    ("int", types.INT),
    ("uint", types.UINT),
    ("double", types.DOUBLE),
    ("bool", types.BOOL),
    ("duration", types.DURATION),
    ("timestamp", types.TIMESTAMP),
    ("string", types.STRING),
    ("bytes", types.BYTES),
)
"""The types whose values have an order, in declaration order of the overloads."""


def overload(
    id: str, parameters: Iterable[CelType], result: CelType, implementation: Call | None = None, **more: Any
) -> Overload:
    """A global overload; `more` are further fields of Overload."""
    return Overload(id, tuple(parameters), result, False, implementation, **more)


def member(
    id: str, parameters: Iterable[CelType], result: CelType, implementation: Call | None = None, **more: Any
) -> Overload:
    """A member overload, receiver first; `more` are further fields of Overload."""
    return Overload(id, tuple(parameters), result, True, implementation, **more)


def function(
    name: str,
    library: str,
    documentation: str,
    examples: Sequence[str],
    overloads: Iterable[Overload],
    implementation: Call | None = None,
) -> Function:
    return Function(name, tuple(overloads), implementation, documentation, tuple(examples), library)


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1. Raises EvaluationError for values without an order, or without one between their types."""
    kind = left.__class__
    other = right.__class__
    if kind is float and left != left:
        raise EvaluationError("NaN values cannot be ordered")
    if kind is other:
        if kind not in _ORDERED:
            raise no_such_overload()
        if right != right:
            raise EvaluationError("NaN values cannot be ordered")
        return int(left > right) - int(left < right)
    if kind not in _NUMBERS or other not in _NUMBERS:
        raise no_such_overload()
    if kind is float:
        return _compare_double(left, right)
    if other is float:
        return -_compare_double(right, left)
    return int(left > right) - int(left < right)


def _compare_double(double: float, integer: int) -> int:
    if double != double:
        raise EvaluationError("NaN values cannot be ordered")
    # As upstream does, the integer is rounded to a double, except beyond the range of integers.
    limit = 2.0**64 if integer.__class__ is Uint else 2.0**63
    if double > limit:
        return 1
    if double < (0.0 if integer.__class__ is Uint else -limit):
        return -1
    rounded = float(integer)
    return (double > rounded) - (double < rounded)


_NUMBERS = frozenset({int, Uint, float})
_ORDERED = frozenset({int, Uint, float, bool, str, bytes, Timestamp, Duration})


def try_compare(left: Value, right: Value) -> int | None:
    """Like compare, but None for values that cannot be compared; functions on lists skip those."""
    try:
        return compare(left, right)
    except EvaluationError as error:
        if error.fatal:
            raise
        return None


def has_order(value: Value) -> bool:
    return value.__class__ in _ORDERED


def same(left: Value, right: Value) -> bool:
    """Equality for searches through lists: a missing overload counts as "not equal"."""
    try:
        return equals(left, right)
    except EvaluationError as error:
        if error.fatal:
            raise
        return False


def not_supported(function: str, first: Value) -> EvaluationError:
    """The error of a function that does not support values of the first value's type at all."""
    # Values with methods of their own are asked for one, and then the function is not named.
    named = first.__class__ not in (str, Timestamp, Duration)
    if not named:
        return no_such_overload()
    return EvaluationError(f"no such overload: {function}", kind=ErrorKind.NO_OVERLOAD)


def text_of(value: Value) -> str:
    """A string argument. Raises "no such overload" for anything else."""
    if value.__class__ is not str:
        raise no_such_overload()
    return value


# Sizes and costs.


def actual_size(value: Value) -> int:
    """Characters, bytes, elements or entries; bytes of an address; 1 for values without a size."""
    if isinstance(value, (str, bytes, dict)) or is_list(value):
        return len(value)
    size: int | None = getattr(value, "cel_size", None)
    return 1 if size is None else size


def scanned(size: int, factor: float = STRING_TRAVERSAL_FACTOR) -> int:
    """Cost of reading that many characters."""
    return math.ceil(size * factor)


def nominal_estimate(estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]) -> CallEstimate:
    """One unit, whatever the operands."""
    return CallEstimate(ONE)


def nominal_actual(values: Sequence[Value], result: Value) -> int:
    return 1


def scan_first_argument(factor: float, sized: bool = False) -> Estimate:
    """Cost of reading the first argument. With `sized`, the result is as long as the argument."""

    def estimate(estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]) -> CallEstimate | None:
        if not arguments:
            return None
        size = estimator.size(arguments[0])
        return CallEstimate(size.scaled(factor), size if sized else None)

    return estimate


def scan_target(factor: float) -> Estimate:
    """Cost of reading the receiver. The result is as long as the receiver."""

    def estimate(estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]) -> CallEstimate | None:
        if target is None:
            return None
        size = estimator.size(target)
        return CallEstimate(size.scaled(factor), size)

    return estimate


def scan_second_value(values: Sequence[Value], result: Value) -> int:
    """Actual cost of reading the second value."""
    return scanned(actual_size(values[1]))


def scan_first_value(factor: float = STRING_TRAVERSAL_FACTOR) -> Callable[[Sequence[Value], Value], int]:
    """Actual cost of reading the first value (the receiver of a member function)."""

    def actual(values: Sequence[Value], result: Value) -> int:
        return scanned(actual_size(values[0]), factor)

    return actual


# Searching a list or string: indexOf, isSorted, max ...


def element_scan_estimate(
    estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]
) -> CallEstimate | None:
    """One unit per element, more for texts. A string has no elements and is read once."""
    if target is None:
        return None
    element = estimator.element(target)
    if element is None:
        return CallEstimate(estimator.size(target).scaled(STRING_TRAVERSAL_FACTOR))
    cost = ONE
    if element.type.kind in ("string", "bytes"):
        cost = cost.plus(estimator.size(element).scaled(STRING_TRAVERSAL_FACTOR))
    return CallEstimate(estimator.size(target).times(cost))


def element_scan_actual(values: Sequence[Value], result: Value) -> int:
    return _traversal(values[0])


def _traversal(value: Value) -> int:
    """Cost of walking through a value. Unlike elsewhere, lengths are in bytes and tenths are dropped."""
    if isinstance(value, str):
        return int(len(value.encode()) * STRING_TRAVERSAL_FACTOR)
    if isinstance(value, bytes):
        return int(len(value) * STRING_TRAVERSAL_FACTOR)
    if isinstance(value, dict):
        return sum(_traversal(key) + _traversal(entry) for key, entry in value.items())
    if is_list(value):
        return sum(map(_traversal, value))
    return 1
