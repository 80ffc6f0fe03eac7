"""Aggregates: the lists and maps that an expression builds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.cel import ast
from kubectl_dra.cel.closures.optionals import content
from kubectl_dra.cel.closures.qualifiers import KEY_CLASSES, key_text
from kubectl_dra.cel.dispatch import no_overload
from kubectl_dra.cel.errors import EvaluationError, located
from kubectl_dra.cel.values import (
    ListKey,
    MapKey,
    MutableMap,
    OptionalValue,
    Value,
    ValueMap,
    contains,
    is_list,
    unhashable,
)

if TYPE_CHECKING:
    from kubectl_dra.cel.closures.closure import Closure, Frame
    from kubectl_dra.cel.runtime_cost import CostMeter


def list_of(closures: Sequence[Closure], node: ast.ListLiteral) -> Closure:
    """A list of the elements' values; empty optional elements are left out."""
    optional = frozenset(node.optional_indices)

    def build(frame: Frame) -> Value:
        return [closure(frame) for closure in closures]

    def build_optional(frame: Frame) -> Value:
        result: list[Value] = []
        for index, closure in enumerate(closures):
            value = closure(frame)
            if index in optional:
                if value.__class__ is not OptionalValue:
                    message = f"cannot initialize optional list element from non-optional value {value}"
                    raise located(EvaluationError(message), node)
                if not value.has_value:
                    continue
                value = content(value)
            result.append(value)
        return result

    return build_optional if optional else build


def map_of(entries: Sequence[tuple[Closure, Closure, bool]], node: ast.MapLiteral) -> Closure:
    """A map. Each entry is given by key, value, and whether the value is optional."""

    def build(frame: Frame) -> Value:
        result: ValueMap = ValueMap()
        for key_closure, value_closure, optional in entries:
            key = key_closure(frame)
            value = value_closure(frame)
            key = map_key(key)
            if optional:
                if value.__class__ is not OptionalValue:
                    message = f"cannot initialize optional entry '{key_text(key)}' from non-optional value {value}"
                    raise located(EvaluationError(message), node)
                if not value.has_value:
                    result.pop(key, None)
                    continue
                value = content(value)
            result[key] = value
        return result

    return build


def map_key(key: Value) -> Value:
    if key.__class__ in KEY_CLASSES or key is None:
        return key
    panic = unhashable(key)
    if panic is not None:
        raise panic
    if is_list(key):
        return ListKey(key)
    return MapKey(key) if isinstance(key, dict) else key


def map_insert(mapping: Value, *more: Value) -> Value:
    """Insert one entry (key, value), or all entries of a map. Existing keys are an error."""
    if not isinstance(mapping, dict):
        raise no_overload("cel.@mapInsert", (mapping, *more))
    entries: Mapping[Value, Value]
    if len(more) == 2:
        entries = {map_key(more[0]): more[1]}
    elif isinstance(more[0], dict):
        entries = more[0]
    else:
        raise no_overload("cel.@mapInsert", (mapping, *more))
    result = mapping if mapping.__class__ is MutableMap else ValueMap(mapping)
    for key, value in entries.items():
        if contains(result, key):
            raise EvaluationError(f"insert failed: key {key_text(key)} already exists")
        result[key] = value
    return result


def charged_aggregate(closure: Closure, meter: CostMeter, units: int) -> Closure:
    def metered(frame: Frame) -> Value:
        try:
            value = closure(frame)
        except EvaluationError as error:
            if not error.fatal:
                meter.spend(units)
            raise
        meter.spend(units)
        return value

    return metered
