"""Maps characters of a decoded YAML or JSON scalar back to their positions in the source."""

from __future__ import annotations

import re
from typing import Any, Final

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
    found = _SPACE_RUN.match(text, index, stop)
    assert found is not None
    breaks = [match.span() for match in _BREAK.finditer(text, index, found.end())]
    if not breaks:
        for at in range(index, found.end()):
            emit(text[at], at, at + 1)
    elif len(breaks) == 1:
        emit(" ", index, found.end())
    else:
        for at, behind in breaks[1:]:
            emit("\n", at, behind)
    return found.end()


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
        found = _SPACE_RUN.match(text, index + 1, stop)
        assert found is not None
        for match in list(_BREAK.finditer(text, index + 1, found.end()))[1:]:
            emit("\n", *match.span())
        return found.end()
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
        found = _BREAK.search(text, start, end)
        if found is None:
            out.append((start, end, end))
            break
        out.append((start, found.start(), found.end()))
        start = found.end()
    return out


def _indent(text: str, lines: list[tuple[int, int, int]], value: str) -> int:
    """The indentation that is not part of the value, given by the first non-blank line."""
    written = next((text[begin:finish] for begin, finish, _ in lines if text[begin:finish].strip(" ")), "")
    read = next((line for line in value.split("\n") if line.strip(" ")), "")
    return max(0, (len(written) - len(written.lstrip(" "))) - (len(read) - len(read.lstrip(" "))))
