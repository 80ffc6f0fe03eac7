"""Keeps some documents in memory to locate findings later, and rereads the others."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import Document, Skipped, each
from kubectl_dra.manifests.inputs import Input, read
from kubectl_dra.manifests.source import decode

MOST_KEPT: Final = 6_000_000
"""Limit in characters for texts whose documents are kept: their nodes take up to a hundred times as many bytes."""


class Texts:
    """Documents by file name and index."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[int, Document]] = {}
        self._left = MOST_KEPT

    def keep(self, document: Document) -> None:
        """Keep a document if there is room for its text."""
        mine = self._kept.get(document.name)
        if mine is None:
            size = len(document.source.text)
            if size > self._left:
                return
            self._left -= size
            mine = self._kept[document.name] = {}
        mine[document.index] = document

    def documents(self, found: Input, digest: int, indices: Collection[int]) -> dict[int, Document]:
        """The documents with these indices, if the file has them and is unchanged."""
        kept = self._kept.get(found.name)
        if kept is not None:
            return kept
        try:
            data = read(found)
            if hash(data) != digest:
                return {}
            documents = each(decode(data, found.name))
            return {one.index: one for one in documents if not isinstance(one, Skipped) and one.index in indices}
        except InputError:
            return {}
