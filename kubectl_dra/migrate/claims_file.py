"""``--claims-file``: all new objects in one file, after its existing content."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import Document, NotAnObject, parse
from kubectl_dra.manifests.edits import Edit, edited
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.manifests.style import Style
from kubectl_dra.migrate import refusals
from kubectl_dra.migrate.render import added_behind, documents_of, json_list
from kubectl_dra.migrate.result import MigratedFile, Remark


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
    documents = _documents(Source(name, before, source.encoding, source.bom))
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
            items.append(item._replace(sort="refusal", code=refusals.NAME_TAKEN, message=message, way_out=way_out))
    return items, list(by_name.values())
