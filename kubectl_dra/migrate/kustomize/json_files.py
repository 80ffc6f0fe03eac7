"""JSON patches in files: without what they ask of device plugins, as those in a kustomization itself are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

from kubectl_dra.api.fields import path_text
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import Clear, Delete, EditRefused, changed
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.edits import edits_of, verified
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.kustomization import Kustomization, kustomizations_above
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.engine import MigrationJob
from kubectl_dra.migrate.inline_patches import GONE, CommentsLeave, Without, operations_without
from kubectl_dra.migrate.kustomize.asking import patch_files
from kubectl_dra.migrate.kustomize.repair import read
from kubectl_dra.migrate.refusals import PATCH
from kubectl_dra.migrate.result import MigratedFile, Remark

_LEAD: Final = re.compile(r"\A(?:[ \t]*(?:#.*)?\r?\n)*---[ \t]*\r?\n")
"""What may stand above the patch: comments and the marker of a document."""


def without_json_patches(
    files: Mapping[str, MigratedFile], names: Mapping[str, str], job: MigrationJob
) -> dict[str, MigratedFile]:
    """The files (by absolute path) that change where JSON patches in files ask for devices.

    A patch of which nothing is left stays as an empty list, which no kustomization names any more. What the patched
    objects need instead is for the builds to show. ``files`` are those so far, ``names`` those of the run.
    """
    out: dict[str, MigratedFile] = {}
    for path, file in files.items():
        refused = next((item for item in file.items if item.code == PATCH), None)
        source = read(path) if path in names and file.text is None and refused is not None else None
        users = [one for one in kustomizations_above(path) if _entries(one, path)] if source is not None else []
        if source is None or refused is None or not users or any(one.path not in names for one in users):
            continue
        source = Source(file.name, source.text, source.encoding, source.bom)
        try:
            lead = _LEAD.match(source.text)
            start = lead.end() if lead is not None else 0
            left = operations_without(source.text[start:], job.settings)
            if left is None or (left.safety == "unsafe" and not job.unsafe):
                continue
            text = source.text[:start] + (left.text or _emptied(source.text, left))
            unnamed = {} if left.text else {one.path: _unnamed(one, path, {**files, **out}, names) for one in users}
        except CommentsLeave:
            out[path] = file._replace(items=tuple(item for item in file.items if item is not refused))
            continue
        except (FileError, EditRefused):
            continue
        gone = refused._replace(sort="change", code=GONE, message=left.reason, way_out="", safety=left.safety)
        out |= unnamed
        out[path] = MigratedFile(file.name, Rewritten(file.name, source.text, text, source), (gone,))
    return out


def _entries(one: Kustomization, path: str) -> list[tuple[str, int]]:
    """Where a kustomization names the file as a patch."""
    return [(str(patch.path[0]), int(patch.path[1])) for patch, found in patch_files(one) if found == path]


def _emptied(text: str, left: Without) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    return "".join(f"{line}{newline}" for line in (*left.comments, "[]"))


def _unnamed(
    one: Kustomization, path: str, files: Mapping[str, MigratedFile], names: Mapping[str, str]
) -> MigratedFile:
    """The file of a kustomization that no longer names a patch.

    Raises:
        EditRefused: it cannot be changed for certain.
    """
    old = files.get(one.path)
    name = names[one.path]
    before = old.text if old is not None and old.text is not None else None
    original = before.source if before is not None else one.document.source
    source = Source(name, before.after if before is not None else original.text, original.encoding, original.bom)
    document = parse(source)[0]
    changes: list[Delete | Clear] = []
    for field, listed in _listed(document.object):
        gone = [
            index
            for index, entry in enumerate(listed)
            if isinstance(entry, Mapping) and isinstance(word := entry.get("path"), str) and one.path_of(word) == path
        ]
        changes += [Clear((field,))] if gone and len(gone) == len(listed) else [Delete((field, at)) for at in gone]
    text = verified((document,), edits_of(document, changes), {document.index: changed(document.object, changes)})
    at = one.document.key_position(_entries(one, path)[0])
    message = f"nothing is left of the patch in {os.path.relpath(path, one.directory)}, which can be deleted"
    field = path_text(_entries(one, path)[0])
    said = Remark("change", GONE, name, at.line, at.column, "Kustomization", field, message)
    items = (*(old.items if old is not None else ()), said)
    return MigratedFile(name, Rewritten(name, original.text, text, original), items)


def _listed(raw: Mapping[str, object]) -> Iterator[tuple[str, list[object]]]:
    for field in ("patches", "patchesJson6902"):
        listed = raw.get(field)
        if isinstance(listed, list):
            yield field, listed
