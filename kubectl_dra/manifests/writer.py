"""Single changes of a document as pieces of its new text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from kubectl_dra.manifests.changes import (
    Append,
    Change,
    Delete,
    Enclose,
    Path,
    Refused,
    Rename,
    Set,
    Splice,
    Unwrap,
    Wrap,
    value_at,
)
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.places import ELSEWHERE, Entry, Places
from kubectl_dra.manifests.scalars import source_offsets
from kubectl_dra.manifests.style import Style, block, block_item, flow, key_flow, quoted
from kubectl_dra.manifests.values import scalar

_KEYED: Final = re.compile(r":([ \t]|\Z)|[ \t]#|[ \t]\Z|[\r\n]")
_CLOSED: Final = re.compile(r"\s*,?\s*")


class Piece(NamedTuple):
    """``text[start:end]`` becomes ``text``, for a change of something ``depth`` levels deep."""

    start: int
    end: int
    text: str
    depth: int = 0


class Writer:
    """Writes changes into the text of one document. ``changes`` of ``pieces`` are of one moment: no paths shift."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._text = document.source.text
        self._at = Places(document)
        self._shifts: list[tuple[Path, frozenset[str] | None, int]] = []

    def pieces(self, changes: Sequence[Change]) -> list[Piece]:
        """The new pieces of text of all changes.

        Raises:
            Refused: a change that cannot be made in this text.
        """
        out: list[Piece] = []
        for change in changes:
            if isinstance(change, Wrap | Unwrap):
                self._note_shift(change)
        inside: dict[Path, list[Set | Append | Delete]] = {}
        for change in changes:
            if isinstance(change, Append):
                inside.setdefault(change.path, []).append(change)
            elif isinstance(change, Delete) or (isinstance(change, Set) and self._document.nodes(change.path) is None):
                inside.setdefault(change.path[:-1], []).append(change)
            else:
                out += [piece._replace(depth=len(change.path)) for piece in self._one(change)]
        for path, those in inside.items():
            out += [piece._replace(depth=len(path)) for piece in self._entries_changed(path, those)]
        return out

    def _one(self, change: Change) -> list[Piece]:
        if isinstance(change, Set):
            return self._set(change.path, change.value)
        if isinstance(change, Rename):
            return [self._renamed(change.path, change.key)]
        if isinstance(change, Wrap):
            return list(self._wrapped(change.path, change.key, change.fields))
        if isinstance(change, Unwrap):
            return self._unwrapped(change.path)
        if isinstance(change, Enclose):
            return self._enclosed(change.path, change.key)
        assert isinstance(change, Splice)
        return self._spliced(change)

    def _note_shift(self, change: Wrap | Unwrap) -> None:
        """How far lines below a path move, for what else is written there."""
        pair = self._document.nodes(change.path)
        if pair is None or pair.value.id != "mapping" or pair.value.flow_style or not pair.value.value:
            return
        if isinstance(change, Wrap):
            self._shifts.append((change.path, frozenset(change.fields), self._at.style.step))
        elif pair.key is not None:
            step = self._at.column(pair.value.value[0][0].start_mark.index) - self._at.column(pair.key.start_mark.index)
            self._shifts.append((change.path, None, -step))

    def _shift(self, path: Path) -> int:
        """How far what is added inside the value at a path moves with it."""
        return sum(
            step
            for at, fields, step in self._shifts
            if path[: len(at)] == at and (fields is None or (len(path) > len(at) and path[len(at)] in fields))
        )

    # --- values ----------------------------------------------------------------------------------

    def _set(self, path: Path, value: Any) -> list[Piece]:
        pair = self._document.nodes(path)
        assert pair is not None
        node = self._at.own_value(path)
        parent = self._at.collection(path[:-1])
        if node.id == "scalar" and node.style in ("|", ">"):
            raise Refused("a block of text is not replaced as a whole")
        if not parent.flow_style and pair.key is not None:
            if isinstance(value, dict | list) and value and (node.id == "scalar" or not node.value):
                return self._below(path, value)
            if node.id != "scalar" and not node.flow_style:
                return self._block_replaced(path, value)
        if node.id != "scalar" and not node.flow_style:
            raise Refused("a list item is not replaced as a whole")
        start, end = node.start_mark.index, node.end_mark.index
        if self._at.comments_in(start, end):
            raise Refused("a comment is in the way")
        text = flow(value, self._at.style, node.style if node.id == "scalar" else None)
        # An empty value begins right behind the colon of its key.
        blank = " " if start == end and start and self._text[start - 1] == ":" else ""
        return [Piece(start, end, blank + text)]

    def _below(self, path: Path, value: Any) -> list[Piece]:
        """A mapping or list on lines of its own in the place of a scalar or of ``{}``."""
        pair = self._document.nodes(path)
        assert pair is not None and pair.key is not None
        colon, end = self._at.behind_colon(pair.key), self._at.end(pair.value)
        end = max(colon, end)
        column = self._at.column(pair.key.start_mark.index) + self._shift(path)
        lines = list(block("", value, column, self._at.style))[1:]
        behind = self._at.line_end(end)
        added = "".join(f"{self._at.style.newline}{line}" for line in lines)
        return [Piece(colon, end, "") if colon < end else Piece(behind, behind, ""), Piece(behind, behind, added)]

    def _block_replaced(self, path: Path, value: Any) -> list[Piece]:
        pair = self._document.nodes(path)
        assert pair is not None and pair.key is not None
        start, end = pair.key.start_mark.index, self._at.end(pair.value)
        if self._at.comments_in(start, end):
            raise Refused("a comment is in the way")
        key = self._text[start : pair.key.end_mark.index]
        lines = list(block(key, value, self._at.column(start) + self._shift(path), self._at.style))
        return [Piece(start, end, self._at.style.newline.join(lines).lstrip(" "))]

    def _renamed(self, path: Path, key: str) -> Piece:
        pair = self._document.nodes(path)
        if pair is None or pair.key is None:
            raise Refused("there is no key to rename")
        node = pair.key
        if self._text[node.start_mark.index] in "&*":
            raise Refused(ELSEWHERE)
        text = quoted(key, node.style) if node.style else flow(key, self._at.style._replace(quoted=False))
        return Piece(node.start_mark.index, node.end_mark.index, text)

    def _enclosed(self, path: Path, key: str) -> list[Piece]:
        pair = self._document.nodes(path)
        if pair is None or pair.key is None:
            raise Refused("there is no key to write below")
        parent = self._at.collection(path[:-1])
        entry = self._at.entries(parent)[self._at.index(parent, path[-1])]
        colon = self._at.behind_colon(pair.key)
        found = re.compile(r"[ \t]*").match(self._text, colon)
        start = colon if found is None else found.end()
        name = key_flow(key, self._at.style)
        if parent.flow_style:
            blank = "" if start > colon else " "
            return [Piece(start, start, f"{blank}{{{name}: "), Piece(entry.end, entry.end, "}")]
        if start >= entry.end or self._text[start] in "#\r\n":
            raise Refused("its value is not on the line of its key")
        indent = self._at.column(pair.key.start_mark.index) + self._at.style.step + self._shift(path)
        return [Piece(colon, start, f"{self._at.style.newline}{' ' * indent}{name}: ")]

    def _spliced(self, change: Splice) -> list[Piece]:
        value = value_at(self._document.object, change.path)
        if self._document.nodes(change.path) is None or not isinstance(value, str):
            raise Refused("there is no text to change")
        node = self._at.own_value(change.path)
        style = node.style or ""
        whole = value[: change.start] + change.text + value[change.end :]
        if "\n" in change.text or (not style and (_KEYED.search(whole) or scalar(whole) != whole)):
            return self._set(change.path, whole)
        offsets = source_offsets(self._text, node, value)
        if not offsets or change.start > len(offsets):
            raise Refused("the place in the text is not certain")
        if change.start == len(offsets):
            start = end = offsets[-1][1]
        else:
            start = offsets[change.start][0]
            end = offsets[change.end - 1][1] if change.end > change.start else start
        text = change.text
        if style == '"':
            text = json.dumps(text, ensure_ascii=False)[1:-1]
        elif style == "'":
            text = text.replace("'", "''")
        return [Piece(start, end, text)]

    # --- entries that go and come ----------------------------------------------------------------

    def _entries_changed(self, path: Path, changes: Sequence[Set | Append | Delete]) -> list[Piece]:
        """Deleted entries of one mapping or list, and new ones at its end."""
        node = self._at.collection(path)
        entries = self._at.entries(node)
        gone = sorted({self._at.index(node, change.path[-1]) for change in changes if isinstance(change, Delete)})
        new = [change for change in changes if not isinstance(change, Delete)]
        if any(isinstance(change, Append) != (node.id == "sequence") for change in new):
            raise Refused("there is no mapping or list to add it to")
        if len(gone) == len(entries) and not new:
            raise Refused("nothing would be left beside it")
        if node.flow_style:
            return self._empty_filled(path, new) if not entries else self._flow_changed(entries, gone, new)
        lines = list(self._new_lines(path, entries, new, self._style_at(path)))
        return list(self._block_changed(entries, gone, lines))

    def _style_at(self, path: Path) -> Style:
        """The style of what is new at a path: dashes as of the lists beside it, else of the list around it."""
        style = self._at.style
        for length in range(len(path), -1, -1):
            pair = self._document.nodes(path[:length])
            if pair is None or pair.value.id != "mapping" or pair.value.flow_style:
                continue
            for key, value in reversed(pair.value.value):
                indent = value.start_mark.column - key.start_mark.column
                below = value.start_mark.line > key.start_mark.line
                if value.id == "sequence" and not value.flow_style and below and indent >= 0:
                    return style._replace(dash=indent)
        return style

    def _new_lines(
        self, path: Path, entries: Sequence[Entry], new: Sequence[Set | Append], style: Style
    ) -> Iterator[str]:
        indent = self._at.column(entries[0].start) + self._shift((*path, ""))
        for change in new:
            if isinstance(change, Append):
                yield from block_item(change.value, indent, style)
            else:
                yield from block(key_flow(str(change.path[-1]), style), change.value, indent, style)

    def _empty_filled(self, path: Path, new: Sequence[Set | Append]) -> list[Piece]:
        """``{}`` or ``[]`` that is no longer empty."""
        value: Any = (
            [change.value for change in new]
            if isinstance(new[0], Append)
            else {str(change.path[-1]): change.value for change in new}
        )
        if not path:
            raise Refused("the document is empty")
        return self._set(path, value)

    def _flow_changed(self, entries: Sequence[Entry], gone: Sequence[int], new: Sequence[Set | Append]) -> list[Piece]:
        style = self._at.style
        added = ", ".join(
            flow(change.value, style)
            if isinstance(change, Append)
            else f"{key_flow(str(change.path[-1]), style)}: {flow(change.value, style)}"
            for change in new
        )
        out: list[Piece] = []
        for first, last in _runs(gone):
            start, end = entries[first].start, entries[last].end
            if last + 1 < len(entries):
                end = entries[last + 1].start
            elif first:
                start = entries[first - 1].end
            if self._at.comments_in(start, end):
                raise Refused("a comment is in the way")
            out.append(Piece(start, end, ""))
        if new and len(gone) == len(entries):
            return [Piece(entries[0].start, entries[-1].end, added)]
        if new:
            kept = max(index for index in range(len(entries)) if index not in gone)
            end = entries[kept].end
            if kept + 1 == len(entries) or not gone:
                out.append(Piece(end, end, self._flow_separator(entries) + added))
            else:
                out[-1] = Piece(end, entries[-1].end, self._flow_separator(entries) + added)
        return out

    def _flow_separator(self, entries: Sequence[Entry]) -> str:
        """What stands between entries: a new one begins its line where the last one does."""
        last = entries[-1].start
        if self._at.begins_line(last) and self._at.line_start(last):
            return f",{self._at.style.newline}{' ' * self._at.column(last)}"
        return ", "

    def _block_changed(self, entries: Sequence[Entry], gone: Sequence[int], lines: Sequence[str]) -> Iterator[Piece]:
        newline = self._at.style.newline
        waiting = list(lines)
        for first, last in _runs(gone):
            start, end = entries[first].start, entries[last].end
            final = last + 1 == len(entries)
            here, indent = (waiting if final else []), " " * self._at.column(start)
            if not self._at.begins_line(start):
                yield self._behind_dash(entries, first, last, here)
            else:
                begin, behind = self._at.line_start(start), self._at.next_line(end)
                kept = [f"{indent}{self._text[a:b]}" for a, b in self._at.comments_in(begin, behind)]
                all_lines = [*kept, *here]
                if self._text[behind - 1 : behind] == "\n":
                    yield Piece(begin, behind, "".join(f"{line}{newline}" for line in all_lines))
                else:
                    # The end of a text that has no final line break.
                    before = self._at.line_end(begin - 1) if begin and all_lines else len(self._text[:begin].rstrip())
                    yield Piece(before, behind, "".join(f"{newline}{line}" for line in all_lines))
            if final:
                waiting = []
        if waiting:
            behind = self._at.line_end(entries[-1].end)
            yield Piece(behind, behind, "".join(f"{newline}{line}" for line in waiting))

    def _behind_dash(self, entries: Sequence[Entry], first: int, last: int, lines: Sequence[str]) -> Piece:
        """Entries that go, the first of them behind a dash: what follows takes its place."""
        start, indent = entries[first].start, " " * self._at.column(entries[first].start)
        newline = self._at.style.newline
        if last + 1 < len(entries):
            end = entries[last + 1].start
            kept = [self._text[a:b] for a, b in self._at.comments_in(start, end)]
            return Piece(start, end, "".join(f"{comment}{newline}{indent}" for comment in kept))
        end = self._at.line_end(entries[last].end)
        kept = [self._text[a:b] for a, b in self._at.comments_in(start, end)]
        if not lines:
            raise Refused("nothing would be left behind a dash")
        return Piece(start, end, f"{newline}{indent}".join([*kept, *(line[len(indent) :] for line in lines)]))

    # --- entries that move -----------------------------------------------------------------------

    def _wrapped(self, path: Path, key: str, fields: tuple[str, ...]) -> Iterator[Piece]:
        node = self._at.collection(path)
        if node.id != "mapping":
            raise Refused("only fields of a mapping can be moved")
        if self._document.nodes((*path, key)) is not None:
            raise Refused(f'the key "{key}" is there already')
        chosen = [index for index, pair in enumerate(node.value) if str(pair[0].value) in fields]
        if not chosen:
            raise Refused("there is no field to move")
        entries = self._at.entries(node)
        if node.flow_style:
            yield from self._wrapped_flow(entries, chosen, key)
        else:
            yield from self._wrapped_block(entries, chosen, key, self._shift(path))

    def _wrapped_flow(self, entries: Sequence[Entry], chosen: Sequence[int], key: str) -> Iterator[Piece]:
        name = key_flow(key, self._at.style)
        (first, last), *others = _runs(chosen)
        start, end = entries[first].start, entries[last].end
        moved = ""
        for begin, until in others:
            if self._at.comments_in(entries[begin - 1].end, entries[until].end):
                raise Refused("a comment is in the way")
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
        (first, last), *others = _runs(chosen)
        inner = " " * (self._at.column(entries[first].start) + shift) + step
        yield Piece(entries[first].start, entries[first].start, f"{key_flow(key, self._at.style)}:{newline}{inner}")
        # Comments between fields that stay together move with them.
        yield from self._indented(self._at.next_line(entries[first].start), entries[last].end, step)
        moved: list[str] = []
        for one, other in others:
            begin = self._with_comments(entries[one - 1].end, entries[one].start)
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
        """The beginning of a field's lines, with the comments right above it."""
        if not self._at.begins_line(start):
            raise Refused("a field does not begin its line")
        begin = self._at.line_start(start)
        while begin > self._at.next_line(earliest):
            above = self._at.line_start(begin - 1)
            if not self._text[above:begin].lstrip().startswith("#"):
                break
            begin = above
        return begin

    def _indented(self, start: int, end: int, step: str) -> Iterator[Piece]:
        """Moves the lines from ``start`` to ``end`` to the right."""
        at = start
        while at < end:
            if self._text[at : self._at.line_end(at)].strip():
                yield Piece(at, at, step)
            following = self._at.next_line(at)
            if following <= at:
                return
            at = following

    def _outdented(self, start: int, end: int, step: int) -> Iterator[Piece]:
        """Moves the lines from ``start`` to ``end`` to the left."""
        at = start
        while at < end:
            if self._text[at : self._at.line_end(at)].strip():
                if self._text[at : at + step].strip(" "):
                    raise Refused("a line is not indented")
                yield Piece(at, at + step, "")
            at = self._at.next_line(at)

    def _unwrapped(self, path: Path) -> list[Piece]:
        pair = self._document.nodes(path)
        if pair is None or pair.key is None or pair.value.id != "mapping" or not pair.value.value:
            raise Refused("only the entries of a mapping can be moved")
        inner = self._at.own_value(path)
        entries = self._at.entries(inner)
        start, first = pair.key.start_mark.index, entries[0].start
        newline, indent = self._at.style.newline, " " * self._at.column(start)
        kept = "".join(f"{self._text[a:b]}{newline}{indent}" for a, b in self._at.comments_in(start, first))
        step = self._at.column(first) - self._at.column(start)
        if inner.flow_style:
            return self._unwrapped_flow(path, entries, kept)
        if step <= 0:
            raise Refused("its entries are not indented")
        return [Piece(start, first, kept), *self._outdented(self._at.next_line(first), entries[-1].end, step)]

    def _unwrapped_flow(self, path: Path, entries: Sequence[Entry], kept: str) -> list[Piece]:
        pair = self._document.nodes(path)
        assert pair is not None and pair.key is not None
        start, end = pair.key.start_mark.index, pair.value.end_mark.index
        first, last = entries[0], entries[-1]
        between = [(one.end, other.start) for one, other in pairwise(entries)]
        closed = _CLOSED.fullmatch(self._text, last.end, end - 1)
        if kept or closed is None or not all(_CLOSED.fullmatch(self._text, *span) for span in between):
            raise Refused("a comment is in the way")
        if self._at.collection(path[:-1]).flow_style:
            out = [Piece(start, first.start, ""), Piece(last.end, end, "")]
            if self._at.begins_line(start) and self._at.begins_line(first.start):
                step = self._at.column(first.start) - self._at.column(start)
                if step > 0:
                    out += self._outdented(self._at.next_line(first.start), last.end, step)
            return out
        newline = f"{self._at.style.newline}{' ' * (self._at.column(start) + self._shift(path[:-1]))}"
        return [
            Piece(start, first.start, ""),
            *(Piece(behind, following, newline) for behind, following in between),
            Piece(last.end, end, ""),
        ]


def _runs(indices: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of consecutive numbers."""
    out: list[tuple[int, int]] = []
    for index in indices:
        if out and out[-1][1] + 1 == index:
            out[-1] = (out[-1][0], index)
        else:
            out.append((index, index))
    return out
