"""What kustomize does to the objects of a build: lists that a patch replaced, and names that it changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.releases import GROUP
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.errors import InputError
from kubectl_dra.lint.analysis.claim_requests import alternatives, is_given, references, references_of
from kubectl_dra.lint.context import Context, Item, items, once, walked
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.inputs import KUSTOMIZED, Input, is_file, read
from kubectl_dra.manifests.kustomization import Kustomization, closure, kustomization_in
from kubectl_dra.manifests.objects import object_key, objects
from kubectl_dra.manifests.source import Source, decode


class ReplacedList(Struct, frozen=True):
    """The file of a patch that has a list without an entry, and the file of the base that has it with the entry."""

    field: str
    lost: str
    patch: str
    base: str

    @property
    def advice(self) -> str:
        """What to do."""
        return (
            f"{self.patch} replaces the whole list {self.field} of {self.base}, which has {self.lost}: kustomize does "
            "not merge this list by name. Repeat every entry in the patch, or change single ones by a JSON 6902 patch."
        )


def replaced_list(item: Item, field: str, lost: str) -> ReplacedList | None:
    """The patch that removed the entry ``lost`` from a list of a built object.

    ``field`` is the list's name, in whatever part of the object it stands. None if the item was not built by
    kustomize here, or another cause took the entry away.
    """
    place = (item.owner or item).place.file
    if not place.endswith(KUSTOMIZED):
        return None
    kustomization = kustomization_in(os.path.realpath(place.removesuffix(KUSTOMIZED) or "."))
    parts = [] if kustomization is None else closure(kustomization)
    patch = next((path for path, names in _patches(parts, item, field) if names and lost not in names), "")
    base = next((path for path, names in _bases(parts, item, field) if lost in names), "")
    return ReplacedList(field, lost, os.path.relpath(patch), os.path.relpath(base)) if patch and base else None


def _patches(parts: list[Kustomization], item: Item, field: str) -> Iterator[tuple[str, set[str]]]:
    """The file of each strategic merge patch of the item, and the names that the list has there."""
    for part in parts:
        raw = part.document.object
        for patch in (*items(raw, "patches"), *({"path": file} for file in raw.get("patchesStrategicMerge") or ())):
            text, path = patch.get("patch"), str(patch.get("path") or "")
            if isinstance(text, str) or "\n" in path:
                file, source = part.path, Source(part.path, text if isinstance(text, str) else path)
            else:
                file = part.path_of(path)
                source = _source(file) if file in part.files else Source(file, "")
            yield from ((file, names) for names in _lists(source, item, field, patch.get("target")))


def _bases(parts: list[Kustomization], item: Item, field: str) -> Iterator[tuple[str, set[str]]]:
    for part in parts:
        for file in sorted(part.files - part.patches - {part.path}):
            yield from ((file, names) for names in _lists(_source(file), item, field))


def _source(file: str) -> Source:
    try:
        return decode(read(Input(file, True)), file)
    except InputError:
        return Source(file, "")


def _lists(source: Source, item: Item, field: str, target: Any = None) -> Iterator[set[str]]:
    """The names in the list of each object that may have become the item, or is a patch of it.

    With ``target`` a patch's own kind and name do not count.
    """
    try:
        manifests = list(objects(parse(source)))
    except InputError:
        # A patch of another kind, or no manifest at all.
        return
    holder = item.owner or item
    for manifest in manifests:
        kind, _, name = object_key(manifest.object)
        if _is_for(target, holder) if isinstance(target, dict) else kind == holder.kind and _is_name(name, holder):
            lists = (value for path, value in walked(manifest.object) if path[-1] == field and isinstance(value, list))
            entries = (entry for entries in lists for entry in entries)
            yield {str(entry["name"]) for entry in entries if isinstance(entry, dict) and "name" in entry}


def _is_for(target: Mapping[str, Any], holder: Item) -> bool:
    kind, name = target.get("kind"), target.get("name")
    return kind in (None, "", holder.kind) and (not name or _is_name(str(name), holder))


def _is_name(pattern: str, holder: Item) -> bool:
    """Whether the object's name may come from this one, or from the pattern of a target, by prefix and suffix."""
    try:
        return bool(pattern) and re.search(pattern, holder.name) is not None
    except re.error:
        return False


# Names that kustomize gave to objects, while those who refer to the objects kept the old ones.

CLASS: Final = "DeviceClass"
_MAY_KEEP_NAME: Final = ("Namespace", CLASS)


class OldName(Struct, frozen=True):
    """A field that names an object as it was before the build. ``renamed`` is the object."""

    path: FieldPath
    kind: str
    name: str
    renamed: Item


@once
def old_names(context: Context) -> tuple[OldName, ...]:
    """The references of a pod, claim or template to objects that the build has renamed."""
    return () if context.item.is_patch else tuple(_old_names(context))


def has_old_name(context: Context, kind: str, name: str) -> bool:
    """Whether the item names an object as it was before the build."""
    return any((old_name.kind, old_name.name) == (kind, name) for old_name in old_names(context))


def _old_names(context: Context) -> Iterator[OldName]:
    for path, kind, name in _missing(context):
        item = _renamed(context, kind, name)
        if item is not None:
            yield OldName(path, kind, name, item)


def _missing(context: Context) -> Iterator[tuple[FieldPath, str, str]]:
    """Field, kind and name of each reference whose object does not exist."""
    if context.item.kind == "Pod":
        for reference in references(context):
            if not is_given(context, reference.kind, reference.target, context.item.namespace):
                yield (*reference.path, reference.field), reference.kind, reference.target
        return
    for alternative in alternatives(context):
        name, snapshot = alternative.device_class, context.snapshot
        if not name or catalogue().of_class(name) is not None or context.given.classes(name):
            continue
        if snapshot is None or name not in snapshot.classes:
            yield alternative.class_path, CLASS, name


def _renamed(context: Context, kind: str, name: str) -> Item | None:
    """The object of the same build with the name between the prefix and suffix that the item itself has."""
    item = context.item
    inside = [other for other in context.given.of_kind(kind) if other.place.file == item.place.file]
    for other in sorted(inside, key=lambda candidate: len(candidate.name)):
        before, middle, behind = other.name.partition(name)
        if not middle or not (before or behind) or (kind != CLASS and other.namespace != item.namespace):
            continue
        if _between(item.name, before, behind) and (
            item.place.file.endswith(KUSTOMIZED) or _looks_built(context, other, before, behind)
        ):
            return other
    return None


def _between(name: str, before: str, behind: str) -> bool:
    """Whether a name has the prefix and suffix, and something between them."""
    return name.startswith(before) and name.endswith(behind) and len(name) > len(before) + len(behind)


def _looks_built(context: Context, renamed: Item, before: str, behind: str) -> bool:
    """Whether a file that does not say so is what kustomize built: all its names have the prefix and suffix, which
    are words, and nobody uses the new name.
    """
    if (before and before[-1].isalnum()) or (behind and behind[0].isalnum()):
        return False
    for item in context.given.items:
        if item.place.file != renamed.place.file:
            continue
        if item.kind not in _MAY_KEEP_NAME and not _between(item.name, before, behind):
            return False
        if item.kind == "Pod" and any(reference.target == renamed.name for reference in references_of(item.raw)):
            return False
    return True


def field_spec(item: Item, path: FieldPath) -> str:
    """Field of all objects of the item's kind, as a kustomize configuration names it."""
    holder = item.owner or item
    parts = [part for part in item.place.written(path)[len(holder.place.path) :] if isinstance(part, str)]
    if holder.group == GROUP and holder.version in ("v1alpha3", "v1beta1"):
        # There the request has itself what later stands in exactly.
        parts = [part for part in parts if part != "exactly"]
    group = f"group: {holder.group}, " if holder.group else ""
    return f"{{{group}kind: {holder.kind}, path: {'/'.join(parts)}}}"


# Kustomizations among files that are checked without being built.


def unbuilt(directories: Iterable[str], checked: Iterable[str]) -> tuple[str, ...]:
    """The kustomizations of directories that take one of the files with checked objects, but no part of another."""
    wanted = {os.path.realpath(name) for name in checked if is_file(name)}
    found: dict[str, list[Kustomization]] = {}
    for directory in sorted(directories) if wanted else ():
        kustomization = kustomization_in(os.path.realpath(directory))
        if kustomization is not None and not kustomization.is_component:
            found[os.path.join(directory, os.path.basename(kustomization.path))] = closure(kustomization)  # noqa: PTH118, PTH119
    parts = {part.directory for below in found.values() for part in below[1:]}
    return tuple(
        name
        for name, below in found.items()
        if below[0].directory not in parts and any(not wanted.isdisjoint(part.files) for part in below)
    )
