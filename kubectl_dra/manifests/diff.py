"""Unified diffs. ``difflib`` is slow on long files, or shows more than what changed.

Lines that occur once before and once after are matched with each other (patience diff); ``difflib`` compares
only what lies between them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_CONTEXT: Final = 3
_MANY: Final = 500


class Hunk(NamedTuple):
    """``before[start:end]`` becomes ``after[new_start:new_end]``."""

    start: int
    end: int
    new_start: int
    new_end: int


def unified(name: str, before: str, after: str) -> str:
    """The change of a text as a unified diff; empty if there is none."""
    old, new = _LINE.findall(before), _LINE.findall(after)
    out: list[str] = []
    for group in _grouped(hunks(old, new)):
        first, last = group[0], group[-1]
        start, end = max(0, first.start - _CONTEXT), min(len(old), last.end + _CONTEXT)
        new_start = first.new_start - (first.start - start)
        new_end = last.new_end + (end - last.end)
        out.append(f"@@ -{_span(start, end)} +{_span(new_start, new_end)} @@\n")
        at = start
        for hunk in group:
            out += [f" {line}" for line in old[at : hunk.start]]
            out += [f"-{line}" for line in old[hunk.start : hunk.end]]
            out += [f"+{line}" for line in new[hunk.new_start : hunk.new_end]]
            at = hunk.end
        out += [f" {line}" for line in old[at:end]]
    if out:
        out = [f"--- a/{name}\n", f"+++ b/{name}\n", *out]
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in out)


def hunks(before: Sequence[str], after: Sequence[str]) -> list[Hunk]:
    """The changes, in order; lines between hunks are equal."""
    out: list[Hunk] = []
    at = new_at = 0
    for start, new_start, size in (*_equal(before, after, 0, 0), (len(before), len(after), 0)):
        if start > at or new_start > new_at:
            out.append(Hunk(at, start, new_at, new_start))
        at, new_at = start + size, new_start + size
    return out


def _equal(before: Sequence[str], after: Sequence[str], at: int, new_at: int) -> Iterator[tuple[int, int, int]]:
    """Blocks of equal lines: their start before and after (from ``at`` and ``new_at``), and their length."""
    least = min(len(before), len(after))
    head = next((index for index in range(least) if before[index] != after[index]), least)
    tail = next((count for count in range(least - head) if before[-1 - count] != after[-1 - count]), least - head)
    if head:
        yield at, new_at, head
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    yield from _between(old, new, at + head, new_at + head)
    if tail:
        yield at + len(before) - tail, new_at + len(after) - tail, tail


def _between(old: Sequence[str], new: Sequence[str], at: int, new_at: int) -> Iterator[tuple[int, int, int]]:
    if not old or not new:
        return
    anchors = _anchors(old, new)
    if not anchors:
        from difflib import SequenceMatcher

        matcher = SequenceMatcher(None, old, new, autojunk=len(old) > _MANY)
        yield from ((at + block.a, new_at + block.b, block.size) for block in matcher.get_matching_blocks()[:-1])
        return
    start = new_start = 0
    for index, new_index in (*anchors, (len(old), len(new))):
        yield from _equal(old[start:index], new[new_start:new_index], at + start, new_at + new_start)
        if index < len(old):
            yield at + index, new_at + new_index, 1
        start, new_start = index + 1, new_index + 1


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Lines that occur once on each side: the longest sequence that is in the same order."""
    counts, new_counts = Counter(old), Counter(new)
    places = {line: index for index, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(index, places[line]) for index, line in enumerate(old) if counts[line] == 1 and line in places]
    # The longest run that rises on both sides: the smallest last line of runs of each length, and who came before.
    ends: list[int] = []
    runs: list[int] = []
    earlier: list[int] = []
    for number, (_, new_index) in enumerate(pairs):
        length = bisect_left(ends, new_index)
        earlier.append(runs[length - 1] if length else -1)
        ends[length : length + 1] = [new_index]
        runs[length : length + 1] = [number]
    out: list[tuple[int, int]] = []
    number = runs[-1] if runs else -1
    while number >= 0:
        out.append(pairs[number])
        number = earlier[number]
    return out[::-1]


def _grouped(changes: Sequence[Hunk]) -> Iterator[list[Hunk]]:
    """Hunks that are close enough together to be shown as one."""
    group: list[Hunk] = []
    for hunk in changes:
        if group and hunk.start - group[-1].end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def _span(start: int, end: int) -> str:
    """First line and number of lines, in ``diff`` notation."""
    if end - start == 1:
        return str(start + 1)
    return f"{start + (end > start)},{end - start}"
