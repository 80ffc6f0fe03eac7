"""Aligned columns in kubectl's style; on a narrow screen less important columns go below their row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_dra.explain.unread_kind import not_read
from kubectl_dra.report.color import Painter, wrap
from kubectl_dra.safe_output import one_line
from kubectl_dra.text import amount, some

if TYPE_CHECKING:
    from kubectl_dra.api.pods import Owner
    from kubectl_dra.explain.phrase import Words

GAP = "   "
EMPTY = "-"
UNKNOWN: Final = "?"
"""What was not read decides it."""
INDENT = "    "
MIN_NAME: Final = 12
"""A shorter name is not shortened."""
MIN_PROSE = 48
"""The narrowest column in which prose is still read with ease."""
_NEXT_NAME = re.compile(r",(?=[\w./-]+(?:=|/))")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines in which each column is as wide as its longest cell; the last column is not padded."""
    if not rows:
        return []
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]) - 1)]
    return [
        GAP.join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    ]


def fitted(
    rows: Sequence[Sequence[str]], limit: int | None, below: Sequence[str], *, prose: bool = False
) -> list[list[str]]:
    """The lines of each row, the header first.

    If a line would be longer than ``limit``, the columns named in ``below`` leave the table one by one, empty
    ones first, then in the given order, until the rest fits. Their cells then stand below the row, each with
    its column name. ``prose``: the last column is a sentence, wrapped in place if there is room. Nothing is
    cut, so the result may still be too wide.
    """
    rows = [[one_line(cell) for cell in row] for row in rows]
    header = rows[0]
    if limit is None or _width(rows, range(len(header))) <= limit:
        return [[line] for line in aligned(rows)]
    shown = [*range(len(header))]
    for name in below:
        index = header.index(name)
        if all(row[index] == EMPTY for row in rows[1:]):
            shown.remove(index)
    under: list[int] = []
    for name in below:
        index = header.index(name)
        if index not in shown:
            continue
        if _width(rows, shown) <= limit:
            break
        if prose and index == len(header) - 1:
            start = _width(rows, shown[:-1]) + len(GAP)
            if limit - start >= MIN_PROSE:
                return _with_prose([[row[at] for at in shown] for row in rows], start, limit)
        shown.remove(index)
        under.append(index)
    lines = aligned([[row[index] for index in shown] for row in rows])
    blocks = [[line] for line in lines]
    for row, block in zip(rows[1:], blocks[1:], strict=True):
        named = [
            f"{header[index].lower().replace('-', ' ')}: {row[index]}" for index in sorted(under) if row[index] != EMPTY
        ]
        block.extend(_below(named, limit))
    return blocks


class NarrowedTable(NamedTuple):
    """The rows, the header first, and the headings of the columns that were left out."""

    rows: list[tuple[str, ...]]
    omitted: list[str]


def narrowed(
    rows: Sequence[tuple[str, ...]],
    limit: int | None,
    omitted: Sequence[str],
    keys: Sequence[str],
    below: Sequence[str] = (),
) -> NarrowedTable:
    """As many columns of ``omitted`` go as have to, all empty ones before them, but none of ``keys``, which say what a
    row is.

    Where that is not enough, names in ``keys`` are shortened, if it is then. ``below`` take no room.
    """
    kept, gone = list(rows), []

    def excess() -> int:
        return width_of(kept, below) - limit if limit is not None else 0

    empty = [name for name, *cells in zip(*kept, strict=True) if {*cells} <= {EMPTY}]
    for name in (*empty, *(name for name in omitted if name not in empty)):
        if excess() <= 0:
            break
        if name in kept[0] and name not in keys:
            at = kept[0].index(name)
            if name not in empty:
                gone.append(name)
            kept = [(*row[:at], *row[at + 1 :]) for row in kept]
    whole = [*kept]
    for name in sorted(keys, key=lambda name: -_width(kept, [kept[0].index(name)])):
        if (more := excess()) > 0:
            at = kept[0].index(name)
            short = shortened([row[at] for row in kept[1:]], max(MIN_NAME, _width(kept, [at]) - more))
            kept[1:] = [(*row[:at], text, *row[at + 1 :]) for row, text in zip(kept[1:], short, strict=True)]
    return NarrowedTable(kept if excess() <= 0 else whole, gone)


def shortened(names: Sequence[str], room: int) -> list[str]:
    """Names of at most ``room`` characters, as different as they were: what goes is in the middle.

    Where nothing in the middle can go they stay as they are.
    """
    for tail in sorted(range(1, room - 1), key=lambda tail: abs(tail - room // 2)):
        short = {name: name if len(name) <= room else f"{name[: room - 1 - tail]}…{name[-tail:]}" for name in names}
        if len({*short.values()}) == len(short):
            return [short[name] for name in names]
    return list(names)


def width_of(rows: Sequence[Sequence[str]], below: Sequence[str] = ()) -> int:
    """The width of a table without the columns that go below its rows."""
    return _width(rows, [index for index, heading in enumerate(rows[0]) if heading not in below])


def _width(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> int:
    longest = [max(len(row[index]) for row in rows) for index in columns]
    return sum(longest) + len(GAP) * (len(longest) - 1)


def _with_prose(rows: Sequence[Sequence[str]], start: int, limit: int) -> list[list[str]]:
    cells = [wrap(row[-1], limit - start) for row in rows]
    lines = aligned([[*row[:-1], cell[0]] for row, cell in zip(rows, cells, strict=True)])
    return [[line, *(" " * start + more for more in cell[1:])] for line, cell in zip(lines, cells, strict=True)]


def _below(named: Sequence[str], limit: int) -> list[str]:
    """The cells on as few lines as possible; a longer one has lines of its own."""
    out: list[str] = []
    for text in named:
        if out and len(out[-1]) + len(GAP) + len(text) <= limit:
            out[-1] += GAP + text
        elif len(INDENT) + len(text) <= limit:
            out.append(INDENT + text)
        else:
            first, *rest = wrap(_NEXT_NAME.sub(", ", text), limit - len(INDENT) - 2)
            out += [INDENT + first, *(f"{INDENT}  {line}" for line in rest)]
    return out


def owned_by(owner: Owner | None, nobody: str = EMPTY) -> str:
    """An owner as ``KIND/name``."""
    return f"{owner.kind}/{owner.name}" if owner is not None else nobody


def nameless(what: str, kind: str, notes: Iterable[Words]) -> str:
    """What stands in place of a name: that there is none, or that the kind which has it was not read."""
    return f"({what} not read)" if not_read(kind, notes) else f"(no {what})"


# What a long list of findings comes to, below it: how many of each sort, and in which files.


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
