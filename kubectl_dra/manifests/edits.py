"""Changes of objects as minimal edits of their text, verified by reading the result again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import Change, EditRefused
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.places import ELSEWHERE
from kubectl_dra.manifests.smallest_changes import smallest
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.writer import pieces


class Edit(NamedTuple):
    """``text[start:end]`` becomes ``text``. Offsets refer to the source's text before all edits."""

    start: int
    end: int
    text: str


def edits_of(document: Document, changes: Sequence[Change]) -> list[Edit]:
    """The edits that make the changes, whose paths are the document's.

    Raises:
        EditRefused: a change that cannot be made in this text.
    """
    found = pieces(document, smallest(document.object, changes))
    # What is added at one place belongs to ever larger mappings: the innermost comes first.
    found.sort(key=lambda piece: (piece.start, piece.end, -piece.depth))
    out = _merged(list(dict.fromkeys(Edit(piece.start, piece.end, piece.text) for piece in found)))
    if any(later.start < earlier.end for earlier, later in pairwise(out)):
        shared = "&" in document.source.text and "*" in document.source.text
        raise EditRefused(ELSEWHERE if shared else "its changes overlap in the text")
    return out


def _merged(edits: Sequence[Edit]) -> list[Edit]:
    """The edits, with added lines merged into a deletion directly before them."""
    out: list[Edit] = []
    for edit in edits:
        before = out[-1] if out else None
        inside = before is not None and edit.start == edit.end and before.start < edit.start <= before.end
        if before is not None and inside and edit.text[:1] in "\r\n":
            if edit.start == before.end:
                # Lines that go up to the end of a text without a final line break.
                out[-1] = before._replace(text=before.text + edit.text)
            else:
                lines = edit.text.lstrip("\r\n")
                newline = edit.text[: len(edit.text) - len(lines)]
                out[-1] = before._replace(text=f"{before.text}{lines}{newline}")
        else:
            out.append(edit)
    return out


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with all edits made; they must not overlap."""
    out: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        out += (text[at : edit.start], edit.text)
        at = edit.end
    return "".join([*out, text[at:]])


def verified(documents: Sequence[Document], edits: Sequence[Edit], intended: Mapping[int, Any]) -> str:
    """The edited text, if it reads as intended: ``intended`` by document index, all other documents
    unchanged.

    Raises:
        EditRefused: it would read differently.
    """
    source = documents[0].source
    text = edited(source.text, edits)
    reread(source, text, [intended.get(document.index, document.object) for document in documents])
    return text


def reread(source: Source, text: str, objects: Sequence[Any]) -> tuple[Document, ...]:
    """The documents of a text made from ``source``, if they hold exactly the objects.

    Raises:
        EditRefused: it cannot be read, or reads differently.
    """
    anchors = "&" in source.text and "*" in source.text
    try:
        result = parse(Source(source.name, text, source.encoding, source.bom))
    except (FileError, RecursionError) as error:
        raise EditRefused(ELSEWHERE if anchors else f"the text could no longer be read: {error}") from None
    if len(result) != len(objects):
        raise EditRefused("it would change the number of documents")
    for document, expected in zip(result, objects, strict=True):
        if document.object != expected:
            raise EditRefused(ELSEWHERE if anchors else "the text would not read as intended")
    return result
