"""Every pending claim as a table: who waits, and the first cause of each."""

from __future__ import annotations

from typing import TextIO

from kubectl_dra.explain.diagnosis import Verdict
from kubectl_dra.explain.overview import Alike, Overview
from kubectl_dra.report.explain_words import overview_answer, reason
from kubectl_dra.report.paint import Painter
from kubectl_dra.report.phrases import written
from kubectl_dra.report.table import fitted
from kubectl_dra.wording import some

HEADER = ("NAMESPACE", "WAITING", "VERDICT", "CAUSE", "REASON")
BELOW = ("REASON", "CAUSE")
"""What goes below a row that is too long, first to go first."""
_WORDS = {
    Verdict.ALLOCATED: "allocated",
    Verdict.ALLOCATABLE: "would fit now",
    Verdict.NOT_ALLOCATABLE: "stuck",
    Verdict.UNDETERMINED: "undetermined",
}


def write_overview(overview: Overview, color: str = "auto", stream: TextIO | None = None, flags: str = "") -> None:
    """Writes the table, stuck ones first, then a summary and the next command, with ``flags`` repeated."""
    out = Painter(stream, color)
    if not overview.found:
        out.paragraph(overview_answer(overview))
        _notes(out, overview)
        if overview.elsewhere:
            out.write("")
            out.write(("Next: ", "bold"), f"kubectl dra explain -A{flags}")
        return
    ranked = sorted(overview.found, key=lambda alike: (-alike.diagnosis.verdict.exit_code, -len(alike.names)))
    rows = [HEADER, *(_row(alike) for alike in ranked)]
    header, *blocks = fitted(rows, out.limit, BELOW, prose=True)
    out.write((header[0], "bold"))
    for block in blocks:
        for line in block:
            out.write(line)
    out.write("")
    out.write(overview_answer(overview).removesuffix("."))
    _notes(out, overview)
    if overview.unseen:
        out.write("")
    first = ranked[0].diagnosis
    out.write(("Next: ", "bold"), f"kubectl dra explain {ranked[0].names[0]} -n {first.namespace}{flags}")


def _notes(out: Painter, overview: Overview) -> None:
    if not overview.unseen:
        return
    out.write("")
    out.write(("Notes", "bold"))
    for note in overview.unseen:
        out.paragraph(written(note), indent="    ", first="  - ")


def _row(alike: Alike) -> tuple[str, ...]:
    diagnosis = alike.diagnosis
    first = diagnosis.findings[0] if diagnosis.findings else None
    cause = first.kind.code if first else "-"
    why = written(first.summary) if first else reason(diagnosis)
    return diagnosis.namespace, some(alike.names, 1), _WORDS[diagnosis.verdict], cause, why
