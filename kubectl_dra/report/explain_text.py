"""A diagnosis as text: the answer first, the evidence under it, the next command last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TextIO

from msgspec.structs import replace

from kubectl_dra.addresses import page_of_cause
from kubectl_dra.explain.diagnosis import (
    ClaimReport,
    DeviceLine,
    Diagnosis,
    Evidence,
    Finding,
    Funnel,
    NodeGroup,
    SecondOpinion,
    Stage,
    Trace,
)
from kubectl_dra.explain.funnel.stages import SelectorFalse
from kubectl_dra.explain.phrase import Words
from kubectl_dra.report.assumed import assumed
from kubectl_dra.report.cel_text import folded
from kubectl_dra.report.explain_making import making, shell
from kubectl_dra.report.explain_words import (
    Invocation,
    about,
    answer,
    changes,
    choice,
    command,
    fits_there,
    fix,
    node_groups,
    notes,
    observation,
    placed,
    proof,
    style,
)
from kubectl_dra.report.paint import Painter, linked, wrap
from kubectl_dra.report.phrases import written
from kubectl_dra.wording import amount, some

MAX_PLACEMENTS = 3
MAX_REASONS = 4
MAX_EVIDENCE = 6
MAX_DEVICES = 200
MAX_TERMS = 6
MAX_NOTE = 600
_UNKNOWN = Invocation()
_FALSE = {
    "class-selector": "a selector of the class is false",
    "request-selector": "a selector of the request is false",
}


def write_text(
    diagnoses: Sequence[Diagnosis],
    color: str = "auto",
    stream: TextIO | None = None,
    invocation: Invocation = _UNKNOWN,
    *,
    full: bool = False,
) -> None:
    """Writes diagnoses, an empty line between two; ``full``: with all that supports them."""
    painter = Painter(stream, color)
    write = _diagnosis
    if not full:
        from kubectl_dra.report.explain_brief import brief as write
    for index, diagnosis in enumerate(diagnoses):
        if index:
            painter.write("")
        write(painter, diagnosis, invocation)


def _diagnosis(out: Painter, diagnosis: Diagnosis, invocation: Invocation) -> None:
    out.paragraph(answer(diagnosis), style=style(diagnosis))
    if diagnosis.findings:
        out.write("")
        out.write(("Why", "bold"))
        for number, finding in enumerate(diagnosis.findings, 1):
            _finding(out, number, finding, invocation)
    if diagnosis.ways:
        out.write("")
        out.heading("What would help", " (each one proved by running the allocation with it)")
        for way in diagnosis.ways:
            text = f"{', and '.join(changes(way))}: {fits_there(way.proof)}."
            out.paragraph(text, indent="    ", first="  - ", style="green")
            _command(out, way.changes, invocation)
    for claim in diagnosis.claims:
        _claim(out, claim)
    for trace in diagnosis.traces:
        _trace(out, trace)
    if diagnosis.second_opinion is not None:
        _second_opinion(out, diagnosis.second_opinion)
    _nodes(out, diagnosis)
    _scheduler(out, diagnosis)
    out.write("")
    out.write(("Notes", "bold"))
    out.paragraph(assumed(diagnosis), indent="    ", first="  - ")
    for note in notes(diagnosis):
        shown = note if len(note) <= MAX_NOTE else f"{note[:MAX_NOTE]}… (all of it with -o json)"
        out.paragraph(shown, indent="    ", first="  - ")
    if following := command(diagnosis.next, invocation):
        out.write("")
        out.write(("Next: ", "bold"), following)


def _scheduler(out: Painter, diagnosis: Diagnosis) -> None:
    """What Kubernetes said last, and what the scheduler would say now where that is something else."""
    # What a cause quotes as its evidence is not said a second time.
    quoted = {evidence.value for finding in diagnosis.findings for evidence in finding.evidence}
    words = [word for word in diagnosis.scheduler if word.message not in quoted]
    if words:
        out.write("")
        out.write(("Kubernetes says", "bold"))
        for word in words:
            when = f" at {word.time}" if word.time else ""
            out.paragraph(f"{word.source} {word.reason}{when}: {word.message}", indent="    ", first="  ")
    if diagnosis.message and all(word.message != diagnosis.message for word in diagnosis.scheduler):
        out.write("")
        out.write(("kube-scheduler would say", "bold"))
        out.paragraph(diagnosis.message, indent="    ", first="  ")


def _finding(out: Painter, number: int, cause: Finding, asked: Invocation) -> None:
    where = ", ".join(
        part
        for part in (
            f"claim {cause.claim}" if cause.claim else "",
            f'request "{cause.request}"' if cause.request else "",
        )
        if part
    )
    style = linked("cyan", page_of_cause(cause.kind.code))
    out.heading(cause.kind.code, f": {cause.kind.title}", "     ", f"  {number}. ", style)
    if where:
        out.paragraph(where, indent="     ", style="dim")
    if number > 1:
        out.paragraph(written(cause.summary), indent="     ")
    for evidence in cause.evidence:
        _evidence(out, evidence)
    out.paragraph(f"Fix: {fix(cause)}", indent="          ", first="     ", style="green")
    if cause.proof:
        out.paragraph(f"Proved: {proof(cause.proof)}.", indent="             ", first="     ", style="green")
        _command(out, cause.remedy.offers if cause.remedy else (), asked)


def _command(out: Painter, made: Sequence[object], asked: Invocation) -> None:
    if commands := making(made, asked):
        out.write("     $ ", (shell(commands), "cyan"))


def _evidence(out: Painter, evidence: Evidence) -> None:
    what = about(evidence)
    value = written(evidence.value)
    whole = f"{what} {value}"
    if not evidence.is_cel:
        out.paragraph(whole, indent="       ", first="     ")
    elif "\n" not in whole and len(whole) + 5 <= out.width:
        out.write("     ", whole)
    else:
        out.paragraph(what, indent="       ", first="     ")
        for line in folded(value, out.width - 7):
            out.write("       ", line)


def _claim(out: Painter, claim: ClaimReport) -> None:
    origin = f", from template {claim.template}" if claim.template else ""
    name = claim.claim or f'entry "{claim.entry}"'
    out.write("")
    out.heading(f"Claim {name}", f" ({written(claim.state)}{origin})")
    for request, device in claim.devices:
        out.paragraph(f"{request}: {device}", indent="    ", first="  ")
    if claim.nodes:
        out.paragraph(f"usable on: {claim.nodes}", indent="    ", first="  ")
    for funnel in claim.funnels:
        _funnel(out, funnel)


def _funnel(out: Painter, funnel: Funnel) -> None:
    amount = "all devices" if funnel.mode == "All" else str(funnel.needed)
    lead = f'request "{funnel.request}"'
    text = f"{lead}: {amount} of class {funnel.device_class}; devices left after each step"
    first, *rest = wrap(text, out.width - 4)
    out.write("  ", (lead, "bold"), first.removeprefix(lead))
    for line in rest:
        out.write("    ", line)
    width = len(f"{max((stage.passed for stage in funnel.stages), default=0):,}")
    for stage in _folded(_until_empty(funnel.stages)):
        _stage(out, stage, width)
    if funnel.best_node:
        out.write(f"    most on one node: {funnel.best_count} on {funnel.best_node}")
    for device in funnel.devices[:MAX_DEVICES]:
        _device(out, device)
    if len(funnel.devices) > MAX_DEVICES:
        out.write(f"      … {len(funnel.devices) - MAX_DEVICES:,} more devices (all of them with -o json)")


def _device(out: Painter, line: DeviceLine) -> None:
    mark = ("✓", "green") if line.stage == "usable" else ("✗", "red")
    place = f"{line.device}  ({line.nodes})"
    false = line.stage in _FALSE and isinstance(line.reason, SelectorFalse)
    why = _FALSE[line.stage] if false else f"{line.stage}: {written(line.reason)}"
    if not line.reason:
        out.write("      ", mark, f" {place}")
    elif out.limit is None or len(place) + len(why) + 10 <= out.limit:
        out.write("      ", mark, f" {place}  {why}")
    else:
        out.write("      ", mark, f" {place}")
        out.paragraph(why, indent="            ", first="          ")


def _until_empty(stages: Sequence[Stage]) -> Iterator[Stage]:
    """The stages up to the first that leaves nothing: what follows has nothing to test."""
    for stage in stages:
        yield stage
        if not stage.passed:
            return


def _folded(stages: Iterator[Stage]) -> Iterator[Stage]:
    """Selector terms of a class that lose no device become one line."""
    kept: list[Stage] = []
    for stage in stages:
        last = kept[-1] if kept else None
        foldable = last is not None and not last.failed and not stage.failed and last.name == stage.name
        if last is not None and foldable and stage.name == "class-selector":
            kept[-1] = replace(last, label=last.selector, expression="")
        else:
            kept.append(stage)
    yield from _without_long_runs(kept)


def _without_long_runs(stages: Sequence[Stage]) -> Iterator[Stage]:
    """Many terms of one selector in a row that lose no device become one line."""

    def selector(stage: Stage) -> tuple[Words, bool]:
        return stage.selector, bool(stage.expression) and not stage.failed

    for (label, lossless), group in groupby(stages, key=selector):
        run = list(group)
        if lossless and len(run) > MAX_TERMS:
            yield replace(run[-1], label=f"{written(label)}: {len(run):,} terms that refuse nothing", expression="")
        else:
            yield from run


def _stage(out: Painter, stage: Stage, width: int) -> None:
    number = f"{stage.passed:,}".rjust(width)
    style = "red" if not stage.passed else ("yellow" if stage.failed else "")
    mark = ("✗ ", "red") if not stage.passed and stage.failed else "  "
    lost = f"  (-{stage.failed:,})" if stage.failed else ""
    indent = " " * (width + 6)
    label = written(stage.label)
    whole = f"  {label}" + (f": {stage.expression}" if stage.expression else "") + lost
    if "\n" not in whole and len(indent) + len(whole) <= out.width:
        out.write("    ", mark, (number, style), whole)
    else:
        head = f"{label}{':' if stage.expression else ''}{lost}"
        for row, text in enumerate(wrap(head, out.width - len(indent) - 2)):
            out.write(*(("    ", mark, (number, style)) if not row else (indent,)), f"  {text}")
        for text in folded(stage.expression, out.width - len(indent) - 4) if stage.expression else ():
            out.write(indent, "    ", text)
    for reason, count in stage.details[:MAX_REASONS]:
        out.paragraph(f"{count:,} × {written(reason)}", indent=indent + "      ", first=indent + "    ", style="dim")
    if len(stage.details) > MAX_REASONS:
        rest = sum(count for _, count in stage.details[MAX_REASONS:])
        out.write(indent, "    ", (f"{rest:,} × others", "dim"))
    if stage.error is not None:
        place = f" at column {stage.error.position.column}" if stage.error.position else ""
        line = f" of line {stage.error.position.line}" if stage.error.position and stage.error.position.line > 1 else ""
        out.paragraph(
            f"error on {stage.error.count:,}: {stage.error.message}{place}{line}, for instance on {stage.error.device}",
            indent=indent + "      ",
            first=indent + "    ",
            style="red",
        )
    if not stage.observations:
        return
    for seen in stage.observations:
        out.paragraph(observation(seen), indent=indent + "      ", first=indent + "    ", style="dim")


def _nodes(out: Painter, diagnosis: Diagnosis) -> None:
    if not diagnosis.nodes:
        return
    out.write("")
    out.write(("Nodes", "bold"))
    groups = node_groups(diagnosis)
    fitting = [group for group in groups if group.outcome == "allocated"]
    for group in fitting:
        _group(out, group)
    _placements(out, diagnosis)
    if chosen := choice(diagnosis):
        out.paragraph(chosen, indent="        ", first="    ")
    for group in groups:
        if group not in fitting:
            _group(out, group)


def _placements(out: Painter, diagnosis: Diagnosis) -> None:
    for placement in diagnosis.placements[:MAX_PLACEMENTS]:
        if listed := placed(placement):
            out.paragraph(f"on {placement.node}: {listed}", indent="        ", first="    ")
    if len(diagnosis.placements) > MAX_PLACEMENTS:
        out.write(f"    … and {len(diagnosis.placements) - MAX_PLACEMENTS:,} more nodes (all of them with -o json)")


def _group(out: Painter, group: NodeGroup) -> None:
    style = {"allocated": "green", "error": "red", "rejected": "yellow"}.get(group.outcome, "dim")
    count, names = amount(len(group.nodes), "node"), some(group.nodes, 6)
    fits = "fits" if len(group.nodes) == 1 else "fit"
    word = {"allocated": fits, "not-eligible": "not eligible", "error": "with an error"}.get(
        group.outcome, group.outcome
    )
    out.paragraph(f"{count} {word} ({names}): {written(group.reason)}", indent="      ", first="  ", style=style)


def _trace(out: Painter, trace: Trace) -> None:
    out.write("")
    out.write(("Trace ", "bold"), f"of {trace.owner} on {trace.device}: {trace.result}")
    for line in folded(trace.expression, out.width - 2):
        out.write("  ", line)
    width = min(40, out.width // 4, max((len(step.value) for step in trace.steps), default=0))
    for step in trace.steps:
        style = "red" if step.error else ""
        indent = "  " * step.depth
        whole = step.text.strip() == trace.expression.strip()
        room = max(20, out.width - width - 6 - len(indent))
        first, *rest = ["the whole expression"] if whole else folded(step.text, room)
        if len(step.value) <= width:
            out.write("    ", (step.value.ljust(width), style), f"  {indent}{first}")
        else:
            out.paragraph(step.value, indent="    ", style=style)
            out.write("    ", " " * width, f"  {indent}{first}")
        for line in rest:
            out.write("    ", " " * width, f"  {indent}{line}")


def _second_opinion(out: Painter, opinion: SecondOpinion) -> None:
    out.write("")
    out.write(("Second opinion (cel-python)", "bold"))
    out.paragraph(
        f"{opinion.agree:,} evaluations agree, {len(opinion.differ):,} differ, "
        f"{opinion.not_comparable:,} could not be compared",
        indent="    ",
        first="  ",
    )
    for line in opinion.differ[:10]:
        out.paragraph(line, indent="    ", first="  differs: ", style="red")
    for reason, count in opinion.reasons:
        out.paragraph(f"{count:,} not compared: {reason}", indent="    ", first="  ")
