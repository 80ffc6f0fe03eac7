"""Comments such as ``# kubectl-dra: ignore[MIG101] reason``: what they cover stays, and nothing is said of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kubectl_dra.lint.positions import enclosing_lines
from kubectl_dra.manifests.changes import Path
from kubectl_dra.manifests.comments import scalar_spans
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.source import Source

if TYPE_CHECKING:
    from kubectl_dra.lint.suppress import Suppression

MIGRATE: Final = "MIG"
"""How the codes of migrate begin."""


class Ignored:
    """The comments of one file, as it was read, and which of them were needed."""

    def __init__(self, source: Source, documents: Sequence[Document]) -> None:
        self._source = source
        self._documents = documents
        self._used: set[int] = set()
        self._inside = 0

    @cached_property
    def _comments(self) -> list[Suppression]:
        text = self._source.text
        if "kubectl-dra:" not in text or MIGRATE not in text:
            return []
        # It knows all rules of lint, which few runs need.
        from kubectl_dra.lint.suppress import suppressions

        scalars = scalar_spans(text, [document.root for document in self._documents])
        return [one for one in suppressions(self._source, sorted(scalars)) if not one.problem and _codes(one)]

    def covers(self, code: str, document: Document, path: Path) -> bool:
        """Whether something that is said of a path of a document is not to be said, and not to be changed."""
        if not self._comments:
            return False
        return self.covers_lines(code, {line for line, _ in enclosing_lines(document, path)})

    def covers_lines(self, code: str, lines: Collection[int]) -> bool:
        """As ``covers``, by the numbers of the lines."""
        hits = [
            index
            for index, one in enumerate(self._comments)
            if one.covers in lines and any(code.startswith(each) for each in _codes(one))
        ]
        self._used.update(hits)
        return bool(hits)

    def note_inside(self, number: int) -> None:
        """Count comments inside a text of the file, such as a patch, that hid something."""
        self._inside += number

    @property
    def count(self) -> int:
        """How many comments hid something."""
        return len(self._used) + self._inside

    def unused(self) -> Iterator[Suppression]:
        """Comments that hid nothing."""
        yield from (one for index, one in enumerate(self._comments) if index not in self._used)


def _codes(comment: Suppression) -> list[str]:
    return [code for code in comment.codes if code.startswith(MIGRATE)]
