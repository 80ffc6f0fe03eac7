"""Optional values, and insertion into maps for two-variable macros."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.libraries import OPTIONALS, TWO_VARIABLES
from kubectl_dra.cel.library.numbers import YEAR_ONE
from kubectl_dra.cel.library.strings import shown
from kubectl_dra.cel.library.support import declared, member, overload
from kubectl_dra.cel.types import BOOL, K, V, list_of, map_of, optional_of
from kubectl_dra.cel.values import OPTIONAL_NONE, Duration, Message, OptionalValue, Timestamp, Uint, Value, is_list

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


def _value(optional: OptionalValue) -> Value:
    if not optional.has_value:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def _element(values: Sequence[Value], index: int) -> OptionalValue:
    return OptionalValue(values[index]) if values else OPTIONAL_NONE


def _unwrap(values: Sequence[Value]) -> list[Value]:
    unwrapped = []
    for value in values:
        if value.__class__ is not OptionalValue:
            raise EvaluationError(f"value {shown(value)} is not optional")
        if value.has_value:
            unwrapped.append(value.value)
    return unwrapped


def functions() -> list[Function]:
    optional, optionals = (_OPTIONAL_V,), (list_of(_OPTIONAL_V),)
    return declared(
        "optionals",
        {
            "optional.of": [overload("optional_of", (V,), _OPTIONAL_V, OptionalValue)],
            "optional.ofNonZeroValue": [overload("optional_ofNonZeroValue", (V,), _OPTIONAL_V, _of_non_zero)],
            "optional.none": [overload("optional_none", (), _OPTIONAL_V, lambda: OPTIONAL_NONE)],
            "value": [member("optional_value", optional, V, _value)],
            "hasValue": [member("optional_hasValue", optional, BOOL, lambda optional: optional.has_value)],
            "or": [member("optional_or_optional", (_OPTIONAL_V, _OPTIONAL_V), _OPTIONAL_V)],
            "orValue": [member("optional_orValue_value", (_OPTIONAL_V, V), V)],
            "last": [member("list_last", (_LIST_V,), _OPTIONAL_V, lambda values: _element(values, -1))],
            "first": [member("list_first", (_LIST_V,), _OPTIONAL_V, lambda values: _element(values, 0))],
            "optional.unwrap": [overload("optional_unwrap", optionals, _LIST_V, _unwrap)],
            "unwrapOpt": [member("optional_unwrapOpt", optionals, _LIST_V, _unwrap)],
            "cel.@mapInsert": [
                overload("@mapInsert_map_key_value", (_MAP_KV, K, V), _MAP_KV, version=TWO_VARIABLES),
                overload("@mapInsert_map_map", (_MAP_KV, _MAP_KV), _MAP_KV, version=TWO_VARIABLES),
            ],
        },
        version=OPTIONALS,
    )
