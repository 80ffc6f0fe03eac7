"""Positions in the text of a document: entries with their ends, lines, columns, comments."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from kubectl_dra.manifests.changes import EditRefused, Path
from kubectl_dra.manifests.comments import comment_spans
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.style import Style, style_of
from kubectl_dra.manifests.values import is_merge

_ALIAS: Final = re.compile(r"\s*:?\s*(\*[^\s,\]}]+)")
ELSEWHERE: Final = "an anchor or alias is in the way"


class Entry(NamedTuple):
    """A key with its value, or a list item with its dash: ``text[start:end]``, without the rest of the line."""

    start: int
    end: int


class Places:
    """Looks up positions in the text of one document."""

    def __init__(self, document: Document) -> None:
        self.document: Final = document
        self.text: Final = document.source.text
        self._style: Style | None = None
        self._comments: list[tuple[int, int]] | None = None

    @property
    def style(self) -> Style:
        """The document's style."""
        if self._style is None:
            self._style = style_of(self.text, self.document.root)
        return self._style

    def collection(self, path: Path) -> Any:
        """The node of the mapping or list at a path. Raises EditRefused if there is none."""
        pair = self.document.nodes(path)
        if pair is None or pair.value.id == "scalar":
            raise EditRefused("there is nothing at its path")
        return pair.value

    def entries(self, node: Any) -> list[Entry]:
        """The entries of a mapping or list, in order.

        Raises:
            EditRefused: an item is an alias, whose own position the parser does not report.
        """
        out: list[Entry] = []
        behind = node.start_mark.index
        if node.id == "sequence":
            for item in node.value:
                start, end = item.start_mark.index, self.end(item)
                if start < behind:
                    raise EditRefused(ELSEWHERE)
                if not node.flow_style:
                    start = self._dash(start, behind)
                out.append(Entry(start, end))
                behind = end
            return out
        for key, value in node.value:
            start = key.start_mark.index
            if start < behind:
                raise EditRefused(ELSEWHERE)
            behind = self._value_end(key, value)
            out.append(Entry(start, behind))
        return out

    def index(self, parent: Any, key: str | int) -> int:
        """The number of the entry with a key or index. Raises EditRefused if it is missing or occurs twice."""
        if parent.id == "sequence" and isinstance(key, int) and key < len(parent.value):
            return key
        found = [index for index, pair in enumerate(parent.value) if str(pair[0].value) == key]
        if parent.id == "mapping" and not found and any(is_merge(pair[0]) for pair in parent.value):
            raise EditRefused(f"{key} comes in by a merge key (<<)")
        if parent.id != "mapping" or len(found) != 1:
            raise EditRefused("there is no such key, or there are two")
        return found[0]

    def own_value(self, path: Path) -> Any:
        """The node of a value written only at its path. Raises EditRefused for aliased ones."""
        pair = self.document.nodes(path)
        if pair is None:
            raise EditRefused("there is nothing at its path")
        start = pair.value.start_mark.index
        elsewhere = pair.key is not None and start < pair.key.start_mark.index
        if elsewhere or self.text[start : start + 1] == "&":
            raise EditRefused(ELSEWHERE)
        return pair.value

    def behind_colon(self, key: Any) -> int:
        """The position after the colon of a key."""
        found = re.compile(r"\s*:").match(self.text, key.end_mark.index)
        if found is None:
            raise EditRefused("its key has no colon")
        return found.end()

    def end(self, node: Any) -> int:
        """The end of a value's own text."""
        end: int = node.end_mark.index
        if node.id != "scalar" and not node.flow_style and node.value:
            end = self.end(node.value[-1]) if node.id == "sequence" else self._value_end(*node.value[-1])
        while end > node.start_mark.index and self.text[end - 1] in " \t\r\n":
            end -= 1
        return end

    def _value_end(self, key: Any, value: Any) -> int:
        if value.start_mark.index < key.start_mark.index:
            alias = _ALIAS.match(self.text, key.end_mark.index)
            return key.end_mark.index if alias is None else alias.end()
        end = self.end(value)
        return end if end > key.end_mark.index else self.behind_colon(key)

    def _dash(self, start: int, behind: int) -> int:
        """The dash of the item that begins at ``start``; only comments and blanks may lie between."""
        at = start
        while True:
            at = self.text.rfind("-", behind, at)
            if at < 0:
                raise EditRefused("the dash of a list item is uncertain")
            if not any(begin <= at < end for begin, end in self.comments_in(behind, start)):
                return at

    def comments_in(self, start: int, end: int) -> list[tuple[int, int]]:
        """The comments that begin between two positions."""
        if "#" not in self.text[start:end]:
            return []
        if self._comments is None:
            self._comments = comment_spans(self.text, [self.document.root])
        return [span for span in self._comments if start <= span[0] < end]

    def column(self, offset: int) -> int:
        return offset - self.line_start(offset)

    def line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """The position before the line break of the line."""
        found = self.text.find("\n", offset)
        end = len(self.text) if found < 0 else found
        return end - 1 if end > offset and self.text[end - 1] == "\r" else end

    def line_end_before(self, start: int) -> int:
        """The position before the line break that precedes ``start``, which is not on the first line."""
        return self.line_end(self.line_start(start - 1))

    def behind_comments(self, offset: int, column: int) -> int:
        """The end of the line, or of the last comment right below it that begins at ``column`` or deeper."""
        at = self.line_end(offset)
        while True:
            start = self.next_line(at)
            end = self.line_end(start)
            found = self.comments_in(start, end)
            if start <= at or not found or not self.begins_line(found[0][0]) or self.column(found[0][0]) < column:
                return at
            at = end

    def next_line(self, offset: int) -> int:
        found = self.text.find("\n", offset)
        return len(self.text) if found < 0 else found + 1

    def begins_line(self, offset: int) -> bool:
        """Whether only spaces precede it on its line."""
        return not self.text[self.line_start(offset) : offset].strip(" ")
