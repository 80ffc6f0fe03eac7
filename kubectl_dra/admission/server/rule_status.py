"""The status of a DeviceTaintRule, and conditions in any status."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.metadata import check_metadata
from kubectl_dra.admission.server.model import (
    DUPLICATE,
    INVALID,
    TOO_LONG,
    TOO_MANY,
    Path,
    Violations,
    missing,
    struct,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    Format,
    check_format,
    check_required,
    label_key_problems,
    subdomain_problems,
)
from kubectl_dra.admission.server.taints import unsupported

CONDITIONS_MAX: Final = 8
_RULE: Final = "condition"
_STATES: Final = ("False", "True", "Unknown")
_REASON: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_MAX: Final = 1024
_MESSAGE_MAX: Final = 32 * 1024


def check_rule_status(rule: Mapping[str, Any], context: ServerContext) -> Violations:
    """The new status of a DeviceTaintRule."""
    at: Path = ("status", "conditions")
    meta = (context.old or {}).get("metadata")
    yield from check_metadata(meta, subdomain_problems, namespaced=False, context=context)
    conditions = struct(rule, "status").get("conditions") or ()
    yield from check_conditions(conditions, at, context)
    if len(conditions) > CONDITIONS_MAX:
        message = f"has {len(conditions)} conditions, at most {CONDITIONS_MAX} are allowed"
        yield violation(at, TOO_MANY, _RULE, message)


def check_conditions(conditions: Sequence[Any], at: Path, context: ServerContext) -> Violations:
    """Conditions of a status."""
    repeated = () if context.is_declarative() else ("type",)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        condition, here = condition or {}, (*at, index)
        kind = text(condition, "type")
        if kind in seen:
            yield violation((*here, *repeated), DUPLICATE, _RULE, f"{kind!r} is already in the list")
        seen.add(kind)
        yield from _check_condition(condition, here, context)


def _check_condition(condition: Mapping[str, Any], at: Path, context: ServerContext) -> Violations:
    # Up to 1.36 what is empty is wrong like any other text.
    check = check_required if context.is_declarative() else _check_any
    yield from check(text(condition, "type"), (*at, "type"), (_RULE, _RULE), label_key_problems)
    if not text(condition, "status") and context.is_declarative():
        yield missing((*at, "status"), _RULE)
    elif text(condition, "status") not in _STATES:
        yield unsupported(text(condition, "status"), (*at, "status"), _RULE, _STATES)
    if (condition.get("observedGeneration") or 0) < 0:
        yield violation((*at, "observedGeneration"), INVALID, _RULE, "must not be negative")
    if not condition.get("lastTransitionTime"):
        yield missing((*at, "lastTransitionTime"), _RULE)
    reason = text(condition, "reason")
    if not reason:
        yield missing((*at, "reason"), _RULE)
    elif not _REASON.fullmatch(reason):
        message = f"{reason!r} must begin with a letter and have letters, digits, '_', ',' and ':'"
        yield violation((*at, "reason"), INVALID, _RULE, message)
    if len(reason) > _REASON_MAX:
        yield violation((*at, "reason"), TOO_LONG, _RULE, f"must not have more than {_REASON_MAX} characters")
    if len(text(condition, "message")) > _MESSAGE_MAX:
        yield violation((*at, "message"), TOO_LONG, _RULE, f"must not have more than {_MESSAGE_MAX} characters")


def _check_any(value: str, at: Path, rules: tuple[str, str], problems: Format) -> Violations:
    return check_format(value, at, rules[1], problems)
