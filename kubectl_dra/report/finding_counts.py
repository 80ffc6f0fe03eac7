"""What a long list of findings comes to, below it: how many of each sort, and in which files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kubectl_dra.report.color import Painter
from kubectl_dra.report.table import fitted
from kubectl_dra.text import amount, some

MANY: Final = 10
"""So many findings stand on the screen with the summary."""
SHOWN: Final = 12
"""Rows of the table; the rest is counted."""


class FindingCount(NamedTuple):
    """The ``number`` of findings of one ``code``, with its name.

    ``sort`` is their severity, or what they are; ``fix`` are the flags that fix some.
    """

    sort: str
    code: str
    number: int
    files: tuple[str, ...]
    fix: str = ""


def write_counts(out: Painter, counts: Sequence[FindingCount], noun: str = "finding") -> None:
    """Write the table; nothing if there are few findings, or all are of one sort. ``noun`` is what is counted."""
    if len(counts) < 2 or sum(count.number for count in counts) <= MANY:
        return
    rows = [("COUNT", "WHAT", "CODE", "FIX", "FILES")]
    for count in counts[:SHOWN]:
        rows.append((f"{count.number:,}", count.sort, count.code, count.fix or "-", some(count.files, 1)))
    columns = [index for index, name in enumerate(rows[0]) if name != "FIX" or any(count.fix for count in counts)]
    first, *blocks = fitted([[row[index] for index in columns] for row in rows], out.limit, ("FILES",))
    out.write((first[0], "bold"))
    for block in blocks:
        for line in block:
            out.write(line)
    rest = counts[SHOWN:]
    if rest:
        findings = amount(sum(count.number for count in rest), noun)
        out.write(f"and {findings} with {amount(len(rest), 'other code')}")
    out.write("")
