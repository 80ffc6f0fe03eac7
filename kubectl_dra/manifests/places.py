"""Positions in the text of a document: entries with their ends, lines, columns, comments."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import EditRefused
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.source import comments_between, scalar_spans
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
        self._scalars: list[tuple[int, int]] | None = None

    @property
    def style(self) -> Style:
        """The document's style."""
        if self._style is None:
            self._style = style_of(self.text, self.document.root)
        return self._style

    def collection(self, path: FieldPath) -> Any:
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
        indices = [index for index, pair in enumerate(parent.value) if str(pair[0].value) == key]
        if parent.id == "mapping" and not indices and any(is_merge(pair[0]) for pair in parent.value):
            raise EditRefused(f"{key} comes in by a merge key (<<)")
        if parent.id != "mapping" or len(indices) != 1:
            raise EditRefused("there is no such key, or there are two")
        return indices[0]

    def own_value(self, path: FieldPath) -> Any:
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
        match = re.compile(r"\s*:").match(self.text, key.end_mark.index)
        if match is None:
            raise EditRefused("its key has no colon")
        return match.end()

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
        if self._scalars is None:
            self._scalars = sorted(scalar_spans(self.text, [self.document.root]))
        lines = self.line_start(start), self.line_end(end)
        return [span for span in comments_between(self.text, self._scalars, *lines) if start <= span[0] < end]

    def column(self, offset: int) -> int:
        return offset - self.line_start(offset)

    def line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def line_end(self, offset: int) -> int:
        """The position before the line break of the line."""
        newline = self.text.find("\n", offset)
        end = len(self.text) if newline < 0 else newline
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
            comments = self.comments_in(start, end)
            if (
                start <= at
                or not comments
                or not self.begins_line(comments[0][0])
                or self.column(comments[0][0]) < column
            ):
                return at
            at = end

    def next_line(self, offset: int) -> int:
        newline = self.text.find("\n", offset)
        return len(self.text) if newline < 0 else newline + 1

    def begins_line(self, offset: int) -> bool:
        """Whether only spaces precede it on its line."""
        return not self.text[self.line_start(offset) : offset].strip(" ")


# Maps characters of a decoded YAML or JSON scalar back to their positions in the source.

Offsets = list[tuple[int, int]]
"""For each code point of the decoded text, the start and end of its source."""
_BLANKS: Final = " \t"
_BREAKS: Final = "\r\n\x85\u2028\u2029"
_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_SPACE_RUN: Final = re.compile("[ \t\r\n\x85\u2028\u2029]+")
_HEX: Final = {"x": 2, "u": 4, "U": 8}
_SURROGATES: Final = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def source_offsets(text: str, node: Any, value: str) -> Offsets | None:
    """The offset of each character of ``value``, which was read from the scalar ``node`` of ``text``.

    None if that is uncertain (a tag such as !!binary changed the text).
    """
    start, end = node.start_mark.index, node.end_mark.index
    # The mark of a tagged or anchored scalar begins with the tag or anchor.
    start = _content(text, start, end, node.style)
    style = node.style
    if style in ("|", ">"):
        characters, offsets = _block(text, start, end, value, folded=style == ">")
    else:
        inside = (start + 1, end - 1) if style else (start, end)
        if text[slice(*inside)] == value:
            # Nothing in it is escaped or folded.
            return [(at, at + 1) for at in range(*inside)]
        characters, offsets = _flow(text, *inside, style or "")
    if "".join(characters[: len(value)]) != value:
        return None
    return offsets[: len(value)]


def _content(text: str, start: int, end: int, style: str | None) -> int:
    while start < end and text[start] in "!&":
        while start < end and text[start] not in " \t\r\n":
            start += 1
        while start < end and text[start] in " \t\r\n":
            start += 1
    return start


def _flow(text: str, index: int, stop: int, quote: str) -> tuple[list[str], Offsets]:
    """Plain and quoted scalars: escapes, and line ends folded to a space."""
    characters: list[str] = []
    offsets: Offsets = []

    def emit(character: str, at: int, behind: int) -> None:
        characters.append(character)
        offsets.append((at, behind))

    while index < stop:
        character = text[index]
        if character in _BLANKS or character in _BREAKS:
            index = _space(text, index, stop, emit)
        elif quote == "'" and character == "'":
            emit("'", index, index + 2)
            index += 2
        elif quote == '"' and character == "\\":
            index = _escape(text, index, stop, emit)
        else:
            emit(character, index, index + 1)
            index += 1
    return characters, offsets


def _space(text: str, index: int, stop: int, emit: Any) -> int:
    """Blanks stay. A line end with its surrounding blanks becomes a space; of several line ends all but one remain."""
    blanks = _SPACE_RUN.match(text, index, stop)
    assert blanks is not None
    breaks = [match.span() for match in _BREAK.finditer(text, index, blanks.end())]
    if not breaks:
        for at in range(index, blanks.end()):
            emit(text[at], at, at + 1)
    elif len(breaks) == 1:
        emit(" ", index, blanks.end())
    else:
        for at, behind in breaks[1:]:
            emit("\n", at, behind)
    return blanks.end()


_NAMED: Final = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}


def _escape(text: str, index: int, stop: int, emit: Any) -> int:
    following = text[index + 1 : index + 2]
    if following in _BREAKS:
        blanks = _SPACE_RUN.match(text, index + 1, stop)
        assert blanks is not None
        for match in list(_BREAK.finditer(text, index + 1, blanks.end()))[1:]:
            emit("\n", *match.span())
        return blanks.end()
    pair = _SURROGATES.match(text, index)
    if pair is not None:
        high, low = int(pair[1], 16), int(pair[2], 16)
        emit(chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00), index, pair.end())
        return pair.end()
    digits = _HEX.get(following, 0)
    behind = index + 2 + digits
    if digits:
        code = int(text[index + 2 : behind], 16)
        emit(chr(code) if code < 0x110000 else "\ufffd", index, behind)
    else:
        emit(_NAMED.get(following, following), index, behind)
    return behind


def _block(text: str, start: int, end: int, value: str, folded: bool) -> tuple[list[str], Offsets]:
    """Literal and folded scalars, with lines joined as YAML's reference parser does."""
    header = _BREAK.search(text, start, end)
    lines = _lines(text, end if header is None else header.end(), end)
    indent = _indent(text, lines, value)
    characters: list[str] = []
    offsets: Offsets = []

    def emit(character: str, span: tuple[int, int]) -> None:
        characters.append(character)
        offsets.append(span)

    pending: tuple[int, int] | None = None
    blanks: list[tuple[int, int]] = []
    was_indented = False
    for begin, finish, behind in lines:
        at = min(begin + indent, finish)
        if at == finish and text[begin:finish].strip(" ") == "":
            blanks.append((finish, behind))
            continue
        indented = text[at] in _BLANKS
        if pending is not None:
            if folded and not was_indented and not indented:
                if not blanks:
                    emit(" ", pending)
            else:
                emit("\n", pending)
        for span in blanks:
            emit("\n", span)
        blanks = []
        for offset in range(at, finish):
            emit(text[offset], (offset, offset + 1))
        was_indented, pending = indented, (finish, behind)
    if pending is not None:
        emit("\n", pending)
    for span in blanks:
        emit("\n", span)
    return characters, offsets


def _lines(text: str, start: int, end: int) -> list[tuple[int, int, int]]:
    """Start, end of content, and end including the line break, of each line."""
    out = []
    while start < end:
        match = _BREAK.search(text, start, end)
        if match is None:
            out.append((start, end, end))
            break
        out.append((start, match.start(), match.end()))
        start = match.end()
    return out


def _indent(text: str, lines: list[tuple[int, int, int]], value: str) -> int:
    """The indentation that is not part of the value, given by the first non-blank line."""
    written = next((text[begin:finish] for begin, finish, _ in lines if text[begin:finish].strip(" ")), "")
    read = next((line for line in value.split("\n") if line.strip(" ")), "")
    return max(0, (len(written) - len(written.lstrip(" "))) - (len(read) - len(read.lstrip(" "))))
