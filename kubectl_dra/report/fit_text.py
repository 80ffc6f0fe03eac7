"""What fits, on fifteen lines: the answer, where, what stops the next pod, what would make room, what to do next."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final, TextIO

from kubectl_dra.fit.result import FitAnswer, FitVerdict, More, OneMoreNode, WorkloadFit
from kubectl_dra.report.assumed import assumed
from kubectl_dra.report.explain_words import Invocation
from kubectl_dra.report.fit_words import change, code, command, gain, headline, places, stop
from kubectl_dra.report.paint import Painter, wrap
from kubectl_dra.report.phrases import written
from kubectl_dra.wording import amount, some

LINES: Final = 15
"""Of the answer about one workload where the terminal has 100 columns."""
MAX_PLACES: Final = 3
MAX_DEVICES: Final = 8
MAX_NOTES: Final = 2
_STYLES: Final = {
    FitVerdict.FITS: "bold green",
    FitVerdict.PARTLY: "bold yellow",
    FitVerdict.NOT: "bold red",
    FitVerdict.UNDETERMINED: "bold yellow",
}

Line = tuple[str | tuple[str, str], ...]
_BLANK: Final[Line] = ("",)


def write_fit(answer: FitAnswer, color: str = "auto", stream: TextIO | None = None, *, invocation: Invocation) -> None:
    """Writes the answer; what makes room is said for the first workload that does not fit."""
    out = Painter(stream, color)
    width = min(out.width, 120)
    stopped = next((one for one in answer.workloads if one.stop is not None), None)
    lines: list[Line] = []
    for found in answer.workloads:
        lines += _answer(found, width)
        lines += _stop(found, width)
        if found is stopped:
            lines += _changes(found, width, invocation)
        lines.append(_BLANK)
    notes = _notes(answer)
    room = LINES - len(lines) - 1
    lines += [_labelled("Note", note, width) for note in notes[: max(1, min(room, MAX_NOTES))]]
    if invocation.command:
        more = "--explain" if stopped is not None else "-o json"
        lines.append((("Next: ", "bold"), f"{invocation.command} {more}"))
    for line in lines:
        out.write(*line)


def _answer(found: WorkloadFit, width: int) -> list[Line]:
    """The answer, and the nodes with the most pods."""
    first, *rest = wrap(headline(found), width)
    lines: list[Line] = [((first, _STYLES[found.verdict]),), *((line,) for line in rest)]
    # What was placed without what decides is no answer.
    rows = places(found) if found.verdict is not FitVerdict.UNDETERMINED else []
    shown = rows if len(rows) <= MAX_PLACES else rows[: MAX_PLACES - 1]
    for node, pods, devices in shown:
        on = f": {some(devices, MAX_DEVICES)}" if devices else ""
        lines.append((_cut(f"  {amount(pods, 'pod')} on {node}{on}", width),))
    if left := rows[len(shown) :]:
        pods = sum(count for _, count, _ in left)
        lines.append((f"  {amount(pods, 'pod')} on {amount(len(left), 'more node')}",))
    return lines


def _stop(found: WorkloadFit, width: int) -> list[Line]:
    """Which pod does not fit, and why, on two lines more."""
    if found.stop is None:
        return []
    many = f"is the first of {found.stop.others + 1:,} that do not fit" if found.stop.others else "does not fit"
    lines: list[Line] = [_BLANK, (f"Pod {found.stop.pod} {many}:",)]
    name = code(found)
    reason = wrap(f"{name}: {stop(found)}" if name else stop(found), width - 2)
    for number, line in enumerate(reason[:2]):
        lead = name if not number and line.startswith(name) else ""
        more = " ..." if number == 1 and len(reason) > 2 else ""
        lines.append(("  ", (lead, "cyan"), line.removeprefix(lead) + more))
    return lines


def _changes(found: WorkloadFit, width: int, invocation: Invocation) -> list[Line]:
    """The cheapest holder and the best kind of node, each with what it brings."""
    shown = _shown(found.more)
    if not shown:
        none = f"  None of {amount(found.tried, 'change')} that were tried makes room by itself."
        return [(none,)] if found.tried else []
    lines: list[Line] = [_BLANK, (("What makes room, proved by placing the pods again with it", "bold"),)]
    for more in shown:
        text = f"{change(more.change)}: {gain(found, more)}."
        first, *rest = wrap(f"{text[:1].upper()}{text[1:]}", width - 4)
        lines += [("  - ", first), *(("    ", line) for line in rest)]
        if made := command(more.change, invocation):
            lines.append(("    $ ", (made, "cyan")))
    return lines


def _shown(found: Sequence[More]) -> list[More]:
    holder = next((more for more in found if not isinstance(more.change, OneMoreNode)), None)
    node = next((more for more in found if isinstance(more.change, OneMoreNode)), None)
    shown = [more for more in (holder, node) if more is not None]
    # What makes no replica whole is worth saying only where nothing does.
    return [more for more in shown if more.replicas] or shown


def _notes(answer: FitAnswer) -> list[str]:
    found = [written(note) for note in answer.notes]
    if answer.waiting:
        verb = "waits" if answer.waiting == 1 else "wait"
        found.append(f"{amount(answer.waiting, 'other pod')} with claims {verb} already and may be placed first")
    return [*found, assumed(answer)]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else "  " + textwrap.shorten(text, width - 2, placeholder=" ...")


def _labelled(label: str, text: str, width: int) -> Line:
    """One line, cut between two words where it is too long."""
    room = width - len(label) - 2
    shown = text if len(text) <= room else textwrap.shorten(text, room, placeholder=" ...")
    return (label, "bold"), f": {shown}"
