"""Attributes that a request derives from those of a device (alpha in 1.37)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.model import FORBIDDEN, INVALID, Path, Violations, check_set, missing, text, violation
from kubectl_dra.admission.server.names import check_fully_qualified
from kubectl_dra.admission.server.selectors import check_derived, derived_cost
from kubectl_dra.api.limits import MAX_EXPRESSION_COST

_RULE: Final = "derived-attribute"
MOST: Final = 32

Used = Mapping[str, frozenset[str]]
"""The attributes in constraints, by the request that they are for: a name, ``name/alternative``, or "" for all."""


def used_by_constraints(devices: Mapping[str, Any]) -> Used:
    """The attributes that the constraints of a claim compare."""
    found: dict[str, set[str]] = {}
    for constraint in devices.get("constraints") or ():
        constraint = constraint or {}
        match, distinct = constraint.get("matchAttribute"), constraint.get("distinctAttribute")
        name = distinct if match is None else match
        if name is not None:
            for request in constraint.get("requests") or ("",):
                found.setdefault(request or "", set()).add(name)
    return {request: frozenset(names) for request, names in found.items()}


def check_derived_attributes(attributes: Any, at: Path, request: str, used: Used, context: ServerContext) -> Violations:
    """``derivedAttributes`` of a request; ``request`` is its name, or ``name/alternative``."""
    targets = ("", request, request.partition("/")[0])
    compared = frozenset().union(*(used.get(target, frozenset()) for target in targets))

    def check(attribute: Mapping[str, Any] | None, at: Path) -> Violations:
        if name := text(attribute, "name"):
            yield from check_fully_qualified(name, (*at, "name"), (_RULE, _RULE), release=context.release)
        else:
            yield missing((*at, "name"), _RULE)
        if not text(attribute, "expression"):
            yield missing((*at, "expression"), _RULE)

    yield from check_set(
        attributes, at, MOST, (_RULE, _RULE), check, lambda entry: text(entry, "name"), release=context.release
    )
    # The server looks at these in a list that is too long, too.
    for index, attribute in enumerate(attributes or ()):
        name, expression = text(attribute, "name"), text(attribute, "expression")
        if name and name not in compared:
            message = f"no constraint of this request compares {name!r}"
            yield violation((*at, index, "name"), INVALID, "derived-attribute-unused", message)
        if expression:
            yield from check_derived(expression, (*at, index, "expression"), context)


def check_total_cost(requests: Iterable[Any], at: Path, context: ServerContext) -> Violations:
    """The derived attributes of a claim's requests, ``at`` its devices, may not cost too much together."""
    total = 0
    for request in requests:
        exactly, alternatives = (request or {}).get("exactly"), (request or {}).get("firstAvailable") or ()
        # Nothing inside a request with both is compiled.
        parts = () if exactly is not None and alternatives else (exactly, *alternatives)
        for attribute in (each for part in parts for each in (part or {}).get("derivedAttributes") or ()):
            # The server's sum of 64 bits starts again at 0.
            total = (total + derived_cost(text(attribute, "expression"), context)) % 2**64
    if total > MAX_EXPRESSION_COST:
        message = f"derived attributes may cost {total} together in the worst case, more than {MAX_EXPRESSION_COST}"
        yield violation(at, FORBIDDEN, "derived-attribute-cost", message)
