"""Arithmetic within 64 bits on numbers, durations and timestamps; concatenation of texts and lists.

Results out of range are errors, except that doubles follow IEEE 754.
"""

from __future__ import annotations

import math

from kubectl_dra.cel.errors import EvaluationError, InternalError, no_such_overload
from kubectl_dra.cel.library.support import not_supported
from kubectl_dra.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, Uint, Value, is_list

_FIRST_SECOND = -62135596800
_LAST_SECOND = 253402300799
_SECOND = 10**9
# Kubernetes joins lists without copying, for one unit of cost; doubling one forty times must not fill memory.
_LONGEST_LIST = 4_000_000
_ADDED = frozenset({int, Uint, float, str, bytes, Timestamp, Duration})
_SUBTRACTED = frozenset({int, Uint, float, Timestamp, Duration})
_MULTIPLIED = frozenset({int, Uint, float})
_DIVIDED_WITH_REST = frozenset({int, Uint})


def _checked_int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise EvaluationError("integer overflow")
    return value


def _checked_uint(value: int) -> Uint:
    if not 0 <= value <= UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def _checked_timestamp(nanoseconds: int, offset: int) -> Timestamp:
    if not _FIRST_SECOND <= nanoseconds // _SECOND <= _LAST_SECOND:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds, offset)


def _difference(left: int, right: int) -> Duration:
    """Nanoseconds between two instants. The whole seconds must also fit by themselves."""
    _checked_int((left // _SECOND - right // _SECOND) * _SECOND)
    return Duration(_checked_int(left - right))


def _refusal(operator: str, left: Value, supported: frozenset[type]) -> EvaluationError:
    return no_such_overload() if left.__class__ in supported else not_supported(operator, left)


def add(left: Value, right: Value) -> Value:
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind is int:
            return _checked_int(left + right)
        if kind is str or kind is float or kind is bytes:
            return left + right
        if kind is Uint:
            return _checked_uint(int(left) + int(right))
        if kind is Duration:
            return Duration(_checked_int(left.nanoseconds + right.nanoseconds))
    elif kind is Timestamp and other is Duration:
        return _checked_timestamp(left.nanoseconds + right.nanoseconds, left.offset)
    elif kind is Duration and other is Timestamp:
        return _checked_timestamp(left.nanoseconds + right.nanoseconds, right.offset)
    if is_list(left):
        if is_list(right):
            if len(left) + len(right) > _LONGEST_LIST:
                raise InternalError(f"undetermined: a list of more than {_LONGEST_LIST} elements")
            return [*left, *right]
    elif kind not in _ADDED:
        raise not_supported("_+_", left)
    raise no_such_overload()


def subtract(left: Value, right: Value) -> Value:
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind is int:
            return _checked_int(left - right)
        if kind is float:
            return left - right
        if kind is Uint:
            return _checked_uint(int(left) - int(right))
        if kind is Duration:
            return Duration(_checked_int(left.nanoseconds - right.nanoseconds))
        if kind is Timestamp:
            return _difference(left.nanoseconds, right.nanoseconds)
    elif kind is Timestamp and other is Duration:
        return _checked_timestamp(left.nanoseconds + _checked_int(-right.nanoseconds), left.offset)
    raise _refusal("_-_", left, _SUBTRACTED)


def multiply(left: Value, right: Value) -> Value:
    kind = left.__class__
    if kind is right.__class__:
        if kind is int:
            return _checked_int(left * right)
        if kind is float:
            return left * right
        if kind is Uint:
            return _checked_uint(int(left) * int(right))
    raise _refusal("_*_", left, _MULTIPLIED)


def divide(left: Value, right: Value) -> Value:
    kind = left.__class__
    if kind is not right.__class__ or kind not in _MULTIPLIED:
        raise _refusal("_/_", left, _MULTIPLIED)
    if kind is float:
        return _divide_doubles(left, right)
    if right == 0:
        raise EvaluationError("division by zero")
    if kind is Uint:
        return Uint(int(left) // int(right))
    quotient = abs(left) // abs(right)
    return _checked_int(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_doubles(left: float, right: float) -> float:
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def modulo(left: Value, right: Value) -> Value:
    kind = left.__class__
    if kind is not right.__class__ or (kind is not int and kind is not Uint):
        raise _refusal("_%_", left, _DIVIDED_WITH_REST)
    if right == 0:
        raise EvaluationError("modulus by zero")
    if kind is Uint:
        return Uint(int(left) % int(right))
    if left == INT_MIN and right == -1:
        raise EvaluationError("integer overflow")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def negate(value: Value) -> Value:
    kind = value.__class__
    if kind is int:
        return _checked_int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return Duration(_checked_int(-value.nanoseconds))
    raise no_such_overload() if kind is bool else not_supported("-_", value)
