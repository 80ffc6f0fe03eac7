"""Evaluating expressions without a device for the tests of the function library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kubectl_dra.cel import Environment, EvaluationError, compile_expression
from kubectl_dra.cel.errors import CompileError
from kubectl_dra.cel.program import Program


class Device(NamedTuple):
    driver: str = "gpu.example.com"
    attributes: Mapping[str, Mapping[str, Any]] = {}
    capacity: Mapping[str, Mapping[str, Any]] = {}
    allow_multiple_allocations: bool = False


def compiled(expression: str, release: str = "1.37", stored: bool = True) -> Program:
    return compile_expression(Environment.for_release(release, stored=stored), expression)


def holds(expression: str, release: str = "1.37") -> bool:
    """The value of a bool expression in a release."""
    return compiled(expression, release).evaluate(Device())


def failure(expression: str) -> str:
    """The run-time error of an expression, given as the operand of a comparison or alone."""
    try:
        outcome = holds(expression)
    except EvaluationError as error:
        return error.message
    except CompileError as error:
        return str(error)
    raise AssertionError(f"{expression} is {outcome}")


def costs(expression: str) -> tuple[int, int]:
    """Estimated maximum and actual cost."""
    from kubectl_dra.cel.device import device_value

    program = compiled(expression)
    return program.max_cost, program.actual_cost(device_value(Device()))[1]
