"""Turns single changes of a document into pieces of its new text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import (
    Append,
    Change,
    Clear,
    Delete,
    EditRefused,
    Enclose,
    Rename,
    Set,
    Splice,
    Unwrap,
    Wrap,
    value_at,
)
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.places import ELSEWHERE, Entry, Offsets, Places, source_offsets
from kubectl_dra.manifests.shared_parts import MERGE
from kubectl_dra.manifests.style import Style, block, block_item, flow, json_text, key_flow, quoted, spread_out
from kubectl_dra.manifests.values import scalar
from kubectl_dra.manifests.wrapping import Moves, Piece, Shifts, replaced_lines, runs

# Removes entries from mappings and lists, and adds new ones after the last.


class Entries:
    """Deletes and adds entries in the text of one document."""

    def __init__(self, places: Places, shifts: Shifts) -> None:
        self._at = places
        self._shifts = shifts
        self._text = places.text

    def changed(self, path: FieldPath, changes: Sequence[Set | Append | Delete]) -> list[Piece]:
        """The pieces that delete entries of one mapping or list and add new ones at its end."""
        node = self._at.collection(path)
        entries = self._at.entries(node)
        said = {
            self._at.index(node, change.path[-1]): change.comments for change in changes if isinstance(change, Delete)
        }
        gone = sorted(said)
        new = [change for change in changes if not isinstance(change, Delete)]
        if any(isinstance(change, Append) != (node.id == "sequence") for change in new):
            raise EditRefused("there is no mapping or list to add it to")
        if len(gone) == len(entries) and not new:
            raise EditRefused("nothing would be left beside it")
        if node.flow_style and any(said.values()):
            raise EditRefused("a comment is in the way")
        if node.flow_style:
            return self._flow_changed(entries, gone, new)
        lines = list(self._new_lines(path, entries, new, self._style_at(path)))
        return list(self._block_changed(entries, said, lines))

    def _style_at(self, path: FieldPath) -> Style:
        """The style for new text at a path: dashes like neighbouring lists, else like the enclosing list."""
        style = self._at.style
        for length in range(len(path), -1, -1):
            pair = self._at.document.nodes(path[:length])
            if pair is None or pair.value.id != "mapping" or pair.value.flow_style:
                continue
            for key, value in reversed(pair.value.value):
                indent = value.start_mark.column - key.start_mark.column
                below = value.start_mark.line > key.start_mark.line
                if value.id == "sequence" and not value.flow_style and below and indent >= 0:
                    return style._replace(dash=indent)
        return style

    def _new_lines(
        self, path: FieldPath, entries: Sequence[Entry], new: Sequence[Set | Append], style: Style
    ) -> Iterator[str]:
        indent = self._at.column(entries[0].start) + self._shifts.of((*path, ""))
        for change in new:
            if isinstance(change, Append):
                yield from block_item(change.value, indent, style)
            else:
                yield from block(key_flow(str(change.path[-1]), style), change.value, indent, style)

    def _flow_changed(self, entries: Sequence[Entry], gone: Sequence[int], new: Sequence[Set | Append]) -> list[Piece]:
        separator = self._flow_separator(entries)
        added = separator.join(self._flow_entry(change, separator) for change in new)
        out: list[Piece] = []
        for first, last in runs(gone):
            start, end = entries[first].start, entries[last].end
            if last + 1 < len(entries):
                end = entries[last + 1].start
            elif first:
                start = entries[first - 1].end
            if self._at.comments_in(start, end):
                raise EditRefused("a comment is in the way")
            out.append(Piece(start, end, ""))
        if new and len(gone) == len(entries):
            return [Piece(entries[0].start, entries[-1].end, added)]
        if new:
            kept = max(index for index in range(len(entries)) if index not in gone)
            end = entries[kept].end
            if kept + 1 == len(entries) or not gone:
                out.append(Piece(end, end, separator + added))
            else:
                out[-1] = Piece(end, entries[-1].end, separator + added)
        return out

    def _flow_entry(self, change: Set | Append, separator: str) -> str:
        """A new entry; in JSON on several lines if its neighbours have lines of their own."""
        style, lead = self._at.style, separator.rpartition("\n")[2]
        spread = style.json and separator != ", "
        value = spread_out(change.value, lead, style) if spread else flow(change.value, style)
        return value if isinstance(change, Append) else f"{key_flow(str(change.path[-1]), style)}: {value}"

    def _flow_separator(self, entries: Sequence[Entry]) -> str:
        """The text between entries: a new one begins its own line if the last one does."""
        last = entries[-1].start
        start = self._at.line_start(last)
        lead = self._text[start:last]
        # Tabs are blanks in JSON, and in YAML not everywhere.
        if start and not lead.strip(" \t" if self._at.style.json else " "):
            return f",{self._at.style.newline}{lead}"
        return ", "

    def _block_changed(
        self, entries: Sequence[Entry], said: Mapping[int, Sequence[str]], lines: Sequence[str]
    ) -> Iterator[Piece]:
        """``said`` are comments that take the place of entries, by the numbers of those that go."""
        newline = self._at.style.newline
        waiting = list(lines)
        # Comments right below the last entry are about it, or are entries that someone switched off. Those that are
        # not indented at all may be about the whole file.
        behind_all = self._at.behind_comments(entries[-1].end, max(1, self._at.column(entries[0].start)))
        for first, last in runs(sorted(said)):
            start, end = entries[first].start, entries[last].end
            final = last + 1 == len(entries) and (
                behind_all == self._at.line_end(end) or not self._at.begins_line(start)
            )
            here, indent = (waiting if final else []), " " * self._at.column(start)
            if not self._at.begins_line(start):
                yield self._behind_dash(entries, first, last, here)
            else:
                begin, behind = self._at.line_start(start), self._at.next_line(end)
                kept = [f"{indent}{self._text[a:b]}" for a, b in self._at.comments_in(begin, behind)]
                kept += [f"{indent}{comment}" for number in range(first, last + 1) for comment in said[number]]
                all_lines = [*kept, *here]
                if self._text[behind - 1 : behind] == "\n":
                    yield Piece(begin, behind, "".join(f"{line}{newline}" for line in all_lines))
                else:
                    # The end of a text that has no final line break.
                    before = (
                        self._at.line_end_before(begin) if begin and all_lines else len(self._text[:begin].rstrip())
                    )
                    yield Piece(before, behind, "".join(f"{newline}{line}" for line in all_lines))
            if final:
                waiting = []
        if waiting:
            yield Piece(behind_all, behind_all, "".join(f"{newline}{line}" for line in waiting))

    def _behind_dash(self, entries: Sequence[Entry], first: int, last: int, lines: Sequence[str]) -> Piece:
        """Delete entries, the first of which follows a dash: what comes next takes its place."""
        start, indent = entries[first].start, " " * self._at.column(entries[first].start)
        newline = self._at.style.newline
        if last + 1 < len(entries):
            end = entries[last + 1].start
            kept = [self._text[a:b] for a, b in self._at.comments_in(start, end)]
            return Piece(start, end, "".join(f"{comment}{newline}{indent}" for comment in kept))
        end = self._at.line_end(entries[last].end)
        kept = [self._text[a:b] for a, b in self._at.comments_in(start, end)]
        if not lines:
            raise EditRefused("nothing would be left behind a dash")
        return Piece(start, end, f"{newline}{indent}".join([*kept, *(line[len(indent) :] for line in lines)]))


_KEYED: Final = re.compile(r":([ \t]|\Z)|[ \t]#|[ \t]\Z|[\r\n]")


def pieces(document: Document, changes: Sequence[Change]) -> list[Piece]:
    """The new pieces of text for all changes, whose paths refer to the object before any of them.

    Raises:
        EditRefused: a change that cannot be made in this text.
    """
    return _Writer(document, changes).pieces(changes)


class _Writer:
    """Applies changes to the text of one document."""

    def __init__(self, document: Document, changes: Sequence[Change]) -> None:
        self._document = document
        self._text = document.source.text
        self._at = Places(document)
        self._shifts = Shifts(self._at, changes)
        self._entries = Entries(self._at, self._shifts)
        self._moves = Moves(self._at, self._shifts)

    def pieces(self, changes: Sequence[Change]) -> list[Piece]:
        out: list[Piece] = []
        inside: dict[FieldPath, list[Set | Append | Delete]] = {}
        for change in changes:
            if isinstance(change, Append):
                inside.setdefault(change.path, []).append(change)
            elif isinstance(change, Delete) or (isinstance(change, Set) and self._is_new(change.path)):
                inside.setdefault(change.path[:-1], []).append(change)
            else:
                out += [piece._replace(depth=len(change.path)) for piece in self._one(change)]
        for path, those in inside.items():
            out += [piece._replace(depth=len(path)) for piece in self._inside(path, those)]
        return out

    def _is_new(self, path: FieldPath) -> bool:
        """Whether nothing is at a path, or what a merge key brings."""
        if self._document.nodes(path) is None:
            return True
        crossed = self._document.finder.crossing(path) if MERGE in self._text else None
        return crossed is not None and crossed.merged and crossed.path == path

    def _inside(self, path: FieldPath, changes: Sequence[Set | Append | Delete]) -> list[Piece]:
        """Deletes and adds entries of one mapping or list."""
        node = self._at.collection(path)
        new = [change for change in changes if not isinstance(change, Delete)]
        if node.flow_style and not node.value and len(new) == len(changes):
            return self._empty_filled(path, new)
        return self._entries.changed(path, changes)

    def _empty_filled(self, path: FieldPath, new: Sequence[Set | Append]) -> list[Piece]:
        """Fills ``{}`` or ``[]``."""
        value: Any = (
            [change.value for change in new]
            if isinstance(new[0], Append)
            else {str(change.path[-1]): change.value for change in new}
        )
        if not path:
            raise EditRefused("the document is empty")
        return self._set(path, value)

    def _one(self, change: Change) -> list[Piece]:
        if isinstance(change, Set):
            return self._set(change.path, change.value)
        if isinstance(change, Rename):
            return [self._renamed(change.path, change.key)]
        if isinstance(change, Wrap):
            return list(self._moves.wrapped(change.path, change.key, change.fields))
        if isinstance(change, Unwrap):
            return self._moves.unwrapped(change.path)
        if isinstance(change, Enclose):
            return self._enclosed(change.path, change.key)
        if isinstance(change, Clear):
            return self._cleared(change)
        assert isinstance(change, Splice)
        return self._spliced(change)

    # --- values ----------------------------------------------------------------------------------

    def _set(self, path: FieldPath, value: Any) -> list[Piece]:
        pair = self._document.nodes(path)
        assert pair is not None
        parent = self._at.collection(path[:-1])
        if pair.key is not None and pair.value.start_mark.index < pair.key.start_mark.index:
            return [self._alias_replaced(path, pair.key, parent, value)]
        node = self._at.own_value(path)
        if node.id == "scalar" and node.style in ("|", ">"):
            old = value_at(self._document.object, path)
            if node.style == ">" or not isinstance(value, str) or not isinstance(old, str) or self._shifts.of(path):
                raise EditRefused("a block of text is not replaced as a whole")
            return list(replaced_lines(self._text, node, old, value, self._at.style.newline))
        if not parent.flow_style and pair.key is not None:
            if isinstance(value, dict | list) and value and (node.id == "scalar" or not node.value):
                return self._below(path, value)
            if node.id != "scalar" and not node.flow_style:
                return self._block_replaced(path, value)
        if node.id != "scalar" and not node.flow_style:
            raise EditRefused("a list item is not replaced as a whole")
        start, end = node.start_mark.index, node.end_mark.index
        if self._at.comments_in(start, end):
            raise EditRefused("a comment is in the way")
        text = flow(value, self._at.style, node.style if node.id == "scalar" else None)
        # An empty value begins right behind the colon of its key.
        blank = " " if start == end and start and self._text[start - 1] == ":" else ""
        return [Piece(start, end, blank + text)]

    def _alias_replaced(self, path: FieldPath, key: Any, parent: Any, value: Any) -> Piece:
        start, end = key.start_mark.index, self._at.entries(parent)[self._at.index(parent, path[-1])].end
        if parent.flow_style:
            return Piece(self._at.behind_colon(key), end, f" {flow(value, self._at.style)}")
        name = self._text[start : key.end_mark.index]
        lines = block(name, value, self._at.column(start) + self._shifts.of(path), self._at.style)
        return Piece(start, end, self._at.style.newline.join(lines).lstrip(" "))

    def _below(self, path: FieldPath, value: Any) -> list[Piece]:
        """Puts a mapping or list, on lines of its own, in place of a scalar or ``{}``."""
        pair = self._document.nodes(path)
        assert pair is not None and pair.key is not None
        colon, end = self._at.behind_colon(pair.key), self._at.end(pair.value)
        end = max(colon, end)
        column = self._at.column(pair.key.start_mark.index) + self._shifts.of(path)
        lines = list(block("", value, column, self._at.style))[1:]
        behind = self._at.line_end(end)
        added = "".join(f"{self._at.style.newline}{line}" for line in lines)
        return [Piece(colon, end, "") if colon < end else Piece(behind, behind, ""), Piece(behind, behind, added)]

    def _block_replaced(self, path: FieldPath, value: Any) -> list[Piece]:
        pair = self._document.nodes(path)
        assert pair is not None and pair.key is not None
        start, end = pair.key.start_mark.index, self._at.end(pair.value)
        if self._at.comments_in(start, end):
            raise EditRefused("a comment is in the way")
        key = self._text[start : pair.key.end_mark.index]
        lines = list(block(key, value, self._at.column(start) + self._shifts.of(path), self._at.style))
        return [Piece(start, end, self._at.style.newline.join(lines).lstrip(" "))]

    def _cleared(self, change: Clear) -> list[Piece]:
        pair, node = self._document.nodes(change.path), self._at.own_value(change.path)
        if pair is None or pair.key is None or node.id != "sequence":
            raise EditRefused("there is no list to clear")
        start, end = pair.key.start_mark.index, self._at.end(node)
        comments = [*(self._text[a:b] for a, b in self._at.comments_in(start, end)), *change.comments]
        if comments and (node.flow_style or not self._at.begins_line(start)):
            raise EditRefused("a comment is in the way")
        key = self._text[start : pair.key.end_mark.index]
        indent = " " * self._at.column(start)
        above = "".join(f"{comment}{self._at.style.newline}{indent}" for comment in comments)
        return [Piece(start, end, f"{above}{key}: []")]

    def _renamed(self, path: FieldPath, key: str) -> Piece:
        pair = self._document.nodes(path)
        if pair is None or pair.key is None:
            raise EditRefused("there is no key to rename")
        node = pair.key
        if self._text[node.start_mark.index] in "&*":
            raise EditRefused(ELSEWHERE)
        text = quoted(key, node.style) if node.style else flow(key, self._at.style._replace(quoted=False))
        return Piece(node.start_mark.index, node.end_mark.index, text)

    def _enclosed(self, path: FieldPath, key: str) -> list[Piece]:
        pair = self._document.nodes(path)
        if pair is None or pair.key is None:
            raise EditRefused("there is no key to write below")
        parent = self._at.collection(path[:-1])
        entry = self._at.entries(parent)[self._at.index(parent, path[-1])]
        colon = self._at.behind_colon(pair.key)
        match = re.compile(r"[ \t]*").match(self._text, colon)
        start = colon if match is None else match.end()
        name = key_flow(key, self._at.style)
        if parent.flow_style:
            blank = "" if start > colon else " "
            return [Piece(start, start, f"{blank}{{{name}: "), Piece(entry.end, entry.end, "}")]
        if start >= entry.end or self._text[start] in "#\r\n":
            raise EditRefused("its value is not on the line of its key")
        indent = self._at.column(pair.key.start_mark.index) + self._at.style.step + self._shifts.of(path)
        return [Piece(colon, start, f"{self._at.style.newline}{' ' * indent}{name}: ")]

    def _spliced(self, change: Splice) -> list[Piece]:
        value = value_at(self._document.object, change.path)
        if self._document.nodes(change.path) is None or not isinstance(value, str):
            raise EditRefused("there is no text to change")
        node = self._at.own_value(change.path)
        style = node.style or ""
        whole = value[: change.start] + change.text + value[change.end :]
        parts = list(_parts(value, change))
        broken = any("\n" in part.text for part in parts)
        if broken or (not style and (_KEYED.search(whole) or scalar(whole) != whole)):
            return self._set(change.path, whole)
        offsets = source_offsets(self._text, node, value)
        if not offsets or change.start > len(offsets):
            raise EditRefused("the place in the text is uncertain")
        return [_part_written(part, offsets, style) for part in parts]


def _parts(value: str, change: Splice) -> Iterator[Splice]:
    """The splice. If it has line breaks: only what differs around them, so that the lines stay."""
    if "\n" not in change.text:
        yield change
        return
    from difflib import SequenceMatcher

    old, at = value[change.start : change.end], change.start
    for what, start, end, begin, stop in SequenceMatcher(None, old, change.text, autojunk=False).get_opcodes():
        if what != "equal":
            yield Splice(change.path, at + start, at + end, change.text[begin:stop])


def _part_written(part: Splice, offsets: Offsets, style: str) -> Piece:
    if part.start == len(offsets):
        start = end = offsets[-1][1]
    else:
        start = offsets[part.start][0]
        end = offsets[part.end - 1][1] if part.end > part.start else start
    text = part.text
    if style == '"':
        text = json_text(text)[1:-1]
    elif style == "'":
        text = text.replace("'", "''")
    return Piece(start, end, text)
