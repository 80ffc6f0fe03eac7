"""What patches of an overlay say of devices, labels and namespaces, and what becomes of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.api.schema import FieldPath, path_text
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import (
    Append,
    Change,
    Delete,
    EditRefused,
    below,
    items_at,
    value_at,
)
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.edits import with_changes
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.kustomization import Kustomization, closure, kustomizations_above, with_components
from kubectl_dra.manifests.objects import ManifestObject, object_key, objects
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.codes import PATCH
from kubectl_dra.migrate.device_plugins.pods import tidied
from kubectl_dra.migrate.engine import MigrationJob
from kubectl_dra.migrate.inline_patches import (
    GONE,
    CommentsLeave,
    InlinePatch,
    Without,
    dropped,
    on_less,
    operations_of,
    operations_without,
    saying,
    without,
)
from kubectl_dra.migrate.kustomize.build_differences import (
    BuildDifference,
    Repaired,
    Texts,
    claims_in,
    document_of,
    documents_in,
    is_of,
    patch_files,
    read,
    rewritten,
)
from kubectl_dra.migrate.kustomize.layout import is_for
from kubectl_dra.migrate.model import MigratedFile, Remark

_FIELDS: Final = ("nodeSelector", "affinity")


def labels_taken_out(
    overlay: Kustomization, differences: Sequence[BuildDifference], texts: Texts
) -> Iterator[Repaired]:
    """Patches without the labels that the build has and should not have.

    Raises:
        EditRefused: a patch cannot be changed for certain.
    """
    surplus = [
        difference
        for difference in differences
        if difference.wanted is None and any(field in difference.path for field in _FIELDS)
    ]
    for part in with_components(overlay) if surplus else ():
        yield from rewritten(part, texts, "labels", lambda patch, source: _without(patch, source, surplus, overlay))


def _without(patch: InlinePatch, source: Source, surplus: Sequence[BuildDifference], overlay: Kustomization) -> str:
    """The text of a patch without the labels; empty if nothing is left of a JSON patch."""
    documents = documents_in(source)
    if not documents:
        paths = [difference.path for difference in surplus if is_for(patch, difference.object, overlay)]
        try:
            operations = operations_of(source.text)
            return without(operations, places).text if (places := saying(operations, paths)) else source.text
        except (FileError, EditRefused):
            return source.text
    changes = {
        document.index: [change for raw in objects((document,)) for change in _taken_out(patch, raw, surplus, overlay)]
        for document in documents
    }
    return with_changes(documents, changes) if any(changes.values()) else source.text


def _taken_out(
    patch: InlinePatch, raw: ManifestObject, surplus: Sequence[BuildDifference], overlay: Kustomization
) -> Sequence[Change]:
    paths = [
        difference.path
        for difference in surplus
        if value_at(raw.object, difference.path) == difference.found
        and (is_for(patch, difference.object, overlay) if patch.target else is_of(raw.object, difference.object))
    ]
    tidy = tidied(raw.object, (Delete(path) for path in paths)) if paths else ()
    return [Delete((*raw.path, *path)) for path in _with_emptied(raw.object, {change.path for change in tidy})]


def _with_emptied(raw: Mapping[str, Any], paths: set[FieldPath]) -> list[FieldPath]:
    """The paths to delete. A mapping that would be left empty goes as a whole: in a patch it says nothing."""
    gone = set(paths)
    waiting = list(paths)
    while waiting:
        above = waiting.pop()[:-1]
        value = value_at(raw, above) if above else None
        if isinstance(value, Mapping) and above not in gone and all((*above, key) in gone for key in value):
            gone -= {(*above, key) for key in value}
            gone.add(above)
            waiting.append(above)
    return sorted(gone, key=repr)


def fitted(overlay: Kustomization, wanted: Sequence[Mapping[str, Any]], texts: Texts) -> Iterator[Repaired]:
    """JSON patches that can be applied to what has lost requests and labels, which they may remove or replace.

    Raises:
        EditRefused: a kustomization cannot be changed for certain.
    """

    def fitting(patch: InlinePatch, source: Source) -> str:
        objects = [raw for raw in wanted if is_for(patch, object_key(raw), overlay)] if patch.target else []
        if not objects:
            return source.text
        try:
            return on_less(source.text, lambda steps: any(_has(raw, steps) for raw in objects))
        except (FileError, EditRefused):
            return source.text

    for part in closure(overlay):
        yield from rewritten(part, texts, "fits", fitting)


def _has(raw: Any, steps: Sequence[str]) -> bool:
    for step in steps:
        raw = below(raw, int(step) if isinstance(raw, list) and step.isdecimal() else step)
    return raw is not None


# Replacements that give workloads their namespace, and have to give it to the claims of these, too.

NAMESPACE: Final = "metadata.namespace"


def followed_namespaces(
    overlay: Kustomization,
    differences: Sequence[BuildDifference],
    built: Iterable[Mapping[str, Any]],
    texts: Texts,
) -> Iterator[Repaired]:
    """Kustomizations whose replacements of a workload's namespace select its claims as well.

    Raises:
        EditRefused: a kustomization cannot be changed safely.
    """
    keys = [object_key(raw) for raw in built]
    wanted: dict[tuple[str, str], None] = {}
    for difference in differences:
        if difference.claim is None or difference.found is not None:
            continue
        kind, space, name = difference.claim
        if any(key[0] == kind and key[1] != space and name in key[2] for key in keys):
            wanted[(difference.object[0], kind)] = None
    for part in closure(overlay) if wanted else ():
        if not _has_claims(part, texts):
            continue
        raw = document_of(part, texts)
        changes = [
            Append(("replacements", index, "targets"), {"select": {"kind": claim}, "fieldPaths": [NAMESPACE]})
            for workload, claim in wanted
            for index in _replaced(raw.object, workload, claim)
        ]
        if changes:
            yield Repaired(part.path, with_changes((raw,), {raw.index: changes}), "namespaces")


def _has_claims(part: Kustomization, texts: Texts) -> bool:
    """Whether new claims are among what the kustomization reads, or beside it in a file of its own."""
    parts = closure(part)
    return any(
        path in kustomization.files or os.path.dirname(path) == kustomization.directory  # noqa: PTH120
        for path, source in texts.items()
        for kustomization in parts
        if any(True for _ in claims_in(source))
    )


def _replaced(raw: Mapping[str, Any], workload: str, claim: str) -> Iterator[int]:
    """The replacements that write the namespace of a kind of workload, and not that of its claims."""
    for index, replacement in enumerate(items_at(raw, "replacements")):
        kinds = {
            str(select.get("kind"))
            for target in items_at(replacement, "targets")
            if isinstance(target, Mapping) and NAMESPACE in (target.get("fieldPaths") or ())
            if isinstance(select := target.get("select"), Mapping)
        }
        if workload in kinds and claim not in kinds:
            yield index


# JSON patches in files: without what they ask of device plugins, as those in a kustomization itself are.

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
        users = (
            [overlay for overlay in kustomizations_above(path) if _entries(overlay, path)] if source is not None else []
        )
        if source is None or refused is None or not users or any(overlay.path not in names for overlay in users):
            continue
        source = source.with_text(source.text, file.name)
        try:
            lead = _LEAD.match(source.text)
            start = lead.end() if lead is not None else 0
            remainder = operations_without(source.text[start:], job.settings)
            if remainder is None or (remainder.safety == "unsafe" and not job.unsafe):
                continue
            text = source.text[:start] + (remainder.text or _emptied(source.text, remainder))
            unnamed = (
                {}
                if remainder.text
                else {overlay.path: _unnamed(overlay, path, {**files, **out}, names) for overlay in users}
            )
        except CommentsLeave:
            out[path] = file._replace(items=tuple(item for item in file.items if item is not refused))
            continue
        except (FileError, EditRefused):
            continue
        gone = refused._replace(sort="change", code=GONE, message=remainder.reason, way_out="", safety=remainder.safety)
        out |= unnamed
        out[path] = MigratedFile(file.name, Rewritten(file.name, source.text, text, source), (gone,))
    return out


def _entries(overlay: Kustomization, path: str) -> list[tuple[str, int]]:
    """Where a kustomization names the file as a patch."""
    return [(str(patch.path[0]), int(patch.path[1])) for patch, file in patch_files(overlay) if file == path]


def _emptied(text: str, remainder: Without) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    return "".join(f"{line}{newline}" for line in (*remainder.comments, "[]"))


def _unnamed(
    overlay: Kustomization, path: str, files: Mapping[str, MigratedFile], names: Mapping[str, str]
) -> MigratedFile:
    """The file of a kustomization that no longer names a patch.

    Raises:
        EditRefused: it cannot be changed for certain.
    """
    old = files.get(overlay.path)
    name = names[overlay.path]
    before = old.text if old is not None and old.text is not None else None
    original = before.source if before is not None else overlay.document.source
    source = original.with_text(before.after if before is not None else original.text, name)
    document = parse(source)[0]
    gone: list[FieldPath] = [
        (field, index)
        for field in ("patches", "patchesJson6902")
        for index, patch in enumerate(items_at(document.object, field))
        if isinstance(word := value_at(patch, ("path",)), str) and overlay.path_of(word) == path
    ]
    text = with_changes((document,), {document.index: list(dropped(document.object, gone))})
    at = overlay.document.key_position(_entries(overlay, path)[0])
    message = f"nothing is left of the patch in {os.path.relpath(path, overlay.directory)}, which can be deleted"
    field = path_text(_entries(overlay, path)[0])
    said = Remark("change", GONE, name, at.line, at.column, "Kustomization", field, message)
    items = (*(old.items if old is not None else ()), said)
    return MigratedFile(name, Rewritten(name, original.text, text, original), items)
