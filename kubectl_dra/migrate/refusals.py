"""Why a whole file or object is left alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from kubectl_dra.lint.locate import enclosing_lines
from kubectl_dra.manifests.changes import Path
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.source import Source, scalar_spans
from kubectl_dra.migrate.model import ChangePage

if TYPE_CHECKING:
    from kubectl_dra.lint.accepted import Suppression

TEMPLATE: Final = "MIG901"
UNREADABLE: Final = "MIG902"
NOT_AN_OBJECT: Final = "MIG903"
NO_EDIT: Final = "MIG904"
NO_PLACE: Final = "MIG905"
NAME_TAKEN: Final = "MIG906"
REPEATED: Final = "MIG907"
PATCH: Final = "MIG908"
BUILD: Final = "MIG909"
WAY_OUT_BUILD: Final = (
    "change what is in the way in the overlay by hand, or give all that it reads to one run of migrate; compare what "
    "kubectl kustomize builds before and after"
)
WAY_OUT_PATCH: Final = (
    "migrate what it patches, look at what kubectl kustomize DIR | kubectl dra migrate - --diff makes of both "
    "together, then write the patch for that: of the count in the ResourceClaimTemplate, not of the limit"
)
ABOUT: Final = (
    ChangePage(TEMPLATE, "template", "refusal"),
    ChangePage(UNREADABLE, "unreadable", "refusal"),
    ChangePage(NOT_AN_OBJECT, "not-an-object", "refusal"),
    ChangePage(NO_EDIT, "no-edit", "refusal"),
    ChangePage(NO_PLACE, "no-place", "refusal"),
    ChangePage(NAME_TAKEN, "name-taken", "refusal"),
    ChangePage(REPEATED, "repeated-key", "refusal"),
    ChangePage(PATCH, "patch", "refusal"),
    ChangePage(BUILD, "kustomization", "refusal"),
)


# Comments such as ``# kubectl-dra: ignore[MIG101] reason``: what they cover stays, and nothing is said of it.

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
        from kubectl_dra.lint.accepted import suppressions

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
