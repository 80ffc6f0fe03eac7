"""The objects of the texts around a place: what a name in a manifest refers to, and an outline of a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import FileError
from kubectl_dra.lint.context import items
from kubectl_dra.lsp.cursor import Cursor
from kubectl_dra.manifests.changes import items_at
from kubectl_dra.manifests.documents import Skipped, each_document
from kubectl_dra.manifests.objects import ManifestObject, object_key, objects
from kubectl_dra.manifests.source import Source, SourcePosition
from kubectl_dra.manifests.workloads import pod_specs

CLAIM_FIELDS: Final = {"resourceClaimTemplateName": "ResourceClaimTemplate", "resourceClaimName": "ResourceClaim"}
"""The kinds that an entry of a pod's ``resourceClaims`` names, by field."""
_BODIES: Final[dict[str, FieldPath]] = {
    "ResourceClaim": ("spec", "devices", "requests"),
    "ResourceClaimTemplate": ("spec", "spec", "devices", "requests"),
}


class NamedPlace(NamedTuple):
    """A name in a file: the text of it, and where it stands."""

    file: str
    name: str
    at: SourcePosition


class OutlineEntry(NamedTuple):
    """Something in a text that has a name: ``sort`` is a kind, request, claim or device; ``whole`` is its extent."""

    sort: str
    name: str
    whole: SourcePosition
    at: SourcePosition
    below: tuple[OutlineEntry, ...] = ()


def objects_of(source: Source) -> Iterator[ManifestObject]:
    """The objects of a text, without documents that cannot be read."""
    for document in each_document(source):
        if not isinstance(document, Skipped):
            try:
                yield from objects([document])
            except FileError:
                continue


def targets(cursor: Cursor, name: str, own: Source, others: Iterable[Source]) -> Sequence[NamedPlace]:
    """Where the thing stands that a value names: first in the text itself, then in the others."""
    return [place for place in _named(cursor, own, others) if place.name == name]


def names(cursor: Cursor, own: Source, others: Iterable[Source]) -> tuple[str, ...]:
    """The names that may stand at a place, of what is in the text itself and in the others."""
    return tuple(dict.fromkeys(place.name for place in _named(cursor, own, others)))


def _named(cursor: Cursor, own: Source, others: Iterable[Source]) -> Iterator[NamedPlace]:
    """Everything of the sort that a place names."""
    last, above = cursor.path[-1:], cursor.path[-3:-1]
    if last == ("deviceClassName",):
        yield from _objects_called("DeviceClass", "", (own, *others))
    elif last and last[0] in CLAIM_FIELDS:
        yield from _objects_called(CLAIM_FIELDS[last[0]], _namespace(cursor, own), (own, *others))
    elif last == ("requests",) and cursor.path[-2:-1] in (("constraints",), ("config",)):
        yield from (place for manifest in _around(cursor, own) for place in _requests(manifest))
    elif above == ("resources", "claims") and last == ("name",):
        yield from (place for manifest in _around(cursor, own) for place in _entries(manifest))
    elif above == ("resources", "claims") and last == ("request",):
        yield from _requests_of_pod(cursor, own, others)


def _around(cursor: Cursor, own: Source) -> Iterator[ManifestObject]:
    """The object in which the cursor stands."""
    for manifest in objects_of(own):
        if not manifest.path:
            root = manifest.document.root
            if root.start_mark.index <= cursor.word.start <= root.end_mark.index:
                yield manifest
        elif (at := manifest.document.position(manifest.path)).offset <= cursor.word.start <= at.end_offset:
            yield manifest


def _namespace(cursor: Cursor, own: Source) -> str:
    return next((object_key(manifest.object)[1] for manifest in _around(cursor, own)), "")


def _objects_called(kind: str, namespace: str, sources: Iterable[Source]) -> Iterator[NamedPlace]:
    """The objects of a kind; a namespace that one of the two does not say may be the same."""
    for source in sources:
        for manifest in objects_of(source):
            its = object_key(manifest.object)
            if its[0] == kind and its[2] and (its[1] == namespace or not its[1] or not namespace):
                yield NamedPlace(source.name, its[2], manifest.document.position((*manifest.path, "metadata", "name")))


def _requests(manifest: ManifestObject) -> Iterator[NamedPlace]:
    """The requests of a claim or template, and their alternatives as REQUEST/NAME."""
    path = _BODIES.get(manifest.kind)
    for index, request in enumerate(items(manifest.object, *path)) if path is not None else ():
        at, name = (*manifest.path, *(path or ()), index), str(request.get("name") or "")
        if name:
            yield NamedPlace(manifest.document.name, name, manifest.document.position((*at, "name")))
        for number, alternative in enumerate(items(request, "firstAvailable")):
            position = manifest.document.position((*at, "firstAvailable", number, "name"))
            yield NamedPlace(manifest.document.name, f"{name}/{alternative.get('name')}", position)


def _entries(manifest: ManifestObject) -> Iterator[NamedPlace]:
    """The entries of ``resourceClaims`` in the pods of an object."""
    for spec in pod_specs(manifest.object):
        for index, pod_claim in enumerate(items(spec.content, "resourceClaims")):
            at = (*manifest.path, *spec.path, "resourceClaims", index, "name")
            if pod_claim.get("name"):
                yield NamedPlace(manifest.document.name, str(pod_claim["name"]), manifest.document.position(at))


def _requests_of_pod(cursor: Cursor, own: Source, others: Iterable[Source]) -> Iterator[NamedPlace]:
    """The requests of all claims and templates that the pods of the object around the cursor name."""
    wanted = {
        (kind, pod_claim.get(field))
        for manifest in _around(cursor, own)
        for spec in pod_specs(manifest.object)
        for pod_claim in items(spec.content, "resourceClaims")
        for field, kind in CLAIM_FIELDS.items()
    }
    for source in (own, *others):
        for manifest in objects_of(source):
            if (manifest.kind, object_key(manifest.object)[2]) in wanted:
                yield from _requests(manifest)


def outline(source: Source) -> tuple[OutlineEntry, ...]:
    """The objects of a text with what they have: requests, claims of pods, devices."""
    return tuple(_entry(manifest) for manifest in objects_of(source))


def _entry(manifest: ManifestObject) -> OutlineEntry:
    document, (_, namespace, name) = manifest.document, object_key(manifest.object)
    devices = [
        NamedPlace("", str(device.get("name")), document.position((*manifest.path, "spec", "devices", index, "name")))
        for index, device in enumerate(items_at(manifest.object, "spec", "devices"))
        if isinstance(device, dict) and device.get("name")
    ]
    below = (("request", _requests(manifest)), ("claim", _entries(manifest)), ("device", devices))
    title = f"{namespace}/{name}" if namespace else name or manifest.kind
    named = document.nodes((*manifest.path, "metadata", "name")) is not None
    at = document.position((*manifest.path, *(("metadata", "name") if named else ("kind",))))
    parts = tuple(OutlineEntry(sort, place.name, place.at, place.at) for sort, places in below for place in places)
    return OutlineEntry(manifest.kind, title, document.position(manifest.path), at, parts)
