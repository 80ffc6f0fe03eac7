"""The text of one input: decoded once, with line numbers by offset."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, NamedTuple

from kubectl_dra.errors import FileError

_LINE_END = re.compile(r"\r\n|\n|\r")
_LINE_FEED = re.compile(r"\n")
_BOMS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
# Of the control characters YAML and JSON texts hold only tab, line feed, carriage return and next line.
_BINARY = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class SourcePosition(NamedTuple):
    """A span of the text. Lines and columns count from 1, in characters; offsets count from 0.

    ``end_line`` and ``end_column`` are the position just after the last character, as is ``end_offset``.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    offset: int
    end_offset: int


class Source:
    """A named text. Offsets are into ``text``, which excludes ``bom``; line ends are unchanged."""

    __slots__ = ("_line_starts", "bom", "encoding", "name", "text")

    def __init__(self, name: str, text: str, encoding: str = "utf-8", bom: bytes = b"") -> None:
        self.name: Final = name
        self.text: Final = text
        self.encoding: Final = encoding
        self.bom: Final = bom
        self._line_starts: list[int] | None = None

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        starts = self._line_starts or self._lines()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line_start(self, line: int) -> int | None:
        """The offset where a line, counted from 1, begins; None if there is no such line."""
        starts = self._line_starts or self._lines()
        return starts[line - 1] if 0 < line <= len(starts) else None

    def _lines(self) -> list[int]:
        ends = _LINE_END if "\r" in self.text else _LINE_FEED
        self._line_starts = found = [0, *[match.end() for match in ends.finditer(self.text)]]
        return found

    def span(self, start: int, end: int) -> SourcePosition:
        """The position of ``text[start:end]``."""
        return SourcePosition(*self.place(start), *self.place(end), start, end)

    def encode(self, text: str) -> bytes:
        """The bytes of a text in this input's encoding, with its byte order mark."""
        return self.bom + text.encode(self.encoding)


def decode(data: bytes | str, name: str) -> Source:
    """Decode UTF-8, or UTF-16 or UTF-32 identified by a byte order mark or by their zero bytes.

    Raises:
        FileError: the bytes are not text.
    """
    if isinstance(data, str):
        marked = data.startswith("\ufeff")
        return Source(name, data[marked:], bom="\ufeff".encode() if marked else b"")
    bom, encoding = next((entry for entry in _BOMS if data.startswith(entry[0])), (b"", _guessed(data)))
    try:
        text = data.decode(encoding) if not bom else data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        raise FileError(f"not a text file: byte {error.start + len(bom)} is not {encoding.upper()}", name) from None
    return Source(name, text, encoding, bom)


def _guessed(data: bytes) -> str:
    if len(data) >= 2 and data[0] and not data[1]:
        return "utf-16-le"
    if len(data) >= 2 and not data[0] and data[1]:
        return "utf-16-be"
    return "utf-8"


def check_text(source: Source) -> None:
    """Raise FileError if the text has a control character, which occurs in binary data but not in YAML."""
    found = _BINARY.search(source.text)
    if found is not None:
        line, column = source.place(found.start())
        raise FileError(
            f"not a text file: it holds the control character U+{ord(found.group()):04X}", source.name, line, column
        )
