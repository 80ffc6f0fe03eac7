"""Removes documents from a text and keeps one marker between their neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.manifests.changes import EditRefused
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.edits import Edit
from kubectl_dra.manifests.places import Places
from kubectl_dra.manifests.source import Source


def without(documents: Sequence[Document], removed: Sequence[Document]) -> list[Edit]:
    """The edits that remove documents, each with the marker before it: the reverse of appending them."""
    out: list[Edit] = []
    for document in removed:
        source = document.source
        start, end = _span(source, document, documents)
        out.append(Edit(start, end, ""))
    out.sort()
    merged: list[Edit] = []
    for edit in out:
        if merged and edit.start <= merged[-1].end:
            merged[-1] = Edit(merged[-1].start, max(edit.end, merged[-1].end), "")
        else:
            merged.append(edit)
    return merged


def _span(source: Source, document: Document, documents: Sequence[Document]) -> tuple[int, int]:
    """From the marker before a document to the next one, or to the ends of the text.

    Raises:
        EditRefused: it is not a separate document, for example inside JSON.
    """
    text = source.text
    places = Places(document)
    if places.style.json:
        raise EditRefused("JSON that is one object cannot be without it")
    start = places.line_start(document.root.start_mark.index)
    marker = text.rfind("\n---", 0, start)
    before = marker + 1 if marker >= 0 else 0 if text.startswith("---") else -1
    inside = any(other is not document and before <= other.root.start_mark.index < start for other in documents)
    if inside:
        raise EditRefused("it is not in a place of its own")
    following = [one.root.start_mark.index for one in documents if one.index > document.index]
    end = len(text)
    if following:
        behind = text.rfind("\n---", start, min(following))
        if behind < 0:
            raise EditRefused("it is not in a place of its own")
        end = behind + 1
    if before < 0:
        # The first document of a text that does not begin with a marker: the next one's goes.
        return 0, places.next_line(end) if following else end
    # What is behind its lines is not its own: comments there head what follows.
    return before, min(end, places.next_line(places.end(document.root)))
