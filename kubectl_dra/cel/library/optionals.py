"""Optional values, and insertion into maps for two-variable macros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.libraries import OPTIONALS, TWO_VARIABLES
from kubectl_dra.cel.library.numbers import YEAR_ONE
from kubectl_dra.cel.library.strings import shown
from kubectl_dra.cel.library.support import function, member, overload
from kubectl_dra.cel.types import BOOL, K, V, list_of, map_of, optional_of
from kubectl_dra.cel.values import (
    OPTIONAL_NONE,
    Duration,
    Message,
    OptionalValue,
    Timestamp,
    Uint,
    Value,
    find,
    is_list,
)

_LIBRARY = "optionals"
_OPTIONAL_V = optional_of(V)
_LIST_V = list_of(V)
_MAP_KV = map_of(K, V)


def _of_non_zero(value: Value) -> OptionalValue:
    return OPTIONAL_NONE if _is_zero(value) else OptionalValue(value)


def _is_zero(value: Value) -> bool:
    kind = value.__class__
    if value is None:
        return True
    if kind is Timestamp:
        return bool(value.nanoseconds == YEAR_ONE)
    if kind is Duration:
        return bool(value.nanoseconds == 0)
    if kind is Message:
        return not value.fields
    if kind in (bool, int, Uint, float, str, bytes) or isinstance(value, dict) or is_list(value):
        return not value
    return False


def _none() -> OptionalValue:
    return OPTIONAL_NONE


def _value(optional: OptionalValue) -> Value:
    if not optional.has_value:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _has_value(optional: OptionalValue) -> bool:
    return optional.has_value


def _first(values: Sequence[Value]) -> OptionalValue:
    return OptionalValue(values[0]) if values else OPTIONAL_NONE


def _last(values: Sequence[Value]) -> OptionalValue:
    return OptionalValue(values[-1]) if values else OPTIONAL_NONE


def _unwrap(values: Sequence[Value]) -> list[Value]:
    unwrapped = []
    for value in values:
        if value.__class__ is not OptionalValue:
            raise EvaluationError(f"value {shown(value)} is not optional")
        if value.has_value:
            unwrapped.append(value.value)
    return unwrapped


def insert(mapping: dict[Value, Value], key: Value, value: Value) -> dict[Value, Value]:
    """A copy of the map with one more entry. An existing key is an error."""
    if find(mapping, key)[0]:
        raise EvaluationError(f"insert failed: key {shown(key)} already exists")
    return {**mapping, key: value}


def _insert_all(mapping: dict[Value, Value], more: dict[Value, Value]) -> dict[Value, Value]:
    for key, value in more.items():
        mapping = insert(mapping, key, value)
    return mapping


def functions() -> list[Function]:
    version: dict[str, Any] = {"version": OPTIONALS}
    return [
        function(
            "optional.of",
            _LIBRARY,
            "An optional that has this value.",
            ("optional.of(1).value() == 1",),
            [overload("optional_of", (V,), _OPTIONAL_V, OptionalValue, **version)],
        ),
        function(
            "optional.ofNonZeroValue",
            _LIBRARY,
            "An optional that has this value, or is empty when it is zero, false, empty or null.",
            ('!optional.ofNonZeroValue("").hasValue()',),
            [overload("optional_ofNonZeroValue", (V,), _OPTIONAL_V, _of_non_zero, **version)],
        ),
        function(
            "optional.none",
            _LIBRARY,
            "The empty optional.",
            ("!optional.none().hasValue()",),
            [overload("optional_none", (), _OPTIONAL_V, _none, **version)],
        ),
        function(
            "value",
            _LIBRARY,
            "The value of an optional; an error when it is empty.",
            ("optional.of(1).value() == 1",),
            [member("optional_value", (_OPTIONAL_V,), V, _value, **version)],
        ),
        function(
            "hasValue",
            _LIBRARY,
            "Whether an optional has a value.",
            ("[1][?0].hasValue()",),
            [member("optional_hasValue", (_OPTIONAL_V,), BOOL, _has_value, **version)],
        ),
        function(
            "or",
            _LIBRARY,
            "The optional itself when it has a value, else another optional.",
            ("optional.none().or(optional.of(2)).value() == 2",),
            [member("optional_or_optional", (_OPTIONAL_V, _OPTIONAL_V), _OPTIONAL_V, non_strict=True, **version)],
        ),
        function(
            "orValue",
            _LIBRARY,
            "The value of an optional, else a default.",
            ('{"a": 1}[?"b"].orValue(0) == 0',),
            [member("optional_orValue_value", (_OPTIONAL_V, V), V, non_strict=True, **version)],
        ),
        function(
            "last",
            _LIBRARY,
            "The last element of a list as an optional.",
            ("[1, 2].last().value() == 2",),
            [member("list_last", (_LIST_V,), _OPTIONAL_V, _last, **version)],
        ),
        function(
            "first",
            _LIBRARY,
            "The first element of a list as an optional.",
            ("[1, 2].first().value() == 1",),
            [member("list_first", (_LIST_V,), _OPTIONAL_V, _first, **version)],
        ),
        function(
            "optional.unwrap",
            _LIBRARY,
            "The values of those optionals in a list that have one.",
            ("optional.unwrap([optional.of(1), optional.none()]) == [1]",),
            [overload("optional_unwrap", (list_of(_OPTIONAL_V),), _LIST_V, _unwrap, **version)],
        ),
        function(
            "unwrapOpt",
            _LIBRARY,
            "The values of those optionals in a list that have one.",
            ("[optional.of(1), optional.none()].unwrapOpt() == [1]",),
            [member("optional_unwrapOpt", (list_of(_OPTIONAL_V),), _LIST_V, _unwrap, **version)],
        ),
        function(
            "cel.@mapInsert",
            _LIBRARY,
            "Inside the macros transformMap and transformMapEntry only: a map with entries added.",
            (),
            [
                overload("@mapInsert_map_key_value", (_MAP_KV, K, V), _MAP_KV, insert, version=TWO_VARIABLES),
                overload("@mapInsert_map_map", (_MAP_KV, _MAP_KV), _MAP_KV, _insert_all, version=TWO_VARIABLES),
            ],
        ),
    ]
