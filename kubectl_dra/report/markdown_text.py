"""A page of the documentation as text: without Markdown's marks, prose wrapped, code and tables as they are."""

from __future__ import annotations

import re
from typing import Any, Final, TextIO

from kubectl_dra.explain.cause_kinds import CauseKind
from kubectl_dra.report.color import Painter
from kubectl_dra.report.json_shapes import SCHEMA_VERSION
from kubectl_dra.text import page_of_cause, unmarked

_LEAD: Final = re.compile(r"(?:[-*>]|\d+\.) ")
_HEADING: Final = re.compile(r"(?P<level>#+) (?P<title>.+)")
_COMMENT: Final = "<!--"
_CODE_INDENT: Final = "  "


def write_page(page: str, color: str = "auto", stream: TextIO | None = None) -> None:
    """Write the page: headings in bold on a terminal that shows it, prose wrapped where there is a width."""
    out = Painter(stream, color)
    fenced = False
    for line in page.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced:
            out.write(f"{_CODE_INDENT}{line}")
        elif heading := _HEADING.fullmatch(line):
            title = unmarked(heading["title"])
            # As kubectl explain does it.
            out.sentence(title if heading["level"] == "#" else title.upper(), "", style="bold")
        elif line.startswith("|"):
            out.write(unmarked(line))
        elif not line.startswith(_COMMENT):
            lead = _LEAD.match(line)
            out.sentence(unmarked(line), " " * len(lead[0]) if lead else "")


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
