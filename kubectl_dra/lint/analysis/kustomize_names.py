"""Names that kustomize gave to objects, while those who refer to the objects kept the old ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kubectl_dra.api.releases import GROUP
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.analysis.claim_requests import alternatives
from kubectl_dra.lint.analysis.pod_claims import is_given, references, references_of
from kubectl_dra.lint.context import Context, Item, once
from kubectl_dra.manifests.changes import Path
from kubectl_dra.manifests.inputs import KUSTOMIZED

CLASS: Final = "DeviceClass"
_MAY_KEEP_NAME: Final = ("Namespace", CLASS)


class OldName(Struct, frozen=True):
    """A field that names an object as it was before the build. ``renamed`` is the object."""

    path: Path
    kind: str
    name: str
    renamed: Item


@once
def old_names(context: Context) -> tuple[OldName, ...]:
    """The references of a pod, claim or template to objects that the build has renamed."""
    return () if context.item.is_patch else tuple(_old_names(context))


def has_old_name(context: Context, kind: str, name: str) -> bool:
    """Whether the item names an object as it was before the build."""
    return any((found.kind, found.name) == (kind, name) for found in old_names(context))


def _old_names(context: Context) -> Iterator[OldName]:
    for path, kind, name in _missing(context):
        found = _renamed(context, kind, name)
        if found is not None:
            yield OldName(path, kind, name, found)


def _missing(context: Context) -> Iterator[tuple[Path, str, str]]:
    """The field, kind and name of what the item refers to and nobody has."""
    if context.item.kind == "Pod":
        for reference in references(context):
            if not is_given(context, reference.kind, reference.target, context.item.namespace):
                yield (*reference.path, reference.field), reference.kind, reference.target
        return
    for one in alternatives(context):
        name = one.content.get("deviceClassName")
        if not isinstance(name, str) or not name or catalogue().of_class(name) is not None:
            continue
        snapshot = context.snapshot
        if not context.world.classes(name) and (snapshot is None or name not in snapshot.classes):
            yield (*one.path, "deviceClassName"), CLASS, name


def _renamed(context: Context, kind: str, name: str) -> Item | None:
    """The object of the same build with the name between the prefix and suffix that the item itself has."""
    item = context.item
    inside = [other for other in context.world.of_kind(kind) if other.place.file == item.place.file]
    for other in sorted(inside, key=lambda one: len(one.name)):
        before, found, behind = other.name.partition(name)
        if not found or not (before or behind) or (kind != CLASS and other.namespace != item.namespace):
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
    for item in context.world.items:
        if item.place.file != renamed.place.file:
            continue
        if item.kind not in _MAY_KEEP_NAME and not _between(item.name, before, behind):
            return False
        if item.kind == "Pod" and any(reference.target == renamed.name for reference in references_of(item.raw)):
            return False
    return True


def field_spec(item: Item, path: Path) -> str:
    """How a kustomize configuration names a field of all objects of the item's kind."""
    holder = item.owner or item
    parts = [part for part in item.place.written(path)[len(holder.place.path) :] if isinstance(part, str)]
    if holder.group == GROUP and holder.version in ("v1alpha3", "v1beta1"):
        # There the request has itself what later stands in exactly.
        parts = [part for part in parts if part != "exactly"]
    group = f"group: {holder.group}, " if holder.group else ""
    return f"{{{group}kind: {holder.kind}, path: {'/'.join(parts)}}}"
