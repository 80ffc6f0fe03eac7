"""Every pending claim as a table: who waits, and the first cause of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from kubectl_dra.explain.model import Diagnosis, Verdict
from kubectl_dra.explain.overview import Alike
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


def write_overview(found: Sequence[Alike], color: str = "auto", stream: TextIO | None = None, flags: str = "") -> None:
    """Writes the table, stuck ones first, then a summary and the next command, with ``flags`` repeated."""
    out = Painter(stream, color)
    if not found:
        out.write("No claim is pending.")
        return
    ranked = sorted(found, key=lambda alike: (-alike.diagnosis.verdict.exit_code, -len(alike.names)))
    rows = [HEADER, *(_row(alike) for alike in ranked)]
    header, *blocks = fitted(rows, out.limit, BELOW, prose=True)
    out.write((header[0], "bold"))
    for block in blocks:
        for line in block:
            out.write(line)
    total = sum(len(alike.names) for alike in found)
    stuck = sum(len(alike.names) for alike in found if alike.diagnosis.verdict is Verdict.NOT_ALLOCATABLE)
    out.write("")
    out.write(f"{total:,} waiting, {stuck:,} of them stuck")
    first = ranked[0].diagnosis
    out.write(("Next: ", "bold"), f"kubectl dra explain {ranked[0].names[0]} -n {first.namespace}{flags}")


def _row(alike: Alike) -> tuple[str, ...]:
    diagnosis = alike.diagnosis
    more = f" and {len(alike.names) - 1:,} more" if len(alike.names) > 1 else ""
    cause = diagnosis.causes[0].kind.code if diagnosis.causes else ""
    reason = diagnosis.causes[0].summary if diagnosis.causes else _reason(diagnosis)
    return diagnosis.namespace, alike.names[0] + more, _WORDS[diagnosis.verdict], cause or "-", reason


def _reason(diagnosis: Diagnosis) -> str:
    return diagnosis.answer.split(": ", 1)[-1].rstrip(".")
