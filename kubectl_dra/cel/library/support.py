"""Shared by all families: declaring overloads, comparing values, sizes for cost hooks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kubectl_dra.cel import types
from kubectl_dra.cel.errors import ErrorKind, EvaluationError, no_such_overload
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.known_sizes import ONE, STRING_TRAVERSAL_FACTOR, CallEstimate, Cost, CostRange, Operands, Size
from kubectl_dra.cel.libraries import ALWAYS, LibraryVersion
from kubectl_dra.cel.types import CelType
from kubectl_dra.cel.values import Duration, OptionalValue, Timestamp, Uint, Value, equals, is_list

_NUMERIC_TYPES = (types.INT, types.UINT, types.DOUBLE)
COMPARABLE = (*_NUMERIC_TYPES, types.BOOL, types.DURATION, types.TIMESTAMP, types.STRING, types.BYTES)
"""The types whose values have an order, in declaration order of the overloads."""


def overload(id: str, parameters: Iterable[CelType], result: CelType, *more: Any, **named: Any) -> Overload:
    """A global overload; ``more`` are its implementation, cost and version, as in ``Overload``."""
    return Overload(id, tuple(parameters), result, False, *more, **named)


def member(id: str, parameters: Iterable[CelType], result: CelType, *more: Any, **named: Any) -> Overload:
    """A member overload, receiver first; ``more`` are its implementation, cost and version, as in ``Overload``."""
    return Overload(id, tuple(parameters), result, True, *more, **named)


def declared(
    library: str,
    overloads: Mapping[str, Sequence[Overload]],
    implementations: Mapping[str, Callable[..., Any]] | None = None,
    *,
    version: LibraryVersion = ALWAYS,
) -> list[Function]:
    """Functions by name with their overloads.

    ``implementations`` are those that serve all overloads of a function, ``version`` is that of overloads that name
    none of their own.
    """
    shared = implementations or {}
    return [
        Function(
            name,
            tuple([row if row.version is not ALWAYS else replace(row, version=version) for row in rows]),
            shared.get(name),
            library,
        )
        for name, rows in overloads.items()
    ]


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


def comes_after(left: Any, right: Any) -> bool:
    """Whether a quantity or version is greater than another one."""
    return bool(left.compare(right) > 0)


def comes_before(left: Any, right: Any) -> bool:
    """Whether a quantity or version is less than another one."""
    return bool(left.compare(right) < 0)


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


def parsing(parse: Callable[..., Value], problem: type[Exception]) -> Callable[..., Value]:
    """A function that makes a value of a text; what ``parse`` cannot read is an error of the evaluation."""

    def parsed(*values: Value) -> Value:
        try:
            return parse(*values)
        except problem as error:
            raise EvaluationError(str(error)) from None

    return parsed


def accepted(parse: Callable[..., Value], problem: type[Exception]) -> Callable[..., bool]:
    """Whether ``parse`` can read a text."""

    def accepts(*values: Value) -> bool:
        try:
            parse(*values)
        except problem:
            return False
        return True

    return accepts


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


def size_of(value: Value) -> int:
    """The size as cel-go itself counts: that of an optional is its content's."""
    while value.__class__ is OptionalValue and value.has_value:
        value = value.value
    return actual_size(value)


def _shorter(operands: Operands) -> CallEstimate:
    largest = min(operands.size(0).max, operands.size(1).max)
    return CallEstimate(CostRange(1 if largest else 0, largest).scaled(STRING_TRAVERSAL_FACTOR))


def _both(operands: Operands) -> CallEstimate:
    size = operands.size(0).plus(operands.size(1))
    return CallEstimate(size.scaled(STRING_TRAVERSAL_FACTOR), size)


def scanning(resulting: Callable[[Size], Size | None] = lambda size: None) -> Cost:
    """The cost of reading the first operand, as cel-go charges it; ``resulting`` is the size of the result."""

    def estimate(operands: Operands) -> CallEstimate:
        size = operands.size(0)
        return CallEstimate(size.scaled(STRING_TRAVERSAL_FACTOR), resulting(size))

    return Cost(estimate, lambda values, result: scanned(size_of(values[0])), certain=True)


COMPARING = Cost(_shorter, lambda values, result: scanned(min(map(size_of, values))), certain=True)
"""Two texts are read up to the length of the shorter one."""
JOINING = Cost(_both, lambda values, result: scanned(sum(map(size_of, values))), certain=True)
"""Two texts are read, and stand in the result one behind the other."""
AFFIX = Cost(
    lambda operands: CallEstimate(operands.size(1).scaled(STRING_TRAVERSAL_FACTOR)),
    lambda values, result: scanned(size_of(values[0])),
    certain=True,
)
"""Whether a text begins or ends with another one."""
WITHIN = Cost(
    lambda operands: CallEstimate(
        operands.size(0).scaled(STRING_TRAVERSAL_FACTOR).times(operands.size(1).scaled(STRING_TRAVERSAL_FACTOR))
    ),
    lambda values, result: scanned(size_of(values[0])) * scanned(size_of(values[1])),
    certain=True,
)
"""Whether a text contains another one."""
IN_LIST = Cost(lambda operands: CallEstimate(operands.size(1)), lambda values, result: size_of(values[1]), certain=True)
"""Whether a value is in a list."""
NOMINAL = Cost(lambda operands: CallEstimate(ONE), lambda values, result: 1)
"""One unit, whatever the operands."""


def reading(factor: float = STRING_TRAVERSAL_FACTOR, *, sized: bool = False) -> Cost:
    """The cost of reading the first operand. With ``sized``, the result is at most as long as that operand."""

    def estimate(operands: Operands) -> CallEstimate:
        size = operands.size(0)
        return CallEstimate(size.scaled(factor), size if sized else None)

    return Cost(estimate, lambda values, result: scanned(actual_size(values[0]), factor))


# Searching a list or string: indexOf, isSorted, max ...


def _search_estimate(operands: Operands) -> CallEstimate:
    element = operands.element(0)
    if element is None:
        return CallEstimate(operands.size(0).scaled(STRING_TRAVERSAL_FACTOR))
    kind, size = element
    cost = ONE
    if kind.kind in ("string", "bytes"):
        cost = cost.plus(size.scaled(STRING_TRAVERSAL_FACTOR))
    return CallEstimate(operands.size(0).times(cost))


def _traversal(value: Value) -> int:
    """Cost of walking through a value. Unlike elsewhere, lengths are in bytes and tenths are dropped."""
    if isinstance(value, str):
        return int(len(value.encode()) * STRING_TRAVERSAL_FACTOR)
    if isinstance(value, bytes):
        return int(len(value) * STRING_TRAVERSAL_FACTOR)
    if isinstance(value, dict):
        return sum(_traversal(key) + _traversal(element) for key, element in value.items())
    if is_list(value):
        return sum(map(_traversal, value))
    return 1


SEARCH = Cost(_search_estimate, lambda values, result: _traversal(values[0]))
"""One unit per element, more for texts. A string has no elements and is read once."""
