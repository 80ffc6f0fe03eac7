"""CEL selectors: what the API server says about a device selector's expression."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.model import (
    FORBIDDEN,
    INTERNAL_ERROR,
    INVALID,
    Path,
    Violations,
    check_list,
    missing,
    size,
    text,
    violation,
)
from kubectl_dra.admission.server.names import check_length
from kubectl_dra.api.limits import MAX_EXPRESSION_BYTES, MAX_EXPRESSION_COST, MAX_SELECTORS

if TYPE_CHECKING:
    from kubectl_dra.cel import CompileError, Environment
    from kubectl_dra.cel.program import Program

Problem = tuple[str, str, str, int | None]
"""Reason, rule, message, offset in code points."""


def check_selectors(selectors: Any, at: Path, rule: str, context: ServerContext) -> Violations:
    """A list of device selectors; ``rule`` is the name of its size limit."""

    def check(selector: Mapping[str, Any] | None, at: Path) -> Violations:
        cel = (selector or {}).get("cel")
        if cel is None:
            yield missing((*at, "cel"), "selector-cel-missing")
        else:
            yield from _check_expression(text(cel, "expression"), (*at, "cel", "expression"), context)

    yield from check_list(selectors, at, MAX_SELECTORS, rule, check, release=context.release)


def _check_expression(expression: str, at: Path, context: ServerContext) -> Violations:
    too_long = tuple(check_length(expression, at, MAX_EXPRESSION_BYTES, "cel-too-long"))
    if too_long:
        yield from too_long
        return
    problem = _problem(context.environment, expression)
    if problem is not None:
        reason, rule, message, offset = problem
        yield violation(at, reason, rule, message, cel_offset=offset)


def check_derived(expression: str, at: Path, context: ServerContext) -> Violations:
    """The expression of a derived attribute."""
    too_long = tuple(check_length(expression, at, MAX_EXPRESSION_BYTES, "cel-too-long"))
    problem = None if too_long else _problem(context.environment, expression, True)
    yield from too_long
    if problem is not None:
        reason, rule, message, offset = problem
        yield violation(at, reason, rule, message, cel_offset=offset)


def derived_cost(expression: str, context: ServerContext) -> int:
    """The worst-case cost of a derived attribute; 0 where it does not compile."""
    if not expression or size(expression) > MAX_EXPRESSION_BYTES:
        return 0
    found = compiled(context.environment, expression, True)
    return 0 if isinstance(found, Exception) else found.max_cost


@lru_cache(maxsize=4096)
def compiled(environment: Environment, expression: str, derived: bool = False) -> Program | CompileError:
    """The program of an expression, or why there is none; cached for all callers. ``derived``: of an attribute."""
    from kubectl_dra.cel.errors import CompileError
    from kubectl_dra.cel.program import compile_expression

    try:
        return compile_expression(environment, expression, derived=derived)
    except CompileError as error:
        return error


@lru_cache(maxsize=4096)
def _problem(environment: Environment, expression: str, derived: bool = False) -> Problem | None:
    from kubectl_dra.cel.errors import Phase

    found = compiled(environment, expression, derived)
    if isinstance(found, Exception):
        if found.phase is Phase.INSTANTIATION:
            return INTERNAL_ERROR, "cel-program", str(found), found.issues[0].offset
        return INVALID, "cel-compile", "; ".join(_worded(issue) for issue in found.issues), found.issues[0].offset
    cost = found.max_cost
    if cost > MAX_EXPRESSION_COST:
        message = f"may cost up to {cost} in the worst case, more than {MAX_EXPRESSION_COST}"
        return FORBIDDEN, "cel-cost", message, None
    return None


def _worded(issue: Any) -> str:
    return f"{issue.message} ({issue.hint})" if issue.hint else str(issue.message)
