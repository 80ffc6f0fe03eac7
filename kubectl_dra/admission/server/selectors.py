"""CEL selectors: what the API server says about a device selector's expression."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from kubectl_dra.admission.server.metadata import check_labels
from kubectl_dra.admission.server.model import (
    FORBIDDEN,
    INTERNAL_ERROR,
    INVALID,
    ServerContext,
    Violation,
    Violations,
    check_list,
    missing,
    size,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_format,
    check_length,
    label_key_problems,
    label_value_problems,
    subdomain_problems,
)
from kubectl_dra.api.limits import MAX_EXPRESSION_BYTES, MAX_EXPRESSION_COST, MAX_SELECTORS
from kubectl_dra.api.schema import FieldPath

if TYPE_CHECKING:
    from kubectl_dra.cel import CompileError, Environment
    from kubectl_dra.cel.program import Program

Problem = tuple[str, str, str, int | None, str]
"""Reason, rule, message, offset in code points, the name that was probably meant there."""


def check_selectors(selectors: Any, at: FieldPath, rule: str, context: ServerContext) -> Violations:
    """A list of device selectors; ``rule`` is the name of its size limit."""

    def check(selector: Mapping[str, Any] | None, at: FieldPath) -> Violations:
        cel = (selector or {}).get("cel")
        if cel is None:
            yield missing((*at, "cel"), "selector-cel-missing")
        else:
            yield from check_expression(text(cel, "expression"), (*at, "cel", "expression"), context)

    yield from check_list(selectors, at, MAX_SELECTORS, rule, check, context)


def check_expression(expression: str, at: FieldPath, context: ServerContext, *, derived: bool = False) -> Violations:
    """The expression of a selector, or of a ``derived`` attribute."""
    too_long = tuple(check_length(expression, at, MAX_EXPRESSION_BYTES, "cel-too-long"))
    yield from too_long
    problem = None if too_long else _problem(context.environment, expression, derived)
    if problem is not None:
        reason, rule, message, offset, near = problem
        yield replace(violation(at, reason, rule, message), cel_offset=offset, cel_near=near)


def derived_cost(expression: str, context: ServerContext) -> int:
    """The worst-case cost of a derived attribute; 0 where it does not compile."""
    if not expression or size(expression) > MAX_EXPRESSION_BYTES:
        return 0
    program = compiled(context.environment, expression, True)
    return 0 if isinstance(program, Exception) else program.max_cost


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

    program = compiled(environment, expression, derived)
    if isinstance(program, Exception):
        if program.phase is Phase.INSTANTIATION:
            return INTERNAL_ERROR, "cel-program", str(program), program.issues[0].offset, ""
        return (
            INVALID,
            "cel-compile",
            "; ".join(issue.said for issue in program.issues),
            program.issues[0].offset,
            program.issues[0].near,
        )
    cost = program.max_cost
    if cost > MAX_EXPRESSION_COST:
        message = f"may cost up to {cost} in the worst case, more than {MAX_EXPRESSION_COST}"
        return FORBIDDEN, "cel-cost", message, None, ""
    return None


# Node selectors of core/v1.

_TERMS: Final = "node-selector-terms"
_NODE_TERMS: Final = "nodeSelectorTerms"
_EXPRESSION: Final = "node-selector-expr"
_NODE: Final = "node"


def check_node_selector(selector: Mapping[str, Any], at: FieldPath) -> Violations:
    """A node selector that is set: at least one term, each expression well-formed."""
    at = (*at, _NODE_TERMS)
    terms = selector.get(_NODE_TERMS) or ()
    if not terms:
        yield missing(at, _TERMS, "must have at least one term")
    for index, term in enumerate(terms):
        yield from check_node_selector_term(term or {}, (*at, index))


def check_node_selector_term(term: Mapping[str, Any], at: FieldPath, *, any_value: bool = False) -> Violations:
    """The expressions of one term; with ``any_value`` they may name values that no label can have."""
    for number, expression in enumerate(term.get("matchExpressions") or ()):
        where = (*at, "matchExpressions", number)
        yield from _check_requirement(expression or {}, where, _EXPRESSION, _NODE, any_value=any_value)
    for number, expression in enumerate(term.get("matchFields") or ()):
        yield from _check_field_expression(expression or {}, (*at, "matchFields", number))


def _check_requirement(
    expression: Mapping[str, Any], at: FieldPath, rule: str, kind: str, *, any_value: bool = False
) -> Violations:
    """An expression of a selector of this ``kind``; only those of nodes compare numbers."""
    operator, values = text(expression, "operator"), expression.get("values") or ()
    where = (*at, "values")
    if operator in ("In", "NotIn"):
        if not values:
            yield missing(where, rule, f"must have values with the operator {operator}")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield violation(where, FORBIDDEN, rule, f"must be empty with the operator {operator}")
    elif operator in ("Gt", "Lt") and kind == _NODE:
        if len(values) != 1:
            yield missing(where, rule, f"must be exactly one value with the operator {operator}")
    else:
        yield _unknown_operator(operator, at, rule, kind)
    yield from check_format(text(expression, "key"), (*at, "key"), rule, label_key_problems)
    for index, value in enumerate(() if any_value else values):
        yield from check_format(value, (*where, index), rule, label_value_problems)


def _check_field_expression(expression: Mapping[str, Any], at: FieldPath) -> Violations:
    operator, values = text(expression, "operator"), expression.get("values") or ()
    if operator not in ("In", "NotIn"):
        yield _unknown_operator(operator, at, _EXPRESSION, _NODE)
    elif len(values) != 1:
        yield missing((*at, "values"), _EXPRESSION, f"must be exactly one value with the operator {operator}")
    key = text(expression, "key")
    if key != "metadata.name":
        message = f"{key!r} is not a field that selects nodes; only metadata.name is"
        yield violation((*at, "key"), INVALID, _EXPRESSION, message)
        return
    for index, value in enumerate(values):
        yield from check_format(value, (*at, "values", index), _EXPRESSION, subdomain_problems)


def _unknown_operator(operator: str, at: FieldPath, rule: str, kind: str) -> Violation:
    return violation((*at, "operator"), INVALID, rule, f"{operator!r} is not an operator of {kind} selectors")


def check_nodes(
    owner: Mapping[str, Any], at: FieldPath, fields: tuple[str, ...], rule: str, needed: str, *, one_term: bool = False
) -> Violations:
    """Exactly one of the ``fields`` that say for which nodes a slice or device is: nodeName, nodeSelector, or flags.

    ``rule`` is the beginning of the names of its rules, ``needed`` the message where there is none.
    """
    name, selector = owner.get("nodeName"), owner.get("nodeSelector")
    if name:
        yield from check_format(name, (*at, "nodeName"), "slice-node-name-invalid", subdomain_problems)
    elif name is not None:
        yield violation((*at, "nodeName"), INVALID, "slice-node-name-empty", "must not be empty where it is set")
    if selector is not None:
        where = (*at, "nodeSelector")
        yield from check_node_selector(selector, where)
        terms = selector.get(_NODE_TERMS) or ()
        if one_term and len(terms) != 1:
            yield violation((*where, _NODE_TERMS), INVALID, _TERMS, f"must have exactly one term, not {len(terms)}")
    for flag in fields[2:]:
        if owner.get(flag) is False:
            yield violation((*at, flag), INVALID, "slice-bool-false", "must be true where it is set")
    given = [field for field in fields if owner.get(field) or (field == "nodeSelector" and selector is not None)]
    if not given:
        yield missing(at, f"{rule}-missing", needed)
    elif len(given) > 1:
        message = f"has {' and '.join(given)}; only one of them may be set"
        yield violation(at, INVALID, f"{rule}-multiple", message)


# Label selectors of workloads, and whether they match the labels of their template.

RULE: Final = "workload-selector"


def check_label_selector(selector: Mapping[str, Any] | None, at: FieldPath) -> Violations:
    """The syntax of a label selector."""
    selector = selector or {}
    yield from check_labels(selector.get("matchLabels"), (*at, "matchLabels"), rule=RULE)
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        yield from _check_requirement(expression or {}, (*at, "matchExpressions", index), RULE, "label")


def is_empty(selector: Mapping[str, Any]) -> bool:
    """Whether a selector has no terms, and so matches everything."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, Any]) -> bool:
    """Whether a well-formed selector matches labels; None matches nothing."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    if any(key not in labels or (labels[key] or "") != (value or "") for key, value in wanted.items()):
        return False
    return all(_matches(expression or {}, labels) for expression in selector.get("matchExpressions") or ())


def _matches(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key, operator = text(expression, "key"), text(expression, "operator")
    inside = key in labels and (labels[key] or "") in (expression.get("values") or ())
    return {"In": inside, "NotIn": not inside, "Exists": key in labels, "DoesNotExist": key not in labels}[operator]
