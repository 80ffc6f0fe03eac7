"""The plan of a migration for people: by file what changes and why, what stays, and what to do next."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import groupby
from typing import Final, TextIO

from kubectl_dra.manifests.inputs import is_file
from kubectl_dra.migrate.registry import about
from kubectl_dra.migrate.result import MigratedFile, MigrationReport, Remark, Sort
from kubectl_dra.report.paint import Painter
from kubectl_dra.text import amount

_STYLES: Final[Mapping[Sort, str]] = {
    "change": "green",
    "object": "green",
    "offer": "yellow",
    "note": "cyan",
    "refusal": "red",
}
_WORDS: Final[Mapping[Sort, str]] = {
    "change": "change",
    "object": "add",
    "offer": "unsafe",
    "note": "note",
    "refusal": "refused",
}
LEFT: Final[Mapping[Sort, str]] = {"offer": "needs --unsafe", "refusal": "refused"}
"""What is left to people, in the terms of the one-line messages."""


def write_text(report: MigrationReport, color: str = "auto", stream: TextIO | None = None, done: str = "") -> None:
    """Write all remarks and the summary; ``done`` says what was written where."""
    out = Painter(stream or sys.stdout, color)
    for file in report.all_files:
        if file.items:
            out.write((file.name, "bold"))
            _items(out, file)
            out.write("")
    out.paragraph(summary(report, done))


def _items(out: Painter, file: MigratedFile) -> None:
    for (_, _, title), items in groupby(file.items, key=lambda item: (item.document, item.root, item.object)):
        found = list(items)
        if title:
            out.write("  ", (title, "bold"))
        for item in found:
            _item(out, item)


def _item(out: Painter, item: Remark) -> None:
    name = about()[item.code].name if item.code in about() else ""
    subject = item.new or item.field
    place, code = f"    {item.line}:{item.column}  ", f" {item.code} {name}"
    beside = len(place) + 7 + len(code) + 4 + len(subject) <= out.width
    out.write(
        place,
        (_WORDS[item.sort].ljust(7), _STYLES[item.sort]),
        code,
        (f"    {subject}" if subject and beside else "", "dim"),
    )
    if subject and not beside:
        out.paragraph(subject, indent="        ", first="      ", style="dim")
    if item.message:
        out.paragraph(item.message, indent="      ")
    if item.origin:
        out.paragraph(item.origin, indent="         ", first="      from: ", style="dim")
    if item.way_out:
        out.paragraph(item.way_out, indent="         ", first="      do: ", style="green")


def write_check(report: MigrationReport, stream: TextIO | None = None) -> None:
    """Write one line for each file that would change, and for each thing left to people."""
    out = Painter(stream or sys.stdout, "never")
    for file in report.all_files:
        if file.changed:
            out.sentence(f"{file.name}: would {'be added' if file.is_new else 'change'}")
        for item in file.items:
            if item.sort in LEFT:
                out.sentence(f"{file.name}:{item.line}:{item.column}: {item.code} {LEFT[item.sort]}: {item.message}")
    out.sentence(summary(report), indent="")


def summary(report: MigrationReport, done: str = "") -> str:
    """One sentence: what changes in how many files, what is refused, for which Kubernetes."""
    changes, added = len(report.items("change")), len(report.items("object"))
    offers, refused, notes = (len(report.items(sort)) for sort in ("offer", "refusal", "note"))
    files = len(report.changed)
    parts = []
    if changes or added:
        what = [amount(changes, "change")] if changes else []
        what += [amount(added, "new object")] if added else []
        new = sum(file.is_new for file in report.changed)
        where = f"{files - new:,} of {amount(report.read, 'file')}"
        where += f" and {amount(new, 'new file')}" if new else ""
        # The file of --claims-file need not be one of those that were read.
        where = amount(files, "file") if report.claims is not None else where
        parts.append(f"{' and '.join(what)} in {where}")
    if offers:
        parts.append(f"{amount(offers, 'unsafe change')} not made (--unsafe makes {'it' if offers == 1 else 'them'})")
    parts += [amount(refused, "refusal")] if refused else []
    parts += [amount(notes, "note")] if notes else []
    parts += [f"{report.ignored} left by comments"] if report.ignored else []
    text = ", ".join(parts) if parts else f"nothing to migrate in {amount(report.read, 'file')}"
    settings = report.settings
    text += f"; for Kubernetes {settings.release}, resource.k8s.io/{settings.version}."
    if done:
        text += f" {done}"
    elif files:
        # Only files can be changed in place: not standard input, nor what kustomize builds.
        in_place = all(is_file(file.name) for file in report.changed)
        way = "--write makes it" if in_place else "-o yaml prints the result, --output-dir DIR writes it"
        text += f" Nothing is written yet: --diff shows it, {way}."
    codes = sorted({item.code for item in report.items() if item.sort == "refusal"})
    if codes:
        text += f" About {codes[0]}: kubectl dra migrate --code {codes[0]}."
    return text
