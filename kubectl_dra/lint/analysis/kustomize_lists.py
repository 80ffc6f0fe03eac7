"""Lists of the base that a patch of kustomize replaced: kustomize merges no lists of kinds that it does not know."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from kubectl_dra.errors import InputError
from kubectl_dra.lint.analysis.claim_requests import items
from kubectl_dra.lint.context import Item
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.inputs import KUSTOMIZED, Input, read
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
    """The patch because of which an object that was built has no entry named ``lost`` in a list.

    ``field`` is the list's name, in whatever part of the object it stands. None if the item was not built by
    kustomize here, or another cause took the entry away.
    """
    place = (item.owner or item).place.file
    if not place.endswith(KUSTOMIZED):
        return None
    one = kustomization_in(os.path.abspath(place.removesuffix(KUSTOMIZED) or "."))  # noqa: PTH100
    parts = [] if one is None else closure(one)
    patch = next((path for path, names in _patches(parts, item, field) if names and lost not in names), "")
    base = next((path for path, names in _bases(parts, item, field) if lost in names), "")
    return ReplacedList(field, lost, os.path.relpath(patch), os.path.relpath(base)) if patch and base else None


def _patches(parts: list[Kustomization], item: Item, field: str) -> Iterator[tuple[str, set[str]]]:
    """The file of each strategic merge patch of the item, and the names that the list has there."""
    for part in parts:
        raw = part.document.object
        for entry in (*items(raw, "patches"), *({"path": one} for one in raw.get("patchesStrategicMerge") or ())):
            text, path = entry.get("patch"), str(entry.get("path") or "")
            if isinstance(text, str) or "\n" in path:
                file, source = part.path, Source(part.path, text if isinstance(text, str) else path)
            else:
                file = part.path_of(path)
                source = _source(file) if file in part.files else Source(file, "")
            yield from ((file, names) for names in _lists(source, item, field, entry.get("target")))


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
        found = list(objects(parse(source)))
    except InputError:
        # A patch of another kind, or no manifest at all.
        return
    holder = item.owner or item
    for one in found:
        kind, _, name = object_key(one.object)
        if _is_for(target, holder) if isinstance(target, dict) else kind == holder.kind and _is_name(name, holder):
            yield set(_names(one.object, field))


def _is_for(target: Mapping[str, Any], holder: Item) -> bool:
    kind, name = target.get("kind"), target.get("name")
    return kind in (None, "", holder.kind) and (not name or _is_name(str(name), holder))


def _is_name(pattern: str, holder: Item) -> bool:
    """Whether the object's name may come from this one, or from the pattern of a target, by prefix and suffix."""
    try:
        return bool(pattern) and re.search(pattern, holder.name) is not None
    except re.error:
        return False


def _names(value: Any, field: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (str(entry["name"]) for entry in items(value, field) if "name" in entry)
        for below in value.values():
            yield from _names(below, field)
    elif isinstance(value, list):
        for below in value:
            yield from _names(below, field)
