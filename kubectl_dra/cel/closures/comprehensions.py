"""Comprehensions: loops over a range, and the variables that they bind in the frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import EvaluationError, located
from kubectl_dra.cel.values import MutableList, MutableMap, Value, ValueMap, is_list, type_name

if TYPE_CHECKING:
    from kubectl_dra.cel.closures.closure import Closure, Frame


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
