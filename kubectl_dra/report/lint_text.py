"""Findings for people: by file, the line with a caret, the reason, the fix, and a summary at the end."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, TextIO

from kubectl_dra.grouped import grouped
from kubectl_dra.lint.finding import LocatedFinding, Report
from kubectl_dra.lint.rules import BY_CODE
from kubectl_dra.lint.rules.server_rejections import UNDECODED
from kubectl_dra.lint.upgrade import gate_changes
from kubectl_dra.report.color import PROSE_WIDTH, Painter
from kubectl_dra.report.table import MANY, FindingCount, write_counts
from kubectl_dra.text import amount, out_of, some, unmarked

_FLAGS: Final = {"safe": " (--fix)", "unsafe": " (--fix --unsafe-fixes)", "none": ""}
_STYLES: Final = {"error": "red", "warning": "yellow", "info": "cyan"}
_BEFORE: Final = 60
_CUT: Final = "…"
_FIELD: Final = " " * 6
_PART: Final = re.compile(r"(?:\[[^\]]*\]|[^.\[])+\.?|.")
"""A field of a path, with its keys in brackets, of which dots are a part, and the dot that follows."""


def write_text(report: Report, color: str = "auto", stream: TextIO | None = None) -> None:
    """Write the findings, with each rule's reason at its first occurrence, and the summary."""
    out = Painter(stream or sys.stdout, color)
    explained: set[str] = set()
    told, rest = _without_repeated(report.findings)
    for file, findings in groupby(told, key=lambda finding: finding.file):
        shown = [out.line((file, "bold"))]
        advised: dict[tuple[str, str], int] = {}
        for finding in findings:
            shown += _finding(out, finding, finding.code not in explained, advised)
            explained.add(finding.code)
        out.put("".join([*shown, "\n"]))
    for code, left in rest.items():
        places = amount(len({finding.file for finding in left}), "file")
        out.paragraph(f"and {len(left):,} more {code} {BY_CODE[code].name} in {places}: -o concise lists each.")
    if rest:
        out.write("")
    several = len({finding.file for finding in report.findings}) > 1
    if several:
        # Of one file they would say again what stands above.
        write_counts(out, _counts(report))
    for sentence in (*_sentences(report), *(_places_of_errors(report) if several else ())):
        out.paragraph(sentence)
    if report.upgrade is not None:
        changes = gate_changes(report.upgrade.release, report.release)
        for state, gates in (("on", changes.on), ("off", changes.off)):
            if gates:
                out.paragraph(f"Gates that turn {state} unless somebody sets them: {', '.join(gates)}.", style="dim")


def write_concise(report: Report, stream: TextIO | None = None) -> None:
    """Write each finding on one line, and the summary."""
    out = Painter(stream or sys.stdout, "never")
    for finding in report.findings:
        place = f"{finding.file}:{finding.line}:{finding.column}"
        out.write(f"{place}: {finding.severity} {finding.code} {finding.told}{_FLAGS[finding.promised]}")
    out.write(summary(report))


_REPEATED: Final = 3
"""So many notes of one rule are shown in full."""


def _without_repeated(
    findings: Sequence[LocatedFinding],
) -> tuple[list[LocatedFinding], Mapping[str, list[LocatedFinding]]]:
    """The findings without the notes that say again what others of their rule say, and those by code."""
    shown: list[LocatedFinding] = []
    notes: dict[str, list[LocatedFinding]] = {}
    for finding in findings:
        known = notes.setdefault(finding.code, []) if finding.severity == "info" else None
        if known is not None:
            known.append(finding)
        if known is None or len(known) <= _REPEATED:
            shown.append(finding)
    return shown, {code: listed[_REPEATED:] for code, listed in notes.items() if len(listed) > _REPEATED}


def _counts(report: Report) -> list[FindingCount]:
    """The findings by severity and rule, the severe ones first."""
    groups = grouped(((tuple(_STYLES).index(finding.severity), finding.code), finding) for finding in report.findings)
    counts = []
    for (_, code), found in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]))):
        ways = [
            flag.strip(" ()")
            for safety, flag in _FLAGS.items()
            if any(located_finding.promised == safety for located_finding in found)
        ]
        files = tuple(dict.fromkeys(located_finding.file for located_finding in found))
        name = f"{code} {BY_CODE[code].name}"
        counts.append(FindingCount(found[0].severity, name, len(found), files, ", ".join(filter(None, ways))))
    return counts


def _finding(
    out: Painter, finding: LocatedFinding, explain: bool, advised: dict[tuple[str, str], int]
) -> Iterator[str]:
    """The lines of a finding; a command that was ``advised`` in the same words is not said again."""
    rule = BY_CODE[finding.code]
    place = f"  {finding.line}:{finding.column}"
    yield out.line(place, "  ", (finding.severity, _STYLES[finding.severity]), f" {finding.code} {rule.name}")
    yield from _subject(out, finding)
    yield out.lines(finding.message, indent="    ")
    yield from _source(out, finding)
    if explain:
        lead = "    why: "
        for paragraph in unmarked(rule.why()).split("\n\n"):
            yield out.lines(paragraph, indent="         ", first=lead, style="dim")
            lead = "         "
    first = advised.setdefault((finding.advice, finding.command), finding.line)
    if finding.command and first != finding.line:
        yield out.lines(f"the same as in line {first}", indent="         ", first="    fix: ", style="green")
    elif finding.block:
        yield out.line("    ", ("fix: Write:", "green"))
        for line in finding.block:
            yield out.line("         ", (line, "green"))
    elif finding.advice:
        yield from _advice(out, finding)
        if finding.command:
            # Commands are never wrapped: they are there to be pasted.
            yield out.line("         ", (finding.command, "green"))


def _advice(out: Painter, finding: LocatedFinding) -> Iterator[str]:
    """What to do; an expression that does not fit behind it has a line of its own, to be pasted."""
    by_hand = f" (by hand: {finding.obstacle})" if finding.obstacle else ""
    text, indent = f"{finding.advice}{_FLAGS[finding.promised]}{by_hand}", " " * 9
    head, expression, tail = text.partition(finding.expression) if finding.expression else (text, "", "")
    if not expression or len(text) <= min(out.width, PROSE_WIDTH) - len(indent):
        yield out.lines(text, indent=indent, first="    fix: ", style="green")
        return
    yield out.lines(head.rstrip(), indent=indent, first="    fix: ", style="green")
    yield out.line(indent, (expression, "green"))
    if rest := tail.lstrip(" :;,."):
        yield out.lines(rest, indent=indent, style="green")


def _subject(out: Painter, finding: LocatedFinding) -> Iterator[str]:
    """The object and the field; a long field goes on in further lines, broken at its dots."""
    room = min(out.width, PROSE_WIDTH) - len(_FIELD)
    if len(finding.field) <= room:
        subject = ", ".join([part for part in (finding.object, finding.field) if part])
        if subject:
            yield out.lines(subject, indent=_FIELD, first="    ", style="dim")
        return
    lead = "    "
    if finding.object:
        yield out.lines(f"{finding.object},", indent=_FIELD, first=lead, style="dim")
        lead = _FIELD
    line = ""
    for part in _PART.findall(finding.field):
        if line and len(line) + len(part) > room:
            yield out.line(lead, (line, "dim"))
            line, lead = "", _FIELD
        line += part
    yield out.line(lead, (line, "dim"))


def _source(out: Painter, finding: LocatedFinding) -> Iterator[str]:
    """The line, cut around the place if it is wide (marked with …), and a caret under the culprit."""
    if not finding.excerpt.strip():
        return
    before = finding.excerpt_start
    line, start = finding.excerpt, finding.column - 1 - before
    end = finding.end_column - 1 - before if finding.end_line == finding.line else len(line)
    number = str(finding.line)
    room = max(20, out.width - len(number) - 8)
    cut = 0
    if len(line) > room:
        cut = max(0, min(start - _BEFORE, len(line) - room))
        line = line[cut : cut + room]
        line = (
            (_CUT if cut or before else line[:1])
            + line[1:-1]
            + (_CUT if cut + room < len(finding.excerpt) else line[-1:])
        )
    start, end = max(0, start - cut), max(0, min(end - cut, len(line)))
    lead = "\t".join([" " * _width(part) for part in line[:start].split("\t")])
    caret = "^" * max(1, _width(line[start:end]))
    yield out.line("    ", (f"{number} | ", "dim"), _shown(line))
    yield out.line("    ", (f"{' ' * len(number)} | ", "dim"), lead, (caret, _STYLES[finding.severity]))


def _width(text: str) -> int:
    """Number of columns that a text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _shown(line: str) -> str:
    """The line without terminal control characters."""
    if line.isprintable():
        return line
    return "".join(character if character == "\t" or character.isprintable() else " " for character in line)


def summary(report: Report) -> str:
    """Number of findings, in what, for which Kubernetes, and what was not checked, in one line."""
    return " ".join(_sentences(report))


def _places_of_errors(report: Report) -> Iterator[str]:
    """Where the errors are among findings that do not fit on a screen."""
    errors = [f"{finding.file}:{finding.line}" for finding in report.findings if finding.severity == "error"]
    if errors and MANY < len(report.findings) != len(errors):
        yield f"{'The error is' if len(errors) == 1 else 'Errors are'} in {some(tuple(dict.fromkeys(errors)), 5)}."


def _sentences(report: Report) -> Iterator[str]:
    files = len({finding.file for finding in report.findings})
    read = amount(len(report.files), "file")
    objects = amount(len(report.objects), "object")
    counts: Mapping[str, int] = report.counts()
    # "info" has no plural that people write.
    parts = [
        f"{number:,} info" if severity == "info" else amount(number, severity)
        for severity, number in counts.items()
        if number
    ]
    text = (
        f"{', '.join(parts)} in {out_of(files, len(report.files), 'file')}"
        if parts
        else f"no findings in {objects} of {read}"
    )
    if not report.objects and report.unchecked:
        text = f"nothing checked in {read}"
    if report.upgrade is not None:
        text += f", for an upgrade from Kubernetes {report.upgrade.release} to {report.release}."
    else:
        text += f", for Kubernetes {report.release}."
    if report.left_out:
        text += f" {amount(report.left_out, 'file')} left out."
    fixes = [
        f"{number} with {flag}"
        for safety, flag in (("safe", "--fix"), ("unsafe", "--fix --unsafe-fixes"))
        if (number := sum(finding.promised == safety for finding in report.findings))
    ]
    if fixes:
        text += f" Fixable: {', '.join(fixes)}."
    if report.suppressed:
        text += f" {report.suppressed} ignored by comments."
    yield text
    if partly := len(report.checked_partly):
        whose = report.checked_partly[0][1] if partly == 1 else amount(partly, "object")
        them = "it" if partly == 1 else "them"
        yield f"The rest of {whose} is checked once the API server can decode {them} ({', '.join(UNDECODED)})."
    if report.unchecked and report.upgrade is None:
        kinds = [f"{kind} ({number:,})" if number > 1 else kind for kind, number in report.unchecked.items()]
        yield f"Not checked, because no rule is about them: {some(kinds)}."
    if report.not_given:
        yield f"Used, but not among the files, so not checked: {some(report.not_given)}."
