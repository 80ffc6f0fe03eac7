"""Labels in patches that choose devices: the claim of the overlay says it now, and the patch must not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import Change, Delete, changed, value_at
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.edits import edited, edits_of, reread
from kubectl_dra.manifests.kustomization import Kustomization, with_components
from kubectl_dra.manifests.objects import ManifestObject, objects
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.device_plugins.emptied import tidied
from kubectl_dra.migrate.kustomize.difference import BuildDifference
from kubectl_dra.migrate.kustomize.repair import Repaired, is_of, read

_FIELDS: Final = ("nodeSelector", "affinity")


def labels_taken_out(
    one: Kustomization, found: Sequence[BuildDifference], texts: Mapping[str, Source]
) -> Iterator[Repaired]:
    """Patches without the labels that the build has and should not have.

    ``texts`` are the changed files as they are now, by absolute path.

    Raises:
        EditRefused: a patch cannot be changed for certain.
    """
    surplus = [each for each in found if each.wanted is None and any(field in each.path for field in _FIELDS)]
    patches = {path for part in with_components(one) for path in part.patches} if surplus else set()
    for path in sorted(patches):
        source = texts.get(path) or read(path)
        documents = _documents(source) if source is not None else ()
        expected = [document.object for document in documents]
        edits = []
        for number, document in enumerate(documents):
            changes = [change for patch in objects((document,)) for change in _taken_out(patch, surplus)]
            if changes:
                edits += edits_of(document, changes)
                expected[number] = changed(document.object, changes)
        if source is not None and edits:
            text = edited(source.text, edits)
            reread(source, text, expected)
            yield Repaired(path, text, "labels")


def _taken_out(patch: ManifestObject, surplus: Sequence[BuildDifference]) -> Sequence[Change]:
    paths = [
        each.path
        for each in surplus
        if is_of(patch.object, each.object) and value_at(patch.object, each.path) == each.found
    ]
    made = tidied(patch.object, (Delete(path) for path in paths)) if paths else ()
    return [Delete((*patch.path, *change.path)) for change in made]


def _documents(source: Source) -> tuple[Document, ...]:
    """The documents of a patch; none of a JSON patch, which has no labels of its own."""
    try:
        return parse(source)
    except FileError:
        return ()
