"""Rules that the API's types declare, which servers since 1.37 enforce in the shapes of the object's own version."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_dra.admission.server.model import (
    DUPLICATE,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    Check,
    Path,
    Violation,
    Violations,
)
from kubectl_dra.api.behaviour import DECLARED_RULES
from kubectl_dra.api.releases import Release

_DECLARED: Final[Mapping[str, frozenset[str]]] = {
    "allocation-mode-unknown": frozenset((NOT_SUPPORTED,)),
    "attribute-one-value": frozenset((INVALID,)),
    "attribute-string-long": frozenset((TOO_LONG,)),
    "binding-too-many": frozenset((TOO_MANY,)),
    "class-name-invalid": frozenset((INVALID,)),
    "class-name-missing": frozenset((REQUIRED,)),
    "compatibility-groups": frozenset((DUPLICATE, INVALID, TOO_MANY)),
    "consumes-counters": frozenset((INVALID, REQUIRED)),
    "consumes-duplicate": frozenset((DUPLICATE,)),
    "consumes-set": frozenset((INVALID, REQUIRED)),
    "consumes-too-many": frozenset((TOO_MANY,)),
    "derived-attribute": frozenset((INVALID, REQUIRED, TOO_LONG, TOO_MANY)),
    "node-allocatable-empty": frozenset((INVALID,)),
    "selectors-too-many": frozenset((TOO_MANY,)),
    "sub-request-name-duplicate": frozenset((DUPLICATE,)),
    "sub-requests-too-many": frozenset((TOO_MANY,)),
    "taint-effect": frozenset((NOT_SUPPORTED, REQUIRED)),
    "toleration-effect": frozenset((NOT_SUPPORTED,)),
    "toleration-key-invalid": frozenset((INVALID,)),
    "toleration-operator": frozenset((NOT_SUPPORTED, REQUIRED)),
}
"""Of the rules below requests and devices, those that are declared, with the reasons for which they are."""

_EXACTLY: Final = re.compile(r"^((?:spec\.)+devices\.requests\[\d+\])\.exactly\b")
_DEVICE: Final = re.compile(r"^(spec\.devices\[\d+\])\.(?!name\b)")


def beyond_limit(
    values: Sequence[Any] | None, at: Path, limit: int | None, check: Check, release: Release
) -> Violations:
    """What servers since 1.37 find in the items of a list over its limit, where the types do not declare the limit."""
    if release in DECLARED_RULES and limit is not None and len(values or ()) > limit:
        for index, value in enumerate(values or ()):
            yield from (found for found in check(value, (*at, index)) if is_declared(found))


def is_declared(found: Violation) -> bool:
    """Whether the API's types declare the violated rule."""
    if found.rule == "class-name-invalid" or found.rule == "class-name-missing":
        return "firstAvailable" in found.path
    if found.rule == "attribute-string-long":
        return "strings" in found.path
    return found.reason in _DECLARED.get(found.rule, ())


def in_v1beta1(field: str) -> str:
    """The text of a field in v1beta1, where requests are flat and devices are inside ``basic``."""
    return _DEVICE.sub(r"\1.basic.", _EXACTLY.sub(r"\1", field))
