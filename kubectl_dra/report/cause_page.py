"""The page of a cause as data."""

from __future__ import annotations

from typing import Any, Final

from kubectl_dra.explain.diagnosis import CauseKind
from kubectl_dra.text import page_of_cause

SCHEMA_VERSION: Final = "1"


def cause_json(kind: CauseKind) -> dict[str, Any]:
    """Its page as data, in the shape of ``schemas/cause.json``."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "Cause",
        "code": kind.code,
        "title": kind.title,
        "stage": kind.family.value,
        "url": page_of_cause(kind.code),
        "sample": kind.page.code("What it looks like"),
        "seenAs": kind.seen_as,
        "why": kind.why,
        "confirm": [{"shows": check.shows, "command": check.command} for check in kind.confirm],
        "fix": kind.fix,
        "normal": kind.normal,
    }
