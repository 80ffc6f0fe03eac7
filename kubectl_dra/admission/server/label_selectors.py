"""Label selectors of workloads, and whether they match the labels of their template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.admission.server.metadata import check_labels
from kubectl_dra.admission.server.model import FORBIDDEN, INVALID, Path, Violations, missing, text, violation
from kubectl_dra.admission.server.names import check_format, label_key_problems, label_value_problems

RULE: Final = "workload-selector"


def check_label_selector(selector: Mapping[str, Any] | None, at: Path) -> Violations:
    """The syntax of a label selector."""
    selector = selector or {}
    yield from check_labels(selector.get("matchLabels"), (*at, "matchLabels"), rule=RULE)
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        where = (*at, "matchExpressions", index)
        operator, values = text(expression, "operator"), (expression or {}).get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                yield missing((*where, "values"), RULE, f"must have values with the operator {operator}")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                message = f"must be empty with the operator {operator}"
                yield violation((*where, "values"), FORBIDDEN, RULE, message)
        else:
            message = f"{operator!r} is not an operator of label selectors"
            yield violation((*where, "operator"), INVALID, RULE, message)
        yield from check_format(text(expression, "key"), (*where, "key"), RULE, label_key_problems)
        for number, value in enumerate(values):
            yield from check_format(value or "", (*where, "values", number), RULE, label_value_problems)


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
    return {
        "In": inside,
        "NotIn": not inside,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[operator]
