"""What functions make of devices' values before a selector compares them, such as ``model.replace(" ", "-")``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kubectl_dra.cel import Program, ast
from kubectl_dra.cel.device import device_value
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.explain.funnel.device_view import PublishedDevice

_READS: Final = frozenset(("_[_]", "_[?_]", "_?._", "orValue", "value", "compareTo"))
"""Functions that give a value as it is, or that compare it."""


def made_side(comparison: ast.Expression, start: int, end: int) -> ast.Call | None:
    """What is compared with the constant at this place, if a function makes it of what devices have."""
    if not isinstance(comparison, ast.Call):
        return None
    sides = comparison.arguments if comparison.target is None else (comparison.target,)
    side = next((side for side in sides if not (side.start <= start and end <= side.end)), None)
    return side if isinstance(side, ast.Call) and side.function not in _READS else None


def made_values(
    program: Program, side: ast.Call, carriers: Mapping[str, Sequence[PublishedDevice]]
) -> Iterator[tuple[str, str | int]]:
    """Values of devices, each with what the expression makes of it; ``carriers`` are devices that have them."""
    part = program.part(side)
    for value, items in carriers.items():
        if not items:
            continue
        try:
            made = part.evaluate_raw(device_value(items[0].exact, program.environment.converts_lists()))
        except EvaluationError:
            continue
        if isinstance(made, str) or (isinstance(made, int) and not isinstance(made, bool)):
            yield value, made
