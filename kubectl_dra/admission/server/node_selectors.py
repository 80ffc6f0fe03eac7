"""Node selectors of core/v1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.admission.server.model import FORBIDDEN, INVALID, Path, Violations, missing, text, violation
from kubectl_dra.admission.server.names import (
    check_format,
    label_key_problems,
    label_value_problems,
    subdomain_problems,
)

_TERMS: Final = "node-selector-terms"
_EXPRESSION: Final = "node-selector-expr"


def check_node_selector(selector: Mapping[str, Any], at: Path) -> Violations:
    """A node selector that is set: at least one term, each expression well-formed."""
    at = (*at, "nodeSelectorTerms")
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        yield missing(at, _TERMS, "must have at least one term")
    for index, term in enumerate(terms):
        yield from check_node_selector_term(term or {}, (*at, index))


def check_node_selector_term(term: Mapping[str, Any], at: Path, *, any_value: bool = False) -> Violations:
    """The expressions of one term; with ``any_value`` they may name values that no label can have."""
    for number, expression in enumerate(term.get("matchExpressions") or ()):
        yield from _check_expression(expression or {}, (*at, "matchExpressions", number), any_value)
    for number, expression in enumerate(term.get("matchFields") or ()):
        yield from _check_field_expression(expression or {}, (*at, "matchFields", number))


def _check_expression(expression: Mapping[str, Any], at: Path, any_value: bool) -> Violations:
    operator, values = text(expression, "operator"), expression.get("values") or ()
    where = (*at, "values")
    if operator in ("In", "NotIn"):
        if not values:
            yield missing(where, _EXPRESSION, f"must have values with the operator {operator}")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield violation(where, FORBIDDEN, _EXPRESSION, f"must be empty with the operator {operator}")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield missing(where, _EXPRESSION, f"must be exactly one value with the operator {operator}")
    else:
        yield _unknown_operator(operator, at)
    yield from check_format(text(expression, "key"), (*at, "key"), _EXPRESSION, label_key_problems)
    for index, value in enumerate(() if any_value else values):
        yield from check_format(value or "", (*where, index), _EXPRESSION, label_value_problems)


def _check_field_expression(expression: Mapping[str, Any], at: Path) -> Violations:
    operator, values = text(expression, "operator"), expression.get("values") or ()
    if operator not in ("In", "NotIn"):
        yield _unknown_operator(operator, at)
    elif len(values) != 1:
        yield missing((*at, "values"), _EXPRESSION, f"must be exactly one value with the operator {operator}")
    key = text(expression, "key")
    if key != "metadata.name":
        message = f"{key!r} is not a field that selects nodes; only metadata.name is"
        yield violation((*at, "key"), INVALID, _EXPRESSION, message)
        return
    for index, value in enumerate(values):
        yield from check_format(value or "", (*at, "values", index), _EXPRESSION, subdomain_problems)


def _unknown_operator(operator: str, at: Path) -> Any:
    return violation((*at, "operator"), INVALID, _EXPRESSION, f"{operator!r} is not an operator of node selectors")
