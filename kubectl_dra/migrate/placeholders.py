"""Placeholders of templaters in place of values, and how each kind is filled in."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_THEN: Final = "then write the placeholder where the number is now: count in the ResourceClaimTemplate, without quotes"
_ITS_TOOL: Final = "what its tool makes of it | kubectl dra migrate -"


class Placeholder(NamedTuple):
    """What a placeholder of one kind looks like, and a command that migrates what it stands for."""

    pattern: re.Pattern[str]
    command: str


_KINDS: Final = (
    Placeholder(
        re.compile(r"\{\{-?\s*(?:\.(?:Values|Release|Chart|Capabilities|Files|Template)\b|include\b|template\b)"),
        "helm template CHART | kubectl dra migrate -",
    ),
    Placeholder(re.compile(r"\{\{|\{%"), _ITS_TOOL),
    Placeholder(re.compile(r"\$\([A-Za-z_]\w*\)"), "kubectl kustomize DIR | kubectl dra migrate -"),
    Placeholder(re.compile(r"\$\{[^}\n]+\}|\$[A-Za-z_]\w*"), "envsubst < FILE | kubectl dra migrate -"),
    Placeholder(
        re.compile(r"@[A-Za-z_]\w*@|%[A-Za-z_]\w*%|__[A-Za-z]\w*__|<[A-Za-z][\w -]*>"),
        _ITS_TOOL,
    ),
)


def fill_in(text: str) -> str:
    """What to do about the placeholder in a value or line; empty if there is none."""
    for kind in _KINDS:
        if kind.pattern.search(text):
            return f"migrate it filled in ({kind.command}), {_THEN}"
    return ""
