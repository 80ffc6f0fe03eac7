"""Conversions between types, and the size of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import UINT64_MAX, Size
from kubectl_dra.cel.libraries import FORMER
from kubectl_dra.cel.library import numbers
from kubectl_dra.cel.library.operators import checked_timestamp
from kubectl_dra.cel.library.support import declared, member, not_supported, overload, scanning
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
    type_of_type,
)
from kubectl_dra.cel.values import INT_MAX, Duration, Timestamp, TypeValue, Uint, Value, is_list, type_name

_SECOND = 10**9


def _identity(value: Value) -> Value:
    return value


def _failure(source: str, target: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{target}'")


def _from_text(target: str, parse: Callable[[str], Any], wrap: Callable[[Any], Value] = _identity) -> Any:
    def convert(text: str) -> Value:
        value = parse(text)
        if value is None:
            raise _failure("string", target)
        return wrap(value)

    return convert


def _converted(to: Callable[[Any], Value], fits: Callable[[Any], bool]) -> Callable[[Any], Value]:
    """A conversion to a kind of integer, of values that fit into it."""

    def convert(value: Any) -> Value:
        if not fits(value):
            raise EvaluationError("unsigned integer overflow" if to is Uint else "integer overflow")
        return to(value)

    return convert


def _checked_timestamp(value: Timestamp) -> Timestamp:
    return checked_timestamp(*value)


def _int_to_timestamp(seconds: int) -> Timestamp:
    return checked_timestamp(seconds * _SECOND)


def _int_to_duration(value: int) -> Duration:
    # The overload is declared upstream, but nothing implements it.
    raise _failure("int", "google.protobuf.Duration")


def _bool_to_string(value: bool) -> str:
    return "true" if value else "false"


def _int_to_string(value: int) -> str:
    return str(int(value))


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _encoded(size: Size) -> Size:
    # The multiplication wraps around in cel-go, so it does here, too.
    return Size(size.min, size.max * 4 & UINT64_MAX)


def _read_as_text(size: Size) -> Size:
    return Size(size.min // 4, size.max)


def size(value: Value) -> int:
    if isinstance(value, (str, bytes, dict)) or is_list(value):
        return len(value)
    raise not_supported("size", value)


def functions() -> list[Function]:
    parse_duration = _from_text("google.protobuf.Duration", numbers.parse_duration)
    parse_timestamp = _from_text("google.protobuf.Timestamp", numbers.parse_timestamp, _checked_timestamp)
    return declared(
        "conversions",
        {
            "size": [
                overload("size_bytes", (BYTES,), INT),
                member("bytes_size", (BYTES,), INT),
                overload("size_list", (LIST_OF_A,), INT),
                member("list_size", (LIST_OF_A,), INT),
                overload("size_map", (MAP_OF_A_B,), INT),
                member("map_size", (MAP_OF_A_B,), INT),
                overload("size_string", (STRING,), INT),
                member("string_size", (STRING,), INT),
            ],
            "type": [overload("type", (A,), type_of_type(A))],
            "bool": [
                overload("bool_to_bool", (BOOL,), BOOL, _identity),
                overload("string_to_bool", (STRING,), BOOL, _from_text("bool", numbers.parse_bool)),
            ],
            "bytes": [
                overload("bytes_to_bytes", (BYTES,), BYTES, _identity),
                overload("string_to_bytes", (STRING,), BYTES, str.encode, scanning(_encoded)),
            ],
            "double": [
                overload("double_to_double", (DOUBLE,), DOUBLE, _identity),
                overload("int64_to_double", (INT,), DOUBLE, float),
                overload("string_to_double", (STRING,), DOUBLE, _from_text("double", numbers.parse_double)),
                overload("uint64_to_double", (UINT,), DOUBLE, float),
            ],
            "duration": [
                overload("duration_to_duration", (DURATION,), DURATION, _identity),
                overload("int64_to_duration", (INT,), DURATION, _int_to_duration, version=FORMER),
                overload("string_to_duration", (STRING,), DURATION, parse_duration),
            ],
            "dyn": [overload("to_dyn", (A,), DYN)],
            "int": [
                overload("int64_to_int64", (INT,), INT, _identity),
                overload("double_to_int64", (DOUBLE,), INT, _converted(int, lambda value: abs(value) < 2.0**63)),
                overload("duration_to_int64", (DURATION,), INT, lambda duration: duration.nanoseconds),
                overload("string_to_int64", (STRING,), INT, _from_text("int", numbers.parse_int)),
                overload("timestamp_to_int64", (TIMESTAMP,), INT, lambda timestamp: timestamp.nanoseconds // _SECOND),
                overload("uint64_to_int64", (UINT,), INT, _converted(int, lambda value: value <= INT_MAX)),
            ],
            "string": [
                overload("string_to_string", (STRING,), STRING, _identity),
                overload("bool_to_string", (BOOL,), STRING, _bool_to_string),
                overload("bytes_to_string", (BYTES,), STRING, _bytes_to_string, scanning(_read_as_text)),
                overload("double_to_string", (DOUBLE,), STRING, numbers.double_text),
                overload("duration_to_string", (DURATION,), STRING, numbers.duration_text),
                overload("int64_to_string", (INT,), STRING, _int_to_string),
                overload("timestamp_to_string", (TIMESTAMP,), STRING, numbers.timestamp_text),
                overload("uint64_to_string", (UINT,), STRING, _int_to_string),
            ],
            "timestamp": [
                overload("timestamp_to_timestamp", (TIMESTAMP,), TIMESTAMP, _identity),
                overload("int64_to_timestamp", (INT,), TIMESTAMP, _int_to_timestamp),
                overload("string_to_timestamp", (STRING,), TIMESTAMP, parse_timestamp),
            ],
            "uint": [
                overload("uint64_to_uint64", (UINT,), UINT, _identity),
                overload("double_to_uint64", (DOUBLE,), UINT, _converted(Uint, lambda value: 0 <= value < 2.0**64)),
                overload("int64_to_uint64", (INT,), UINT, _converted(Uint, lambda value: value >= 0)),
                overload("string_to_uint64", (STRING,), UINT, _from_text("uint", numbers.parse_uint, Uint)),
            ],
        },
        {"size": size, "type": lambda value: TypeValue(type_name(value)), "dyn": _identity},
    )


def text_of_value(value: Value) -> str | None:
    """The result of `string(value)`; None for types without such a conversion."""
    kind = value.__class__
    convert = _TEXT.get(kind)
    return None if convert is None else convert(value)


_TEXT: dict[type, Callable[[Any], str]] = {
    str: str,
    bool: _bool_to_string,
    bytes: _bytes_to_string,
    float: numbers.double_text,
    int: _int_to_string,
    Uint: _int_to_string,
    Timestamp: numbers.timestamp_text,
    Duration: numbers.duration_text,
    TypeValue: lambda value: value.name,
}
