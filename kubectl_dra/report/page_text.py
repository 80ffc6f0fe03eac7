"""A Markdown page on a terminal: prose is wrapped, code and tables stay."""

from __future__ import annotations

import re
from typing import TextIO

from kubectl_dra.report.paint import Painter

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
