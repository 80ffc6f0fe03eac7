"""The Kubernetes objects of documents, including items of Lists, each with its place in the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.documents import Document, Path


class ManifestObject(NamedTuple):
    """An object with apiVersion and kind. ``path`` leads to it inside the document (for a List's item)."""

    object: dict[str, Any]
    document: Document
    path: Path = ()

    @property
    def api_version(self) -> str:
        return str(self.object["apiVersion"])

    @property
    def kind(self) -> str:
        return str(self.object["kind"])

    def place(self) -> str:
        """``FILE:LINE`` where the object begins; for an item of a List, also which one."""
        if not self.path:
            return f"{self.document.name}:{self.document.line}"
        index = self.path[-1]
        return f"{self.document.name}:{self.document.line} (item {index})"


def is_object(raw: Any) -> bool:
    """Whether it has the apiVersion and kind that every Kubernetes object has."""
    return (
        isinstance(raw, dict)
        and isinstance(raw.get("apiVersion"), str)
        and isinstance(raw.get("kind"), str)
        and bool(raw["apiVersion"])
        and bool(raw["kind"])
    )


ObjectKey = tuple[str, str, str]
"""Kind, namespace and name."""


def object_key(raw: Mapping[str, Any]) -> ObjectKey:
    """Kind, namespace and name of an object; missing parts are empty."""
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return str(raw.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def title(raw: Mapping[str, Any]) -> str:
    """Kind, namespace and name of an object."""
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = metadata.get("name") or f"{metadata.get('generateName') or ''}*"
    namespace = metadata.get("namespace")
    return f"{raw.get('kind')} {namespace}/{name}" if namespace else f"{raw.get('kind')} {name}"


def objects(documents: Iterable[Document]) -> Iterator[ManifestObject]:
    """Every object, in order. Items of a List of one kind (``PodList``) get its apiVersion and kind.

    Raises:
        FileError: a document that is not a Kubernetes object, or a List with such items.
    """
    for document in documents:
        if not is_object(document.object):
            missing = "apiVersion" if not _text(document.object.get("apiVersion")) else "kind"
            # kubectl writes the kind of a List behind its items.
            cut = "; it may be truncated: its items come last" if list(document.object)[-1:] == ["items"] else ""
            raise FileError(f"not a Kubernetes object: it has no {missing}{cut}", document.name, document.line)
        yield from _unpacked(document.object, document, ())


def _unpacked(raw: dict[str, Any], document: Document, path: Path) -> Iterator[ManifestObject]:
    kind, items = raw["kind"], raw.get("items")
    if not kind.endswith("List") or "items" not in raw or "spec" in raw:
        yield ManifestObject(raw, document, path)
        return
    if items is not None and not isinstance(items, list):
        raise _wrong(document, (*path, "items"), f"items of a {kind} must be a list")
    item_kind, api_version = kind.removesuffix("List"), raw["apiVersion"]
    for index, item in enumerate(items or ()):
        at = (*path, "items", index)
        if item_kind and isinstance(item, dict) and "kind" not in item:
            item = {"apiVersion": api_version, "kind": item_kind, **item}
        if not is_object(item):
            raise _wrong(document, at, f"item {index} of the {kind} has no apiVersion and kind")
        yield from _unpacked(item, document, at)


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _wrong(document: Document, path: Path, problem: str) -> FileError:
    place = document.key_position(path)
    return FileError(problem, document.name, place.line, place.column)
