"""Labels in patches that choose devices: the claim of the overlay says it now, and the patch must not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import Change, Delete, Set, changed, value_at
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.edits import Edit, edits_of, verified
from kubectl_dra.manifests.kustomization import Kustomization, with_components
from kubectl_dra.manifests.objects import ManifestObject, objects
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.device_plugins.emptied import tidied
from kubectl_dra.migrate.inline_patches import InlinePatch, inline_patches
from kubectl_dra.migrate.kustomize.asking import patch_files
from kubectl_dra.migrate.kustomize.difference import BuildDifference
from kubectl_dra.migrate.kustomize.repair import Repaired, is_of, read
from kubectl_dra.migrate.kustomize.targets import is_for

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
    for part in with_components(one) if surplus else ():
        for patch, path in patch_files(part):
            source = texts.get(path) or read(path)
            if source is not None and (text := _without(patch, source, surplus, one)) != source.text:
                yield Repaired(path, text, "labels")
        own = texts.get(part.path, part.document.source)
        document = parse(own)[0]
        changes = [
            Set(patch.path, text)
            for patch in inline_patches(document.object)
            if (text := _without(patch, Source(own.name, patch.text), surplus, one)) != patch.text
        ]
        if changes:
            text = verified((document,), edits_of(document, changes), {0: changed(document.object, changes)})
            yield Repaired(part.path, text, "labels")


def _without(patch: InlinePatch, source: Source, surplus: Sequence[BuildDifference], one: Kustomization) -> str:
    """The text of a patch without the labels."""
    documents = _documents(source)
    expected: dict[int, Any] = {}
    edits: list[Edit] = []
    for document in documents:
        changes = [change for raw in objects((document,)) for change in _taken_out(patch, raw, surplus, one)]
        if changes:
            edits += edits_of(document, changes)
            expected[document.index] = changed(document.object, changes)
    return verified(documents, edits, expected) if edits else source.text


def _taken_out(
    patch: InlinePatch, raw: ManifestObject, surplus: Sequence[BuildDifference], one: Kustomization
) -> Sequence[Change]:
    paths = [
        each.path
        for each in surplus
        if value_at(raw.object, each.path) == each.found
        and (is_for(patch, each.object, one) if patch.target else is_of(raw.object, each.object))
    ]
    made = tidied(raw.object, (Delete(path) for path in paths)) if paths else ()
    return [Delete((*raw.path, *change.path)) for change in made]


def _documents(source: Source) -> tuple[Document, ...]:
    """The documents of a patch; none of a JSON patch, which has no labels of its own."""
    try:
        return parse(source)
    except FileError:
        return ()
