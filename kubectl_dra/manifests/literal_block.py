"""Replaces lines of a literal block (``key: |``) whose other lines stay."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from kubectl_dra.manifests.changes import EditRefused
from kubectl_dra.manifests.text_pieces import Piece


class _Line(NamedTuple):
    """A line of the block in its file: ``text[start:end]``, with its indentation and without its end."""

    start: int
    end: int


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


def _lines(text: str, node: Any, expected: list[str]) -> tuple[list[_Line], str]:
    """The lines of the block, and their indentation."""
    found: list[_Line] = []
    at = text.find("\n", node.start_mark.index) + 1
    while at and len(found) < len(expected):
        behind = text.find("\n", at)
        stop = len(text) if behind < 0 else behind
        found.append(_Line(at, stop - 1 if text[at:stop].endswith("\r") else stop))
        at = behind + 1
    number, first = next(((number, line) for number, line in enumerate(expected) if line), (0, ""))
    width = found[number].end - found[number].start - len(first) if number < len(found) else 0
    indent = " " * max(0, width)
    for line, read in zip(found, expected, strict=False):
        written = text[line.start : line.end]
        if written != (indent + read if read else written[: len(indent)]) or (not read and written.strip(" ")):
            raise EditRefused("the place in the text is uncertain")
    if len(found) != len(expected):
        raise EditRefused("the place in the text is uncertain")
    return found, indent
