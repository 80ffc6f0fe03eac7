"""A Markdown page on a terminal: prose is wrapped, code and tables stay."""

from __future__ import annotations

import re
from typing import Any, TextIO

from kubectl_dra.explain.cause_kinds import CauseKind
from kubectl_dra.report.json_shapes import SCHEMA_VERSION
from kubectl_dra.report.paint import Painter
from kubectl_dra.text import page_of_cause

_LEAD = re.compile(r"(?:[-*>]|\d+\.) ")
_KEPT = ("|", "#", "    ", "<!--")


def write_page(page: str, stream: TextIO | None = None) -> None:
    """Write the page. Without a terminal or COLUMNS it stays unchanged Markdown."""
    out = Painter(stream, "never")
    if out.limit is None:
        out.stream.write(page)
        return
    fenced = False
    for line in page.splitlines():
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if fence or fenced or line.startswith(_KEPT):
            out.write(line)
            continue
        lead = _LEAD.match(line)
        out.paragraph(line, " " * len(lead[0]) if lead else "", "")


# The page of a cause as data.


def cause_json(kind: CauseKind) -> dict[str, Any]:
    """Its page as data, in the shape of ``schemas/cause.json``."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "Cause",
        "code": kind.code,
        "title": kind.title,
        "stage": kind.family.value,
        "page": page_of_cause(kind.code),
        "sample": kind.page.code("What it looks like"),
        "seenAs": kind.seen_as,
        "why": kind.why,
        "confirm": [{"shows": check.shows, "command": check.command} for check in kind.confirm],
        "fix": {"text": kind.fix},
        "normal": kind.normal,
    }
