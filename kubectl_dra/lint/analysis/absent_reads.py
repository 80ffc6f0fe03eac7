"""What becomes of a selector that names what no device has: an error, or nothing where the read is guarded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubectl_dra.cel.columns import Column
from kubectl_dra.lint.analysis.possible_results import PossibleResults, Shape, outcome
from kubectl_dra.lint.analysis.selector_targets import AskedSelector, Lacking

NEVER_READ: Final = "; it is read only where a device has it, which none does"
NOT_NEEDED: Final = "; the rest of the expression decides without it: this term says nothing"


def without_harm(target: AskedSelector, column: Column) -> str:
    """Why an expression never ends in an error though no device has the column, as a clause; empty if it does."""
    lacking = Lacking(column, column.domain)
    if _fails(target, lacking, column) and not (
        target.sure and not any(_fails(target, kind, column) for kind in target.kinds)
    ):
        return ""
    _, failed = outcome(target.program.ast.expression, lacking)
    return NOT_NEEDED if any(read.column == column for read in failed) else NEVER_READ


def harmless(target: AskedSelector, column: Column) -> str:
    """The same clause if the selector matches devices without the column besides; empty otherwise."""
    shapes: tuple[Shape, ...] = target.kinds if target.sure else (Lacking(column, column.domain),)
    return without_harm(target, column) if _matches(target, {}, shapes) else ""


def matches_where(target: AskedSelector, known: Mapping[int, PossibleResults]) -> bool:
    """Whether the selector can match, and never ends in an error, where parts of it have these results, by their id."""
    shapes: tuple[Shape, ...] = target.kinds if target.sure else (_AnyDevice(),)
    fails = any(result.error for result in known.values())
    if fails and any(outcome(target.program.ast.expression, shape, known)[0].error for shape in shapes):
        return False
    return _matches(target, known, shapes)


class _AnyDevice:
    """A device of which nothing is known."""

    driver: str | None = None

    def values(self, column: Column) -> None:
        """Unknown."""


def _matches(target: AskedSelector, known: Mapping[int, PossibleResults], shapes: tuple[Shape, ...]) -> bool:
    return any(outcome(target.program.ast.expression, shape, known)[0].can_be(True) for shape in shapes)


def _fails(target: AskedSelector, shape: Shape, column: Column) -> bool:
    """Whether the expression can end in an error on such a device because it reads the column."""
    results, failed = outcome(target.program.ast.expression, shape)
    return results.error and any(read.column == column for read in failed)
