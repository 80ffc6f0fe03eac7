"""``-l``: a label selector as kubectl takes it, with commas between requirements."""

from __future__ import annotations

import re
from typing import Final

from kubectl_dra.api.labels import LabelSelector, Requirement
from kubectl_dra.errors import UsageError

_KEY: Final = r"(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)"
_VALUE: Final = r"[-A-Za-z0-9_.]*"
_FORMS: Final = (
    ("In", re.compile(rf"{_KEY}\s*==?\s*(?P<values>{_VALUE})")),
    ("NotIn", re.compile(rf"{_KEY}\s*!=\s*(?P<values>{_VALUE})")),
    ("In", re.compile(rf"{_KEY}\s+in\s*\((?P<values>[^()]+)\)")),
    ("NotIn", re.compile(rf"{_KEY}\s+notin\s*\((?P<values>[^()]+)\)")),
    ("DoesNotExist", re.compile(rf"!\s*{_KEY}")),
    ("Exists", re.compile(_KEY)),
)
"""The forms of a requirement (k8s.io/apimachinery/pkg/labels, Parse), without ``>`` and ``<``."""
_COMMAS: Final = re.compile(r",(?![^()]*\))")


def label_selector(text: str) -> LabelSelector:
    """What ``-l`` says.

    Raises:
        UsageError: a part of it is no requirement.
    """
    return LabelSelector(match_expressions=tuple(_requirement(part.strip(), text) for part in _COMMAS.split(text)))


def _requirement(part: str, text: str) -> Requirement:
    for operator, form in _FORMS:
        if match := form.fullmatch(part):
            values = match.groupdict().get("values")
            listed = () if values is None else tuple(value.strip() for value in values.split(","))
            return Requirement(match["key"], operator, listed)
    raise UsageError(f'-l {text}: "{part}" is no requirement such as app=web, tier!=test, app in (a,b), gpu or !gpu')
