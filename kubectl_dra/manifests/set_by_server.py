"""What a server and its controllers set in objects, as ``kubectl get -o yaml`` prints them: nothing to apply again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Delete, EditRefused, fields_at
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.edits import with_changes
from kubectl_dra.manifests.objects import objects

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which ``kubectl apply`` keeps the manifest."""
_METADATA: Final = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
    *("managedFields", "selfLink"),
)
_ANNOTATIONS: Final = (LAST_APPLIED, "deployment.kubernetes.io/revision")


def applicable(documents: Sequence[Document]) -> tuple[Document, ...]:
    """The documents of a file without these fields; as they are where their text does not allow it."""
    changes: dict[int, list[Delete]] = {}
    for item in objects(documents):
        changes.setdefault(item.document.index, []).extend(Delete((*item.path, *path)) for path in _set_in(item.object))
        if item.path and {*fields_at(item.document.object, "metadata")} == {"resourceVersion"}:
            # A List of kubectl has an empty one.
            changes[item.document.index].append(Delete(("metadata",)))
    changes = {index: list(dict.fromkeys(deletes)) for index, deletes in changes.items()}
    try:
        return parse(documents[0].source.with_text(with_changes(documents, changes))) if documents else ()
    except EditRefused:
        return tuple(documents)


def _set_in(raw: Mapping[str, Any]) -> Iterator[FieldPath]:
    """The paths of these fields in an object."""
    if "status" in raw:
        yield ("status",)
    metadata = fields_at(raw, "metadata")
    yield from (("metadata", name) for name in _METADATA if name in metadata)
    annotations = fields_at(metadata, "annotations")
    if annotations and all(name in _ANNOTATIONS for name in annotations):
        yield ("metadata", "annotations")
    else:
        yield from (("metadata", "annotations", name) for name in _ANNOTATIONS if name in annotations)
