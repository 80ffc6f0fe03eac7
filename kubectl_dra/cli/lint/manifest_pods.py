"""The pods and claims of manifests for the schedulers of both releases of an upgrade."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kubectl_dra.api.releases import GROUP
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.copies import Place
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import FileError, InputError
from kubectl_dra.lint.check_file import items_of
from kubectl_dra.lint.context import Item
from kubectl_dra.lint.upgrade import ObjectKey, WrittenAt
from kubectl_dra.manifests.documents import Document, Skipped, each
from kubectl_dra.manifests.inputs import Input, read
from kubectl_dra.manifests.kustomization import is_patch
from kubectl_dra.manifests.objects import is_object, objects
from kubectl_dra.manifests.source import decode
from kubectl_dra.manifests.workloads import pod_specs


class GivenManifests(NamedTuple):
    """The objects of manifests, where their pods, pod templates and claims are written, and what was left out."""

    objects: Snapshot
    places: Mapping[ObjectKey, WrittenAt]
    notes: tuple[str, ...]


def read_written(inputs: Iterable[Input], namespace: str) -> GivenManifests:
    """What inputs hold; objects without a namespace are put into this one. Each pod template becomes one pod.

    What lint itself reports as unreadable is passed over.
    """
    builder = SnapshotBuilder(namespace, workloads=True)
    places: dict[ObjectKey, WrittenAt] = {}
    notes: list[str] = []
    for file in inputs:
        try:
            source = decode(read(file), file.name)
            for document in each(source):
                if not isinstance(document, Skipped) and is_object(document.object) and not is_patch(document.name):
                    notes += _add(builder, document, namespace, places)
        except FileError:
            continue
    return GivenManifests(builder.build(complete=True), places, tuple(dict.fromkeys(notes)))


def _add(
    builder: SnapshotBuilder, document: Document, namespace: str, places: dict[ObjectKey, WrittenAt]
) -> Iterator[str]:
    """Adds the objects of a document, and says which pods and objects of resource.k8s.io cannot be."""
    place = Place(document.name, document.line)
    for manifest in objects((document,)):
        if manifest.kind != "Pod" and not any(pod_specs(manifest.object)):
            try:
                builder.add(manifest.object, place)
            except InputError as error:
                if manifest.api_version.startswith(GROUP):
                    yield f"not put to the schedulers: {error}"
    for item in items_of(document):
        space = item.namespace or namespace
        if item.kind == "ResourceClaim":
            places.setdefault((item.kind, space, item.name), item.place[:3])
        elif item.kind == "Pod":
            name = _name(item, space, places)
            try:
                builder.add({**item.raw, "metadata": {**item.metadata, "name": name}}, place)
                places[item.kind, space, name] = item.place[:3]
            except InputError as error:
                yield f"not put to the schedulers: {error}"


def _name(item: Item, space: str, places: Mapping[ObjectKey, WrittenAt]) -> str:
    """A name for a pod that no other pod of the manifests has; examples often share one."""
    base = item.name.rstrip("*").rstrip("-") or "pod"
    number, name = 1, base
    while ("Pod", space, name) in places:
        number, name = number + 1, f"{base}-{number + 1}"
    return name
