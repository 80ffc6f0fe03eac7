"""Patches of a kustomization that ask device plugins for something, and where they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import value_at
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.kustomization import Kustomization, closure
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.inline_patches import FIELDS, GONE, InlinePatch, inline_patches
from kubectl_dra.migrate.kustomize.repair import read
from kubectl_dra.migrate.reading import asked_in, pointed
from kubectl_dra.migrate.refusals import Ignored
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue


class DevicePatch(NamedTuple):
    """A patch that asks, or asked, for ``resource`` in a line (from 1) of a file (an absolute path).

    ``stays``: it still does. ``ignored``: because of a comment. ``patch`` is as the kustomization has it; of a patch
    in a file its text is the file's.
    """

    file: str
    line: int
    resource: str
    stays: bool
    ignored: bool
    patch: InlinePatch


def device_patches(
    one: Kustomization, texts: Mapping[str, Source], catalogue: VendorCatalogue
) -> Iterator[DevicePatch]:
    """The patches of a kustomization and of all that it reads; ``texts`` are the changed files by absolute path."""
    for part in closure(one):
        now = parse(texts[part.path])[0].object if part.path in texts else part.document.object
        left = {patch.text for patch in inline_patches(now)}
        for patch in inline_patches(part.document.object):
            named = _named(patch.text, catalogue)
            if named is not None:
                line = part.document.position(patch.path).line
                node = part.document.nodes(patch.path)
                # The text of a block begins below its indicator.
                inside = named[0] if node is not None and node.value.style in ("|", ">") else 0
                ignored = Ignored(part.document.source, (part.document,)).covers(GONE, part.document, patch.path)
                ignored = ignored or _says_ignore(patch.text, named[0])
                yield DevicePatch(part.path, line + inside, named[1], patch.text in left, ignored, patch)
        files = {path: patch for patch, path in patch_files(part)}
        for path in sorted(part.files - {part.path}):
            source = read(path)
            # Transformers may have JSON patches, too.
            if source is None or not (path in files or pointed(source.text, catalogue)):
                continue
            named = _named(source.text, catalogue)
            if named is not None:
                patch = files.get(path, InlinePatch((), "", {}))._replace(text=source.text)
                stays = path not in texts or _named(texts[path].text, catalogue) is not None
                yield DevicePatch(path, named[0], named[1], stays, _says_ignore(source.text, named[0]), patch)


def patch_files(part: Kustomization) -> Iterator[tuple[InlinePatch, str]]:
    """The patches of a kustomization that are files: each as its entry has it, without text, and its absolute path."""
    for field in FIELDS:
        listed = part.document.object.get(field)
        for index, entry in enumerate(listed if isinstance(listed, list) else ()):
            word = entry if isinstance(entry, str) else value_at(entry, ("path",))
            path = part.path_of(word) if isinstance(word, str) else ""
            if path in part.files:
                target: Any = value_at(entry, ("target",))
                yield InlinePatch((field, index), "", target if isinstance(target, Mapping) else {}), path


def _named(text: str, catalogue: VendorCatalogue) -> tuple[int, str] | None:
    """The first line of a text that asks for a resource, and its name."""
    source = Source("<patch>", text)
    return next(((source.place(at)[0], name) for at, name in asked_in(text, catalogue)), None)


def _says_ignore(text: str, line: int) -> bool:
    """Whether a comment of a text, on a line or above it, says to leave what it asks for."""
    source = Source("<patch>", text)
    try:
        documents = parse(source)
    except InputError:
        documents = ()
    return Ignored(source, documents).covers_lines(GONE, range(1, line + 1))
