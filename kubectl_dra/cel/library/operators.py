"""Operators: logic, equality, order, arithmetic, indexing and membership, with their overloads and costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kubectl_dra.cel import types
from kubectl_dra.cel.errors import EvaluationError, InternalError, no_such_overload
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.known_sizes import GENERIC, ONE, STRING_TRAVERSAL_FACTOR, CallEstimate, Cost, CostRange, Operands
from kubectl_dra.cel.libraries import ALWAYS, MIXED_NUMBERS, OPTIONALS
from kubectl_dra.cel.library.support import (
    COMPARING,
    IN_LIST,
    JOINING,
    compare,
    declared,
    has_order,
    not_supported,
    overload,
)
from kubectl_dra.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST_OF_A,
    MAP_OF_A_B,
    STRING,
    TIMESTAMP,
    UINT,
    A,
    B,
    K,
    V,
    list_of,
    map_of,
    optional_of,
)
from kubectl_dra.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, Uint, Value, is_list, type_name

# Arithmetic within 64 bits on numbers, durations and timestamps; concatenation of texts and lists.
#
# Results out of range are errors, except that doubles follow IEEE 754.

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


def checked_timestamp(nanoseconds: int, offset: int = 0) -> Timestamp:
    """A timestamp of the years from 1 to 9999. Raises EvaluationError for others."""
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
        return checked_timestamp(left.nanoseconds + right.nanoseconds, left.offset)
    elif kind is Duration and other is Timestamp:
        return checked_timestamp(left.nanoseconds + right.nanoseconds, right.offset)
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
        return checked_timestamp(left.nanoseconds + _checked_int(-right.nanoseconds), left.offset)
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


_MAX_FORMAT_SIZE = 64


def negate_bool(value: Value) -> bool:
    if value.__class__ is not bool:
        raise no_such_overload()
    return not value


def _relation_of(operator: str, holds: Callable[[int], bool]) -> Callable[[Value, Value], bool]:
    def relation(left: Value, right: Value) -> bool:
        if not has_order(left):
            raise not_supported(operator, left)
        return holds(compare(left, right))

    return relation


_NUMBER_PAIRS = (
    ("int64", INT, INT),
    ("int64_double", INT, DOUBLE),
    ("int64_uint64", INT, UINT),
    ("uint64", UINT, UINT),
    ("uint64_double", UINT, DOUBLE),
    ("uint64_int64", UINT, INT),
    ("double", DOUBLE, DOUBLE),
    ("double_int64", DOUBLE, INT),
    ("double_uint64", DOUBLE, UINT),
)


_RELATED = (
    ("bool", BOOL, BOOL, GENERIC),
    *((suffix, left, right, GENERIC) for suffix, left, right in _NUMBER_PAIRS),
    ("string", STRING, STRING, COMPARING),
    ("bytes", BYTES, BYTES, COMPARING),
    ("timestamp", TIMESTAMP, TIMESTAMP, GENERIC),
    ("duration", DURATION, DURATION, GENERIC),
)


def _relation(name: str) -> list[Overload]:
    return [
        overload(f"{name}_{suffix}", (left, right), BOOL, None, cost, ALWAYS if left is right else MIXED_NUMBERS)
        for suffix, left, right, cost in _RELATED
    ]


def _equality_estimate(operands: Operands) -> CallEstimate:
    left, right = operands.nodes
    if left.type == right.type:
        if left.type in (types.IP, types.CIDR, types.QUANTITY, types.SEMVER):
            return CallEstimate(ONE)
        if left.type.name == types.FORMAT.name:
            return CallEstimate(CostRange(1, _MAX_FORMAT_SIZE).scaled(STRING_TRAVERSAL_FACTOR))
        if left.type.name == types.URL.name:
            size = right.computed_size or ONE
            return CallEstimate(CostRange(1, size.max).scaled(STRING_TRAVERSAL_FACTOR))
    return COMPARING.estimate(operands)


_CHEAP_TO_COMPARE = frozenset(
    cheap.name for cheap in (types.QUANTITY, types.SEMVER, types.IP, types.CIDR, types.URL, types.FORMAT)
)


def _equality_actual(values: Sequence[Value], result: Value) -> int:
    assert COMPARING.actual is not None
    plain = values[0].__class__.__module__ == "builtins" or type_name(values[0]) not in _CHEAP_TO_COMPARE
    return COMPARING.actual(values, result) if plain else 1


def _of_numbers(name: str) -> list[Overload]:
    numbers = (("double", DOUBLE), ("int64", INT), ("uint64", UINT))
    return [overload(f"{name}_{suffix}", (of, of), of) for suffix, of in numbers]


def functions() -> list[Function]:
    equality = Cost(_equality_estimate, _equality_actual)
    appending = Cost(lambda operands: CallEstimate(ONE, operands.size(0).plus(operands.size(1))))
    optional_v = optional_of(V)
    list_v, map_kv = list_of(V), map_of(K, V)
    lists, maps = optional_of(list_v), optional_of(map_kv)
    return declared(
        "operators",
        {
            "_?_:_": [overload("conditional", (BOOL, A, A), A)],
            "_&&_": [overload("logical_and", (BOOL, BOOL), BOOL)],
            "_||_": [overload("logical_or", (BOOL, BOOL), BOOL)],
            "!_": [overload("logical_not", (BOOL,), BOOL)],
            "@not_strictly_false": [overload("not_strictly_false", (BOOL,), BOOL)],
            "_==_": [overload("equals", (A, A), BOOL, cost=equality)],
            "_!=_": [overload("not_equals", (A, A), BOOL, cost=COMPARING)],
            "_+_": [
                overload("add_bytes", (BYTES, BYTES), BYTES, cost=JOINING),
                overload("add_double", (DOUBLE, DOUBLE), DOUBLE),
                overload("add_duration_duration", (DURATION, DURATION), DURATION),
                overload("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP),
                overload("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
                overload("add_int64", (INT, INT), INT),
                overload("add_list", (LIST_OF_A, LIST_OF_A), LIST_OF_A, cost=appending),
                overload("add_string", (STRING, STRING), STRING, cost=JOINING),
                overload("add_uint64", (UINT, UINT), UINT),
            ],
            "_/_": _of_numbers("divide"),
            "_%_": [overload("modulo_int64", (INT, INT), INT), overload("modulo_uint64", (UINT, UINT), UINT)],
            "_*_": _of_numbers("multiply"),
            "-_": [overload("negate_double", (DOUBLE,), DOUBLE), overload("negate_int64", (INT,), INT)],
            "_-_": [
                overload("subtract_double", (DOUBLE, DOUBLE), DOUBLE),
                overload("subtract_duration_duration", (DURATION, DURATION), DURATION),
                overload("subtract_int64", (INT, INT), INT),
                overload("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP),
                overload("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION),
                overload("subtract_uint64", (UINT, UINT), UINT),
            ],
            "_<_": _relation("less"),
            "_<=_": _relation("less_equals"),
            "_>_": _relation("greater"),
            "_>=_": _relation("greater_equals"),
            "_[_]": [
                overload("index_list", (LIST_OF_A, INT), A),
                overload("index_map", (MAP_OF_A_B, A), B),
                overload("optional_list_index_int", (lists, INT), optional_v, version=OPTIONALS),
                overload("optional_map_index_value", (maps, K), optional_v, version=OPTIONALS),
            ],
            "_[?_]": [
                overload("list_optindex_optional_int", (list_v, INT), optional_v, version=OPTIONALS),
                overload("optional_list_optindex_optional_int", (lists, INT), optional_v, version=OPTIONALS),
                overload("map_optindex_optional_value", (map_kv, K), optional_v, version=OPTIONALS),
                overload("optional_map_optindex_optional_value", (maps, K), optional_v, version=OPTIONALS),
            ],
            "_?._": [overload("select_optional_field", (DYN, STRING), optional_v, version=OPTIONALS)],
            "@in": [
                overload("in_list", (A, LIST_OF_A), BOOL, cost=IN_LIST),
                overload("in_map", (A, MAP_OF_A_B), BOOL),
            ],
        },
        {
            "!_": negate_bool,
            "_+_": add,
            "_/_": divide,
            "_%_": modulo,
            "_*_": multiply,
            "-_": negate,
            "_-_": subtract,
            "_<_": _relation_of("_<_", lambda order: order < 0),
            "_<=_": _relation_of("_<=_", lambda order: order <= 0),
            "_>_": _relation_of("_>_", lambda order: order > 0),
            "_>=_": _relation_of("_>=_", lambda order: order >= 0),
        },
    )
