"""A page of the documentation as text: without Markdown's marks, prose wrapped, code and tables as they are."""

from __future__ import annotations

import re
from typing import Any, Final, TextIO

from kubectl_dra.explain.cause_kinds import CauseKind
from kubectl_dra.report.color import Painter
from kubectl_dra.report.json_shapes import SCHEMA_VERSION
from kubectl_dra.text import page_of_cause

_LEAD: Final = re.compile(r"(?:[-*>]|\d+\.) ")
_HEADING: Final = re.compile(r"(?P<level>#+) (?P<title>.+)")
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
_CODE: Final = re.compile(r"`([^`]+)`")
_EMPHASIS: Final = re.compile(r"\*\*([^*]+)\*\*")
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
            title = _plain(heading["title"])
            # As kubectl explain does it.
            out.sentence(title if heading["level"] == "#" else title.upper(), "", style="bold")
        elif line.startswith("|"):
            out.write(_plain(line))
        elif not line.startswith(_COMMENT):
            lead = _LEAD.match(line)
            out.sentence(_plain(line), " " * len(lead[0]) if lead else "")


def _plain(text: str) -> str:
    """The text without marks: of a link its words, and where it leads if that is an address."""
    text = _LINK.sub(lambda link: f"{link[1]} ({link[2]})" if "://" in link[2] else link[1], text)
    return _EMPHASIS.sub(r"\1", _CODE.sub(r"\1", text))


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
