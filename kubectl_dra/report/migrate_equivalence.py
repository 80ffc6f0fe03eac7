"""Where migrated pods would run, for people and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final, TextIO

from kubectl_dra.errors import DraError
from kubectl_dra.explain.diagnosis import Diagnosis, Verdict
from kubectl_dra.explain.phrase import Words
from kubectl_dra.migrate.landing import SHOWN, changed_total
from kubectl_dra.migrate.result import LandingComparison
from kubectl_dra.report.explain_words import reason
from kubectl_dra.report.paint import Painter
from kubectl_dra.report.phrases import written
from kubectl_dra.text import amount, some

_NOW: Final = {
    Verdict.ALLOCATABLE: "allocatable",
    Verdict.ALLOCATED: "allocated",
    Verdict.NOT_ALLOCATABLE: "cannot be scheduled",
    Verdict.UNDETERMINED: "not certain",
}


def write_comparisons(found: Sequence[LandingComparison], color: str = "auto", stream: TextIO | None = None) -> None:
    """Write, for each pod, on how many nodes it could run before and after, and what it would get now."""
    out = Painter(stream or sys.stdout, color)
    if not found:
        return
    out.write(("Where the pods would land", "bold"))
    for one in found:
        _one(out, one)
    fewer, same, more = changed_total(found)
    out.paragraph(
        f"{amount(len(found), 'pod')}: {same} on as many nodes as before, {fewer} on fewer, {more} on more. Before: "
        "nodes whose device plugin offers as much, used or not. After: nodes with such devices, used or not."
    )


def _one(out: Painter, one: LandingComparison) -> None:
    asked = ", ".join(f"{amount} {name}" for name, amount in one.resources.items())
    out.write("  ", (one.object, "bold"), f"{f' {one.pod}' if one.pod else ''}  ", (asked, "dim"))
    style = "red" if one.difference < 0 else "green"
    if one.before or one.after:
        change = f"{abs(one.difference)} {'fewer' if one.difference < 0 else 'more'}" if one.difference else "as many"
        out.write("    nodes: ", f"{len(one.before)} before, {len(one.after)} after, ", (change, style))
    else:
        out.write("    nodes: none before, ", ("none after", "yellow"))
    for lost in one.lost:
        out.paragraph(f"no more on {some(lost.nodes, SHOWN)}: {_said(lost.reason)}", indent="      ")
    if one.gained:
        out.paragraph(f"also on {some(one.gained, SHOWN)}", indent="      ")
    if one.landings:
        first = one.landings[0]
        out.paragraph(
            f"now: {amount(len(one.landings), 'node')}; on {first.node}: {', '.join(first.devices)}", indent="    "
        )
    else:
        out.paragraph(f"now: {_NOW[one.verdict]}: {_said(one.answer)}", indent="    ", style="yellow")


def _said(why: Words | Diagnosis | DraError | None) -> str:
    """A reason; for a diagnosis its sentence without the pod and the verdict, which stand beside it."""
    if why is None:
        return ""
    if isinstance(why, DraError):
        return str(why)
    return f"{reason(why)}." if isinstance(why, Diagnosis) else written(why)


def to_json(found: Sequence[LandingComparison]) -> list[dict[str, Any]]:
    """The comparisons, in the shape of ``equivalence`` of ``schemas/migrate.json``."""
    return [
        {
            "file": one.file,
            "object": one.object,
            "pod": one.pod,
            "resources": dict(one.resources),
            "before": list(one.before),
            "after": list(one.after),
            "difference": one.difference,
            "landings": [{"node": each.node, "devices": list(each.devices)} for each in one.landings],
            "lost": [{"reason": _said(lost.reason), "nodes": list(lost.nodes)} for lost in one.lost],
            "gained": list(one.gained),
            "verdict": one.verdict.value,
            "answer": _said(one.answer),
            "notes": [written(note) for note in one.notes],
        }
        for one in found
    ]
