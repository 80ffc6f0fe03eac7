"""Reads a text of which some documents are templates with bare placeholders, such as ``{{HF_TOKEN}}``.

Such a document says nothing about the others, unlike one with control flow, which may make or unmake its neighbours.
It is read as comments of the same length, so that edits of the others have the offsets of the original.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kubectl_dra.manifests.documents import SEPARATOR, Skipped, each_document
from kubectl_dra.manifests.source import Source, TemplateError

_ACTION: Final = re.compile(r"\{\{(?P<name>.*?)\}\}|\{[{%#]", re.DOTALL)
_BARE: Final = re.compile(r"\s*(?!(?:end|else|break|continue)\b)[A-Za-z_][\w-]*\s*")
# A directive or the end of a document, behind which a piece would hold another one.
_NOT_ONE: Final = re.compile(r"^(?:%|\.\.\.(?:\s|\Z))|resource\.k8s\.io", re.MULTILINE)
_LINE: Final = re.compile(r"[^\r\n]+")
# Characters for private use, which no manifest has: one for each document.
_MARKS: Final = range(0xE000, 0xE100)


class Unfilled(NamedTuple):
    """A document that is a template: the offsets of its lines, the first of them, and its first placeholder."""

    start: int
    end: int
    line: int
    placeholder: str


class Covered(NamedTuple):
    """A text and, as ``source``, the same with the documents ``unfilled`` as comments."""

    source: Source
    whole: Source
    unfilled: tuple[Unfilled, ...]

    @property
    def templates(self) -> list[str]:
        """The documents as they are written."""
        return [self.whole.text[document.start : document.end].strip() for document in self.unfilled]

    def uncovered(self, text: str) -> str:
        """``source`` after edits, which keep comments, with these documents as they were."""
        for document in self.unfilled:
            span = slice(document.start, document.end)
            text = text.replace(self.source.text[span], self.whole.text[span])
        return text


def covered(source: Source) -> Covered | None:
    """The text with its templates as comments; None if there are none, or more than bare placeholders is in them."""
    if "{{" not in source.text or any(chr(mark) in source.text for mark in _MARKS):
        return None
    unfilled = []
    for document in each_document(source):
        if isinstance(document, Skipped):
            piece = _unfilled(source, document)
            if piece is None:
                return None
            unfilled.append(piece)
    if not 0 < len(unfilled) <= len(_MARKS):
        return None
    text, out, at = source.text, "", 0
    for mark, piece in zip(_MARKS, unfilled, strict=False):
        out += text[at : piece.start] + _comments(text[piece.start : piece.end], chr(mark))
        at = piece.end
    return Covered(source.with_text(out + text[at:]), source, tuple(unfilled))


def _unfilled(source: Source, skipped: Skipped) -> Unfilled | None:
    if not isinstance(skipped.error, TemplateError):
        return None
    text = source.text
    begin = source.line_start(skipped.line) or 0
    markers = [match.start() for match in SEPARATOR.finditer(text)]
    start = max((at for at in markers if at <= begin), default=0)
    if text.startswith("---", start):
        behind = _LINE.match(text, start)
        start = start + 3 if behind is None else behind.end()
    end = min((at for at in markers if at >= start), default=len(text))
    piece = text[start:end]
    names = list(_placeholders(piece))
    if _NOT_ONE.search(piece) or not names or not all(map(_BARE.fullmatch, names)):
        return None
    return Unfilled(start, end, skipped.line, f"{{{{{names[0]}}}}}")


def _placeholders(piece: str) -> Iterator[str]:
    """What stands in each template action; nothing that a name matches for control flow and comments."""
    for match in _ACTION.finditer(piece):
        yield match["name"] or ""


def _comments(piece: str, mark: str) -> str:
    return _LINE.sub(lambda line: f"#{mark * (len(line[0]) - 1)}", piece)
