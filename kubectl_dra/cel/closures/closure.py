"""The type of a closure and of its observers: a meter counts its cost, a recorder receives its outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.values import Value

if TYPE_CHECKING:
    from kubectl_dra.cel.observers import CostMeter

Frame: TypeAlias = list[Any]
"""Slot 0 is ``device``, the others are local variables."""

Closure: TypeAlias = Callable[[Frame], Value]

Recorder: TypeAlias = Callable[[int, Value], None]
"""Receives the outcome of every node by its id; an error comes as EvaluationError."""


def recorded(closure: Closure, recorder: Recorder, node_id: int) -> Closure:
    def recorded(frame: Frame) -> Value:
        try:
            value = closure(frame)
        except EvaluationError as error:
            recorder(node_id, error)
            raise
        recorder(node_id, value)
        return value

    return recorded


def charged(closure: Closure, meter: CostMeter) -> Closure:
    """The closure with one unit added to its cost, whether it fails or not."""
    spend = meter.spend

    def charging(frame: Frame) -> Value:
        try:
            return closure(frame)
        finally:
            spend(1)

    return charging
