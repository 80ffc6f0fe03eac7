"""New objects as text in the style of the receiving file, and where they go."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_dra.manifests.changes import EditRefused
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.edits import Edit
from kubectl_dra.manifests.places import Places
from kubectl_dra.manifests.style import Style, block, flow, json_text, key_flow

_MARKER: Final = re.compile(r"^(---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)


def lines_of(raw: Mapping[str, Any], style: Style) -> list[str]:
    """The lines of an object as a block document."""
    return [line for key, value in raw.items() for line in block(key_flow(key, style), value, 0, style)]


def documents_of(objects: Sequence[Mapping[str, Any]], style: Style) -> str:
    """The text of a file that holds just the objects."""
    newline = style.newline
    return f"{newline}---{newline}".join(
        "".join(f"{line}{newline}" for line in lines_of(raw, style)).removesuffix(newline) for raw in objects
    ) + (newline if objects else "")


def json_list(objects: Sequence[Mapping[str, Any]]) -> str:
    """The objects as a JSON List."""
    return json_text({"apiVersion": "v1", "kind": "List", "items": list(objects)}, 2) + "\n"


def added_behind(document: Document, objects: Sequence[Mapping[str, Any]]) -> Edit:
    """The edit that adds objects as documents of their own after a document.

    Raises:
        EditRefused: the document is JSON, which cannot have further documents.
    """
    places = Places(document)
    style = places.style
    if style.json:
        raise EditRefused("JSON has no further documents")
    text, newline = document.source.text, style.newline
    end = document.root.end_mark.index if document.root.flow_style else places.end(document.root)
    marker = _MARKER.search(text, places.line_end(end))
    at = len(text) if marker is None else marker.start()
    if not _ends_in_block(document.root):
        # Comments behind a blank line are about what follows, or about the file.
        at = min(at, places.next_line(places.behind_comments(end, 0)))
    parts = [
        [flow(raw, style)] if document.root.flow_style else lines_of(raw, style._replace(json=False)) for raw in objects
    ]
    added = "".join(f"---{newline}" + "".join(f"{line}{newline}" for line in lines) for lines in parts)
    if at and text[at - 1] not in "\r\n":
        # The end of a text without a final line break, which it keeps.
        added = newline + added.removesuffix(newline)
    return Edit(at, at, added)


def _ends_in_block(node: Any) -> bool:
    """Whether a document ends in a block scalar, to which blank lines below it may belong."""
    while node.id != "scalar" and node.value:
        node = node.value[-1] if node.id == "sequence" else node.value[-1][1]
    return node.id == "scalar" and node.style in ("|", ">")
