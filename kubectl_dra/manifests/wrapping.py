"""Moves entries of a mapping into a nested mapping, or out of one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change, EditRefused, Unwrap, Wrap
from kubectl_dra.manifests.places import Entry, Places
from kubectl_dra.manifests.style import key_flow

# Replacement pieces of a text, and the shifts of the lines after them.


class Piece(NamedTuple):
    """``text[start:end]`` becomes ``text``. The change concerns something ``depth`` levels deep."""

    start: int
    end: int
    text: str
    depth: int = 0


class Shifts:
    """Shifts of lines: right where fields are wrapped, and left where they are unwrapped."""

    def __init__(self, places: Places, changes: Sequence[Change]) -> None:
        self._at = places
        self._shifts: list[tuple[FieldPath, frozenset[str] | None, int]] = []
        for change in changes:
            if isinstance(change, Wrap | Unwrap):
                self._note(change)

    def _note(self, change: Wrap | Unwrap) -> None:
        """Record how far lines below a path move, for other text written there."""
        pair = self._at.document.nodes(change.path)
        if pair is None or pair.value.id != "mapping" or pair.value.flow_style or not pair.value.value:
            return
        if isinstance(change, Wrap):
            self._shifts.append((change.path, frozenset(change.fields), self._at.style.step))
        elif pair.key is not None:
            step = self._at.column(pair.value.value[0][0].start_mark.index) - self._at.column(pair.key.start_mark.index)
            self._shifts.append((change.path, None, -step))

    def of(self, path: FieldPath) -> int:
        """Shift of text that is added inside the value at a path."""
        return sum(
            step
            for at, fields, step in self._shifts
            if path[: len(at)] == at and (fields is None or (len(path) > len(at) and path[len(at)] in fields))
        )


def runs(indices: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of consecutive numbers."""
    out: list[tuple[int, int]] = []
    for index in indices:
        if out and out[-1][1] + 1 == index:
            out[-1] = (out[-1][0], index)
        else:
            out.append((index, index))
    return out


_CLOSED: Final = re.compile(r"\s*,?\s*")


class Moves:
    """Wraps and unwraps fields in the text of one document."""

    def __init__(self, places: Places, shifts: Shifts) -> None:
        self._at = places
        self._shifts = shifts
        self._text = places.text

    def wrapped(self, path: FieldPath, key: str, fields: tuple[str, ...]) -> Iterator[Piece]:
        node = self._at.collection(path)
        if node.id != "mapping":
            raise EditRefused("only fields of a mapping can be moved")
        if self._at.document.nodes((*path, key)) is not None:
            raise EditRefused(f'the key "{key}" is there already')
        chosen = [index for index, pair in enumerate(node.value) if str(pair[0].value) in fields]
        if not chosen:
            raise EditRefused("there is no field to move")
        entries = self._at.entries(node)
        if node.flow_style:
            yield from self._wrapped_flow(entries, chosen, key)
        else:
            yield from self._wrapped_block(entries, chosen, key, self._shifts.of(path))

    def _wrapped_flow(self, entries: Sequence[Entry], chosen: Sequence[int], key: str) -> Iterator[Piece]:
        name = key_flow(key, self._at.style)
        (first, last), *others = runs(chosen)
        start, end = entries[first].start, entries[last].end
        moved = ""
        for begin, until in others:
            if self._at.comments_in(entries[begin - 1].end, entries[until].end):
                raise EditRefused("a comment is in the way")
            moved += f", {self._text[entries[begin].start : entries[until].end]}"
            yield Piece(entries[begin - 1].end, entries[until].end, "")
        if self._at.begins_line(start) and self._at.line_start(start):
            newline, column = self._at.style.newline, self._at.column(start)
            step = " " * self._at.style.step
            yield Piece(start, start, f"{name}: {{{newline}{' ' * column}{step}")
            yield from self._indented(self._at.next_line(start), end, step)
            yield Piece(end, end, f"{moved}{newline}{' ' * column}}}")
        else:
            yield Piece(start, start, f"{name}: {{")
            yield Piece(end, end, f"{moved}}}")

    def _wrapped_block(self, entries: Sequence[Entry], chosen: Sequence[int], key: str, shift: int) -> Iterator[Piece]:
        newline, step = self._at.style.newline, " " * self._at.style.step
        (first, last), *others = runs(chosen)
        inner = " " * (self._at.column(entries[first].start) + shift) + step
        yield Piece(entries[first].start, entries[first].start, f"{key_flow(key, self._at.style)}:{newline}{inner}")
        # Comments between fields that stay together move with them.
        yield from self._indented(self._at.next_line(entries[first].start), entries[last].end, step)
        moved: list[str] = []
        for number, other in others:
            begin = self._with_comments(entries[number - 1].end, entries[number].start)
            behind = self._at.next_line(entries[other].end)
            moved += [f"{step}{line}" if line.strip() else line for line in self._text[begin:behind].splitlines()]
            if self._text[behind - 1] != "\n":
                # The end of a text that has no final line break, and keeps none.
                begin = len(self._text[:begin].rstrip())
            yield Piece(begin, behind, "")
        if moved:
            at = self._at.line_end(entries[last].end)
            yield Piece(at, at, "".join(f"{newline}{line}" for line in moved))

    def _with_comments(self, earliest: int, start: int) -> int:
        """The start of a field's lines, including the comments right above it."""
        if not self._at.begins_line(start):
            raise EditRefused("a field does not begin its line")
        begin = self._at.line_start(start)
        while begin > self._at.next_line(earliest):
            above = self._at.line_start(begin - 1)
            if not self._text[above:begin].lstrip().startswith("#"):
                break
            begin = above
        return begin

    def _indented(self, start: int, end: int, step: str) -> Iterator[Piece]:
        """Indent the lines from ``start`` to ``end``."""
        at = start
        while at < end:
            if self._text[at : self._at.line_end(at)].strip():
                yield Piece(at, at, step)
            following = self._at.next_line(at)
            if following <= at:
                return
            at = following

    def _outdented(self, start: int, end: int, step: int) -> Iterator[Piece]:
        """Outdent the lines from ``start`` to ``end``."""
        at = start
        while at < end:
            if self._text[at : self._at.line_end(at)].strip():
                if self._text[at : at + step].strip(" "):
                    raise EditRefused("a line is not indented")
                yield Piece(at, at + step, "")
            at = self._at.next_line(at)

    def unwrapped(self, path: FieldPath) -> list[Piece]:
        pair = self._at.document.nodes(path)
        if pair is None or pair.key is None or pair.value.id != "mapping" or not pair.value.value:
            raise EditRefused("only the entries of a mapping can be moved")
        inner = self._at.own_value(path)
        entries = self._at.entries(inner)
        start, first = pair.key.start_mark.index, entries[0].start
        newline, indent = self._at.style.newline, " " * self._at.column(start)
        kept = "".join(f"{self._text[a:b]}{newline}{indent}" for a, b in self._at.comments_in(start, first))
        step = self._at.column(first) - self._at.column(start)
        if inner.flow_style:
            return self._unwrapped_flow(path, entries, kept)
        if step <= 0:
            raise EditRefused("its entries are not indented")
        return [Piece(start, first, kept), *self._outdented(self._at.next_line(first), entries[-1].end, step)]

    def _unwrapped_flow(self, path: FieldPath, entries: Sequence[Entry], kept: str) -> list[Piece]:
        pair = self._at.document.nodes(path)
        assert pair is not None and pair.key is not None
        start, end = pair.key.start_mark.index, pair.value.end_mark.index
        first, last = entries[0], entries[-1]
        between = [(entry.end, other.start) for entry, other in pairwise(entries)]
        closed = _CLOSED.fullmatch(self._text, last.end, end - 1)
        if kept or closed is None or not all(_CLOSED.fullmatch(self._text, *span) for span in between):
            raise EditRefused("a comment is in the way")
        if self._at.collection(path[:-1]).flow_style:
            out = [Piece(start, first.start, ""), Piece(last.end, end, "")]
            if self._at.begins_line(start) and self._at.begins_line(first.start):
                step = self._at.column(first.start) - self._at.column(start)
                if step > 0:
                    out += self._outdented(self._at.next_line(first.start), last.end, step)
            return out
        newline = f"{self._at.style.newline}{' ' * (self._at.column(start) + self._shifts.of(path[:-1]))}"
        return [
            Piece(start, first.start, ""),
            *(Piece(behind, following, newline) for behind, following in between),
            Piece(last.end, end, ""),
        ]


# Replaces lines of a literal block (``key: |``) whose other lines stay.


def replaced_lines(text: str, node: Any, old: str, new: str, newline: str) -> Iterator[Piece]:
    """The pieces by which the block ``node`` of ``text``, which reads as ``old``, reads as ``new``.

    Raises:
        EditRefused: where the lines of the block stand is uncertain, or none is left.
    """
    before, after = old.removesuffix("\n").split("\n"), new.removesuffix("\n").split("\n")
    if old.endswith("\n") != new.endswith("\n") or not any(after):
        raise EditRefused("a block of text is not replaced as a whole")
    lines, indent = _lines(text, node, before)
    for what, first, last, begin, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        written = [f"{indent}{line}" if line else "" for line in after[begin:stop]]
        if last < len(lines):
            start = lines[first].start
            yield Piece(start, lines[last].start, "".join(f"{line}{newline}" for line in written))
        elif first:
            yield Piece(lines[first - 1].end, lines[-1].end, "".join(f"{newline}{line}" for line in written))
        else:
            yield Piece(lines[0].start, lines[-1].end, newline.join(written))


def _lines(text: str, node: Any, expected: list[str]) -> tuple[list[Entry], str]:
    """The lines of the block, without their ends, and their indentation."""
    lines: list[Entry] = []
    at = text.find("\n", node.start_mark.index) + 1
    while at and len(lines) < len(expected):
        behind = text.find("\n", at)
        stop = len(text) if behind < 0 else behind
        lines.append(Entry(at, stop - 1 if text[at:stop].endswith("\r") else stop))
        at = behind + 1
    number, first = next(((number, line) for number, line in enumerate(expected) if line), (0, ""))
    width = lines[number].end - lines[number].start - len(first) if number < len(lines) else 0
    indent = " " * max(0, width)
    for line, read in zip(lines, expected, strict=False):
        written = text[line.start : line.end]
        if written != (indent + read if read else written[: len(indent)]) or (not read and written.strip(" ")):
            raise EditRefused("the place in the text is uncertain")
    if len(lines) != len(expected):
        raise EditRefused("the place in the text is uncertain")
    return lines, indent
