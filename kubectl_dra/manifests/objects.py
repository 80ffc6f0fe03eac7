"""The Kubernetes objects of documents, including items of Lists, each with its place in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.api.releases import GROUP, LIFECYCLES
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.documents import Document, Skipped, each_document
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.workloads import SPECS, TEMPLATES, key_of
from kubectl_dra.text import edit_distance, nearest


class ManifestObject(NamedTuple):
    """An object with apiVersion and kind. ``path`` leads to it inside the document (for a List's item)."""

    object: dict[str, Any]
    document: Document
    path: FieldPath = ()

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
    return isinstance(raw, dict) and _text(raw.get("apiVersion")) and _text(raw.get("kind"))


ObjectKey = tuple[str, str, str]
"""Kind, namespace and name."""


def object_key(raw: Mapping[str, Any]) -> ObjectKey:
    """Kind, namespace and name of an object; missing parts are empty."""
    metadata = fields_at(raw, "metadata")
    return str(raw.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def title(raw: Mapping[str, Any]) -> str:
    """Kind, namespace and name of an object."""
    metadata = fields_at(raw, "metadata")
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


def readable(source: Source) -> Iterator[Document]:
    """The documents of a text that can be read."""
    return (document for document in each_document(source) if isinstance(document, Document))


def _unpacked(raw: dict[str, Any], document: Document, path: FieldPath) -> Iterator[ManifestObject]:
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


def _wrong(document: Document, path: FieldPath, problem: str) -> FileError:
    place = document.key_position(path)
    return FileError(problem, document.name, place.line, place.column)


# Reads large YAML Lists item by item, so that the raw objects are never all in memory at once.

_YAML_ITEMS = re.compile(r"^items:[ \t]*\n(?=- )", re.MULTILINE)
# What ends a block sequence at the beginning of a line: anything but blanks, another item, or a comment.
_YAML_KEY = re.compile(r"^(?!- |-\n)[^ \n#]", re.MULTILINE)


class NotAList(Exception):
    """The text is not a single YAML List in block style. Nothing has been yielded yet, or the List broke off."""


def yaml_list(source: Source) -> tuple[dict[str, Any], Iterator[tuple[int, Any]]]:
    """The fields around the items of a YAML List in block style, and index and value of each item.

    ``kubectl get -o yaml`` and ``kubectl dra snapshot`` write such lists: in a block, only entries of
    ``items`` can begin with a dash at the start of a line. Items of a ``PodList`` get its apiVersion and
    kind.

    Raises:
        NotAList: not such a list, possibly found only after some items. The caller then rereads the whole text.
    """
    text = source.text
    begin = None if "\r" in text else _YAML_ITEMS.search(text)
    if begin is None:
        raise NotAList
    start = begin.end()
    behind = _YAML_KEY.search(text, start)
    end = len(text) if behind is None else behind.start()
    head = _yaml_object(Source(source.name, text[: begin.start()] + text[end:]))
    kind = head.get("kind")
    if "items" in head or not isinstance(kind, str) or not kind.endswith("List"):
        raise NotAList
    common = {"apiVersion": head.get("apiVersion"), "kind": kind.removesuffix("List")}
    return head, _yaml_items(source, start, end, common)


def _yaml_items(source: Source, start: int, end: int, common: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    text, index = source.text, 0
    while start < end:
        following = text.find("\n- ", start + 1, end) + 1 or end
        # With a blank in place of the dash the item is a document of its own.
        item = _yaml_object(Source(source.name, " " + text[start + 1 : following]))
        yield index, item if "kind" in item else {**common, **item}
        index, start = index + 1, following


def _yaml_object(source: Source) -> dict[str, Any]:
    documents = list(each_document(source))
    if len(documents) != 1 or isinstance(documents[0], Skipped):
        raise NotAList
    return documents[0].object


# The groups of Kubernetes' own kinds, and which other groups can only be mistakes.


BUILT_IN: Final = frozenset(
    f"{group}.k8s.io"
    for group in (
        *("admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization"),
        *("certificates", "coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver"),
        *("networking", "node", "rbac.authorization", "resource", "scheduling", "storage", "storagemigration"),
    )
)
"""Groups of Kubernetes itself that have a dot. A group without one is Kubernetes' own, too, or does not exist."""
OWN: Final[Mapping[str, str]] = {
    **{kind: group for group, kind in (*TEMPLATES, *SPECS) if "." not in group},
    **dict.fromkeys(("Namespace", "ResourceQuota"), ""),
    **{life.kind: GROUP for life in LIFECYCLES},
}
"""The group of each kind of Kubernetes' own that some rule is about."""
_KINDS_OF_GROUPS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset(
        (
            *("Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event", "LimitRange", "List", "Namespace"),
            *("Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController"),
            *("ResourceQuota", "Secret", "Service", "ServiceAccount", "Status"),
        )
    ),
    "apps": frozenset(("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")),
    "batch": frozenset(("CronJob", "Job")),
    GROUP: frozenset(life.kind for life in LIFECYCLES),
}
"""All kinds of the groups of Kubernetes that pods and their claims are in."""
_FORMER: Final = ("extensions",)
"""Groups that had kinds which others have now."""
_INSTEAD: Final = ("k8s.io", "resource.kubernetes.io")
"""Groups that do not exist and stand for resource.k8s.io."""
_NO_MISSPELLING: Final = ".x-k8s.io"
"""End of the groups of Kubernetes' own projects outside of its core."""
_LETTERS: Final = 2
"""So many letters of resource.k8s.io can be wrong: no registered group is as near."""


def shares_kind(group: str, kind: str) -> bool:
    """Whether an object has the kind of another group's: what holds for that kind does not hold for it."""
    return OWN.get(kind, group) != group


def right_group(group: str, kind: str) -> str | None:
    """The group that is meant; None if the group is right, or may have such a kind of its own."""
    right = OWN.get(kind)
    if right is None or group == right or group in _FORMER:
        return None
    if "." not in group or group in BUILT_IN:
        return right
    if right == GROUP and (group in _INSTEAD or _is_misspelt(group)):
        return right
    return None


def unknown_object(raw: Mapping[str, Any]) -> tuple[str, str] | None:
    """Of an object that no API server knows: its version with its kind, and what is meant, empty if nothing is like it.

    None of every other object: a group that is not Kubernetes' own may have any kind.
    """
    group, kind = key_of(raw)
    if kind.endswith("List"):
        return None
    own = f"{raw['apiVersion']} {kind}"
    if (right := right_group(group, kind)) is not None:
        return own, f"{right}/v1" if right else "v1"
    known = _KINDS_OF_GROUPS.get(group)
    if known is None or kind in known:
        return None
    near = nearest(kind, sorted(known), 1) or nearest(kind, sorted(set().union(*_KINDS_OF_GROUPS.values())), 1)
    return own, near[0] if near else ""


def may_make_pods(raw: Mapping[str, Any]) -> bool:
    """Whether an object of a kind that is not known has containers, so that its controller may make pods of them."""
    key = key_of(raw)
    if "." not in key[0] or key[0] in BUILT_IN or key in TEMPLATES or key in SPECS:
        return False
    return _has_containers(raw.get("spec"))


def _has_containers(value: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(value.get("containers"), list) or any(map(_has_containers, value.values()))
    return isinstance(value, list) and any(map(_has_containers, value))


def _is_misspelt(group: str) -> bool:
    return not group.endswith(_NO_MISSPELLING) and edit_distance(group.lower(), GROUP, _LETTERS) is not None
