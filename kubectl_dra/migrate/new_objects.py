"""New objects: their names, how they are written, and what makes two of them the same."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

from kubectl_dra.api.conversion import from_v1
from kubectl_dra.api.limits import MAX_LABEL
from kubectl_dra.api.releases import GROUP
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.command import is_name
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import EditRefused, fields_at, value_at
from kubectl_dra.manifests.documents import Document, NotAnObject, parse
from kubectl_dra.manifests.edits import Edit, edited
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.places import Places
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.manifests.style import Style, block, flow, is_json, json_text, key_flow
from kubectl_dra.migrate import codes
from kubectl_dra.migrate.model import MigratedFile, Remark
from kubectl_dra.migrate.vendors.model import Resource


def in_version(raw: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """A new object in the requested API version."""
    if raw.get("apiVersion") != f"{GROUP}/v1" or version == "v1":
        return raw
    return from_v1(raw, version)


def template_key(raw: Mapping[str, Any]) -> str:
    """What tells whether two ResourceClaimTemplates of one API version say the same."""
    return json.dumps(raw["spec"]["spec"], sort_keys=True)


# New objects as text in the style of the receiving file, and where they go.

_MARKER: Final = re.compile(r"^(---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)


def lines_of(raw: Mapping[str, Any], style: Style) -> list[str]:
    """The lines of an object as a block document."""
    return [line for key, value in raw.items() for line in block(key_flow(key, style), value, 0, style)]


def documents_of(objects: Sequence[Mapping[str, Any]], style: Style) -> str:
    """The text of a file that holds just the objects."""
    newline = style.newline
    return f"{newline}---{newline}".join(
        "".join(f"{line}{newline}" for line in lines_of(raw, style)).removesuffix(newline) for raw in objects
    ) + (newline if objects else "")


def json_list(objects: Sequence[Mapping[str, Any]]) -> str:
    """The objects as a JSON List."""
    return json_text({"apiVersion": "v1", "kind": "List", "items": list(objects)}, 2) + "\n"


def stands_alone(document: Document) -> bool:
    """Whether no document can be put beside it: it is JSON, in a text without the markers of YAML."""
    text = document.source.text
    return _MARKER.search(text) is None and is_json(text, document.root)


def added_behind(document: Document, objects: Sequence[Mapping[str, Any]]) -> Edit:
    """The edit that adds objects as documents of their own after a document.

    Raises:
        EditRefused: the document is JSON, which cannot have further documents.
    """
    places = Places(document)
    style = places.style
    if stands_alone(document):
        raise EditRefused("JSON has no further documents")
    text, newline = document.source.text, style.newline
    end = document.root.end_mark.index if document.root.flow_style else places.end(document.root)
    marker = _MARKER.search(text, places.line_end(end))
    at = len(text) if marker is None else marker.start()
    if not _ends_in_block(document.root):
        # Comments behind a blank line are about what follows, or about the file.
        at = min(at, places.next_line(places.behind_comments(end, 0)))
    parts = [[flow(raw, style)] if document.root.flow_style else lines_of(raw, style) for raw in objects]
    added = "".join(f"---{newline}" + "".join(f"{line}{newline}" for line in lines) for lines in parts)
    if at and text[at - 1] not in "\r\n":
        # The end of a text without a final line break, which it keeps.
        added = newline + added.removesuffix(newline)
    return Edit(at, at, added)


def _ends_in_block(node: Any) -> bool:
    """Whether a document ends in a block scalar, to which blank lines below it may belong."""
    while node.id != "scalar" and node.value:
        node = node.value[-1] if node.id == "sequence" else node.value[-1][1]
    return node.id == "scalar" and node.style in ("|", ">")


# ``--claims-file``: all new objects in one file, after its existing content.


def claims_file(
    name: str, objects: Sequence[tuple[Remark, Mapping[str, Any]]], files: Sequence[MigratedFile]
) -> MigratedFile:
    """The claims file with the objects appended. ``files`` may contain it with changes of its own.

    Raises:
        InputError: the file exists but cannot be read or extended.
    """
    own = next((file for file in files if os.path.normpath(file.name) == os.path.normpath(name)), None)
    if own is not None and own.text is not None:
        source, before = own.text.source, own.text.after
    else:
        source = _existing(name)
        before = source.text
    items, new = _distinct(name, objects)
    documents = _documents(source.with_text(before, name))
    edits: tuple[tuple[Edit, ...], ...] = () if own is None else own.edits
    if documents:
        if documents[-1].root.flow_style:
            raise InputError(f"{name}: --claims-file: new objects can only follow YAML in block style")
        edit = added_behind(documents[-1], new) if new else None
        after = before if edit is None else edited(before, [edit])
        edits = edits if edit is None else (*edits, (edit,))
    else:
        text = json_list(new) if name.lower().endswith(".json") else documents_of(new, Style())
        after = before + text
        edits = (*edits, (Edit(len(before), len(before), text),))
    earlier = () if own is None else own.items
    return MigratedFile(name, Rewritten(name, source.text, after, source), (*earlier, *items), edits)


def _existing(name: str) -> Source:
    try:
        return decode(Path(name).read_bytes(), name)
    except FileNotFoundError:
        return Source(name, "")
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from None


def _documents(source: Source) -> tuple[Document, ...]:
    try:
        return parse(source)
    except NotAnObject:
        if source.text.strip() and "#" not in source.text:
            raise
        return ()


def _distinct(
    name: str, objects: Sequence[tuple[Remark, Mapping[str, Any]]]
) -> tuple[list[Remark], list[Mapping[str, Any]]]:
    """Each object once. Of two different objects with the same name the second is refused."""
    items: list[Remark] = []
    by_name: dict[tuple[str, str], Mapping[str, Any]] = {}
    for item, raw in objects:
        key = (item.new, str(raw.get("apiVersion")).partition("/")[0])
        if key not in by_name:
            by_name[key] = raw
            items.append(item)
        elif by_name[key] != raw:
            message = f"{name} would hold two different objects {item.new}"
            way_out = "rename one of the workloads, or leave --claims-file out"
            items.append(item._replace(sort="refusal", code=codes.NAME_TAKEN, message=message, way_out=way_out))
    return items, list(by_name.values())


# Names for added objects: short, valid, the same on every run, and unused.


_DEVICES: Final = frozenset(("gpu", "npu", "tpu"))
# Steps of a path that say nothing about which of several templates it is.
_GENERAL: Final = frozenset(
    (
        "customComponentsPattern",
        "leaderWorkerPattern",
        "leaderWorkerTemplate",
        "patch",
        "replicatedJobs",
        "spec",
        "standalonePattern",
        "tasks",
        "template",
        "templateRef",
        "workerGroupSpecs",
    )
)
_NAMED_BY: Final = ("name", "groupName")


def short(resource: Resource, device_class: str = "") -> str:
    """One word for a device: the first label of its class, such as gpu for gpu.nvidia.com and for x-gpu."""
    label = as_label((device_class or resource.device_class).partition(".")[0]) or "device"
    last = label.rpartition("-")[2]
    return last if last in _DEVICES else label


def as_label(text: str) -> str:
    """A text as a DNS label: lower-case letters, digits and dashes; a long one ends in a checksum. May be empty."""
    label = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return shortened(label, MAX_LABEL)


def shortened(name: str, limit: int) -> str:
    """The name itself or, if too long, its beginning and a checksum of the whole."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9].rstrip('-.')}-{zlib.crc32(name.encode()):08x}"


def free(name: str, names: Container[str]) -> str:
    """The name, with the first number from 2 that makes it free if it is taken."""
    return next(candidate for candidate in _candidates(name) if candidate not in names)


def free_object(kind: str, namespace: str, name: str, *names: Container[tuple[str, str, str]]) -> str:
    """A free name for an object of a kind in a namespace; ``names`` holds kind, namespace and name."""
    return next(
        candidate
        for candidate in _candidates(name)
        if not any((kind, namespace, candidate) in taken for taken in names)
    )


def _candidates(name: str) -> Iterator[str]:
    name = shortened(name, MAX_LABEL)
    yield name
    for number in count(2):
        yield f"{shortened(name, MAX_LABEL - len(str(number)) - 1)}-{number}"


def named_in_space(name: str, namespace: str) -> dict[str, str]:
    """The metadata of a new object; without a namespace where none is said."""
    return {"name": name, **({"namespace": namespace} if namespace else {})}


def namespace_of(raw: Mapping[str, Any]) -> str:
    """The namespace of an object's pods; empty where it does not say."""
    target = value_at(raw, ("spec", "targetNamespace")) if raw.get("kind") == "HelmRelease" else None
    return str(target or value_at(raw, ("metadata", "namespace")) or "")


def workload_name(raw: Mapping[str, Any]) -> str | None:
    """The prefix for names of new objects; None if the object's own name is missing or invalid."""
    metadata = fields_at(raw, "metadata")
    name = metadata.get("name") or str(metadata.get("generateName") or "").rstrip("-.")
    return name if isinstance(name, str) and is_name(name) else None


def roles(raw: Mapping[str, Any], paths: Sequence[FieldPath]) -> tuple[str, ...]:
    """A distinguishing word for each pod spec of an object; empty if there is only one."""
    if len(paths) < 2:
        return ("",) * len(paths)
    shared = set.intersection(*(set(path) for path in paths))
    return tuple(_role(raw, path, shared) for path in paths)


def _role(raw: Mapping[str, Any], path: FieldPath, shared: Collection[str | int]) -> str:
    words: list[str] = []
    for length, step in enumerate(path, 1):
        if isinstance(step, int):
            item = value_at(raw, path[:length])
            word = next((item[key] for key in _NAMED_BY if key in item), step) if isinstance(item, Mapping) else step
            words.append(str(word))
        elif step not in shared and step not in _GENERAL:
            words.append(step.removesuffix("Template").removesuffix("GroupSpec").removesuffix("Spec"))
    return as_label("-".join(words))
