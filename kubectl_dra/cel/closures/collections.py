"""Lists and maps: those that an expression builds, and comprehensions over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kubectl_dra.cel import ast
from kubectl_dra.cel.closures.chains import KEY_CLASSES, NOTHING, key_text, optional_part
from kubectl_dra.cel.errors import EvaluationError, located
from kubectl_dra.cel.functions import no_overload
from kubectl_dra.cel.values import (
    ListKey,
    MapKey,
    MutableList,
    MutableMap,
    Value,
    ValueMap,
    contains,
    is_list,
    type_name,
    unhashable,
)

if TYPE_CHECKING:
    from kubectl_dra.cel.closures.calls import Closure, Frame
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
                value = optional_part(value, "list element", node)
                if value is NOTHING:
                    continue
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
                value = optional_part(value, f"entry '{key_text(key)}'", node)
                if value is NOTHING:
                    result.pop(key, None)
                    continue
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


# Comprehensions: loops over a range, and the variables that they bind in the frame.


class _Lazy(Struct, eq=False):
    """A bound variable that has not been read yet."""

    compute: Closure


def read(slot: int) -> Closure:
    """The value of a variable. A variable that has not been read yet is computed now."""
    if slot == 0:
        return lambda frame: frame[0]

    def reading(frame: Frame) -> Value:
        value = frame[slot]
        if value.__class__ is _Lazy:
            try:
                value = value.compute(frame)
            except EvaluationError as error:
                if error.fatal:
                    raise
                value = error
            if value.__class__ is list and not value:
                value = MutableList()
            elif not value and isinstance(value, dict):
                # So the attributes of a device without any know no domain: as a variable they lose their default.
                value = MutableMap()
            frame[slot] = value
        if isinstance(value, EvaluationError):
            raise value
        return value

    return reading


def fold(
    node: ast.Comprehension,
    slots: tuple[int, int, int],
    iter_range: Closure,
    accu_init: Closure,
    condition: Closure,
    constant_condition: Value,
    loop_step: Closure,
    result: Closure,
) -> Closure:
    """The loop of a comprehension. ``slots`` belong to the accumulator and the two loop variables.

    ``constant_condition`` is the value of a constant condition, else None.
    """
    accu_slot, first_slot, second_slot = slots
    two = bool(node.iter_var2)

    def folded(frame: Frame) -> Value:
        iterable = iter_range(frame)
        saved = frame[accu_slot], frame[first_slot], frame[second_slot]
        frame[accu_slot] = _Lazy(accu_init)
        try:
            for first, second in items(iterable, two, node):
                frame[first_slot] = first
                frame[second_slot] = second
                if constant_condition is None:
                    # An error in the condition does not end the loop.
                    try:
                        if condition(frame) is False:
                            break
                    except EvaluationError as error:
                        if error.fatal:
                            raise
                elif constant_condition is False:
                    break
                try:
                    frame[accu_slot] = loop_step(frame)
                except EvaluationError as error:
                    if error.fatal:
                        raise
                    frame[accu_slot] = error
            return _frozen(result(frame))
        finally:
            frame[accu_slot], frame[first_slot], frame[second_slot] = saved

    return folded


def items(iterable: Value, two: bool, node: ast.Comprehension) -> Any:
    """The successive values of the loop variables, as pairs. With one variable, the second is None."""
    if isinstance(iterable, dict):
        return list(iterable.items())
    if is_list(iterable):
        if two:
            return enumerate(iterable)
        return [(element, None) for element in iterable]
    if two:
        message = f"unsupported comprehension range type: {type_name(iterable)}"
    else:
        message = f"got '{type_name(iterable)}', expected iterable type"
    raise located(EvaluationError(message), node.iter_range)


def _frozen(value: Value) -> Value:
    """A collected list or map that may no longer be changed in place."""
    if value.__class__ is MutableList:
        return list(value)
    if value.__class__ is MutableMap:
        return ValueMap(value)
    return value
