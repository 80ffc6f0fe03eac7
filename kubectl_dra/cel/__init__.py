"""The CEL engine for device selectors of Dynamic Resource Allocation.

    program = compile_expression(Environment.for_release("v1.36.2"), 'device.driver == "gpu.example.com"')
    program.evaluate(device)

It compiles, bounds and evaluates as Kubernetes does: parse -> check -> cost -> evaluate or trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubectl_dra.cel.device import DeviceInput as DeviceInput
    from kubectl_dra.cel.environment import Environment as Environment
    from kubectl_dra.cel.errors import CelError as CelError
    from kubectl_dra.cel.errors import CompileError as CompileError
    from kubectl_dra.cel.errors import CostLimitExceeded as CostLimitExceeded
    from kubectl_dra.cel.errors import EvaluationError as EvaluationError
    from kubectl_dra.cel.errors import InternalError as InternalError
    from kubectl_dra.cel.errors import Issue as Issue
    from kubectl_dra.cel.program import Program as Program
    from kubectl_dra.cel.program import compile_expression as compile_expression
    from kubectl_dra.cel.runtime_cost import TraceEntry as TraceEntry

_HOMES = {
    **dict.fromkeys(
        ("CelError", "CompileError", "CostLimitExceeded", "EvaluationError", "InternalError", "Issue"), "errors"
    ),
    **dict.fromkeys(("Program", "compile_expression"), "program"),
    "DeviceInput": "device",
    "Environment": "environment",
    "TraceEntry": "runtime_cost",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
