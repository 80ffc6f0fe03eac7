"""Every pending claim as a table: who waits, and the first cause of each."""

from __future__ import annotations

from typing import TextIO

from kubectl_dra.explain.diagnosis import Diagnosis, Verdict
from kubectl_dra.explain.overview import Alike, Overview
from kubectl_dra.report.paint import Painter
from kubectl_dra.report.table import fitted

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
        out.paragraph(overview.answer)
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
    out.write(overview.answer.removesuffix("."))
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
        out.paragraph(note, indent="    ", first="  - ")


def _row(alike: Alike) -> tuple[str, ...]:
    diagnosis = alike.diagnosis
    more = f" and {len(alike.names) - 1:,} more" if len(alike.names) > 1 else ""
    cause = diagnosis.causes[0].kind.code if diagnosis.causes else ""
    reason = diagnosis.causes[0].summary if diagnosis.causes else _reason(diagnosis)
    return diagnosis.namespace, alike.names[0] + more, _WORDS[diagnosis.verdict], cause or "-", reason


def _reason(diagnosis: Diagnosis) -> str:
    return diagnosis.answer.split(": ", 1)[-1].removeprefix("undetermined: ").rstrip(".")
