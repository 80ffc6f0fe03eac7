"""The CEL engine for device selectors of Dynamic Resource Allocation.

    program = compile_expression(Environment.for_release("v1.36.2"), 'device.driver == "gpu.example.com"')
    program.evaluate(device)

It compiles, bounds and evaluates as Kubernetes does: parse -> check -> cost -> evaluate or trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubectl_dra.cel.device import DeviceInput
    from kubectl_dra.cel.environment import Environment
    from kubectl_dra.cel.errors import CelError, CompileError, CostLimitExceeded, EvaluationError, InternalError, Issue
    from kubectl_dra.cel.observers import TraceEntry
    from kubectl_dra.cel.program import Program, compile_expression

__all__ = [
    "CelError",
    "CompileError",
    "CostLimitExceeded",
    "DeviceInput",
    "Environment",
    "EvaluationError",
    "InternalError",
    "Issue",
    "Program",
    "TraceEntry",
    "compile_expression",
]

_HOMES = {
    "CelError": "errors",
    "CompileError": "errors",
    "CostLimitExceeded": "errors",
    "DeviceInput": "device",
    "Environment": "environment",
    "EvaluationError": "errors",
    "InternalError": "errors",
    "Issue": "errors",
    "Program": "program",
    "TraceEntry": "observers",
    "compile_expression": "program",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
