"""A file of a run: as read, and after the changes so far."""

from __future__ import annotations

from typing import NamedTuple

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import Path
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.edits import Edit
from kubectl_dra.manifests.kustomization import DEFAULTS, NAMES
from kubectl_dra.manifests.objects import ManifestObject, ObjectKey, is_object, objects
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.ignored import Ignored
from kubectl_dra.migrate.openshift import in_template
from kubectl_dra.migrate.result import Remark


class File:
    """A file: ``original`` as read, ``source`` as it is now with its ``documents`` and ``objects``.

    ``origins`` maps each document to its index in the original, None for added ones. ``strangers`` are
    documents that are not Kubernetes objects. With ``patch``, kustomize lays its objects over others.
    ``rounds`` are the edits so far, each applied to the result of the one before it.
    """

    def __init__(self, source: Source, documents: tuple[Document, ...], patch: bool = False) -> None:
        self.name = source.name
        self.original = source
        self.before = documents
        self.patch = patch
        self.items: list[Remark] = []
        self.rounds: tuple[tuple[Edit, ...], ...] = ()
        self.ignored = Ignored(source, documents)
        self.left: set[ObjectKey] = set()
        self._set(source, documents, tuple(range(len(documents))))

    def _set(self, source: Source, documents: tuple[Document, ...], origins: tuple[int | None, ...]) -> None:
        self.source, self.documents, self.origins = source, documents, origins
        self.objects: list[ManifestObject] = []
        self.strangers: list[Document] = []
        self.numbers = {id(document): number for number, document in enumerate(documents)}
        for document in documents:
            try:
                if self.name.endswith(NAMES) and not is_object(document.object):
                    # kustomize takes its own file without apiVersion and kind.
                    self.objects.append(ManifestObject({**DEFAULTS, **document.object}, document))
                    continue
                self.objects += list(objects((document,)))
                self.objects += in_template(document)
            except InputError:
                self.strangers.append(document)

    def take(self, made: MadeFile) -> None:
        """Adopt a changed version."""
        self._set(made.source, made.documents, made.origins)
        self.rounds = (*self.rounds, *made.rounds)

    def place(self, found: ManifestObject, path: Path) -> tuple[int, int, int]:
        """Line and column in the original for a path of an object, and the number of its document there."""
        origin = self.origins[self.numbers[id(found.document)]]
        if origin is None:
            return 1, 1, 0
        document = self.before[origin]
        position = document.key_position((*found.path, *path))
        return position.line, position.column, document.index

    def ignores(self, found: ManifestObject, code: str, path: Path) -> bool:
        """Whether a comment says that nothing is to be said or changed at a path of an object."""
        origin = self.origins[self.numbers[id(found.document)]]
        return origin is not None and self.ignored.covers(code, self.before[origin], (*found.path, *path))


class MadeFile(NamedTuple):
    """A file after some changes, made by the edits in ``rounds``; ``origins`` are those of the documents."""

    source: Source
    documents: tuple[Document, ...]
    origins: tuple[int | None, ...]
    rounds: tuple[tuple[Edit, ...], ...]
