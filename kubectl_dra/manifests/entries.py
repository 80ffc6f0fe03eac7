"""Removes entries from mappings and lists, and adds new ones after the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubectl_dra.manifests.changes import Append, Delete, EditRefused, Path, Set
from kubectl_dra.manifests.places import Entry, Places
from kubectl_dra.manifests.style import Style, block, block_item, flow, key_flow, spread_out
from kubectl_dra.manifests.text_pieces import Piece, Shifts, runs


class Entries:
    """Deletes and adds entries in the text of one document."""

    def __init__(self, places: Places, shifts: Shifts) -> None:
        self._at = places
        self._shifts = shifts
        self._text = places.text

    def changed(self, path: Path, changes: Sequence[Set | Append | Delete]) -> list[Piece]:
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

    def _style_at(self, path: Path) -> Style:
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
        self, path: Path, entries: Sequence[Entry], new: Sequence[Set | Append], style: Style
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
