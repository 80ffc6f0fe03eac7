"""JSON patches (RFC 6902) as texts: their operations, and what is left of them without some."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from textwrap import dedent
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change, Delete, EditRefused, Set
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.edits import with_changes
from kubectl_dra.manifests.source import Source, comments_of
from kubectl_dra.manifests.style import Style
from kubectl_dra.migrate.model import MigrationSettings
from kubectl_dra.migrate.new_objects import documents_of
from kubectl_dra.migrate.vendors.model import Resource

OPERATIONS: Final = "operations"
_AMOUNTS: Final = ("limits", "requests")
_STEERING: Final = frozenset((*_AMOUNTS, "nodeSelector", "affinity"))


class Rest(NamedTuple):
    """What is left of a patch. ``text`` is empty where that is nothing; ``comments`` are then those of the patch."""

    text: str
    comments: tuple[str, ...] = ()


def operations_of(text: str) -> Document:
    """A JSON patch, as the field ``operations`` of a document.

    Raises:
        FileError: it is not YAML.
        EditRefused: it is no list.
    """
    between = " " if text.lstrip().startswith("[") else "\n"
    document, *more = parse(Source("<patch>", f"{OPERATIONS}:{between}{text}"))
    if more or not isinstance(document.object.get(OPERATIONS), list):
        raise EditRefused("the patch is no list of operations")
    return document


def steps_of(pointer: object) -> tuple[str, ...]:
    """The steps of a JSON pointer (RFC 6901)."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in str(pointer).split("/")[1:])


def pointer_of(path: FieldPath) -> str:
    """A path as a JSON pointer."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def patch_text(operations: Sequence[Mapping[str, Any]]) -> str:
    """The text of a JSON patch as YAML."""
    return dedent(documents_of([{OPERATIONS: list(operations)}], Style()).partition("\n")[2])


def asking(document: Document, settings: MigrationSettings) -> dict[FieldPath, Resource]:
    """The paths in the document of what asks for resources that move to claims: operations, or keys in their values.

    Operations that test or remove such an amount are among them, as what they speak of is gone.
    """
    return {
        path: resource
        for index, operation in enumerate(document.object[OPERATIONS])
        if isinstance(operation, Mapping) and operation.get("op") in ("add", "replace", "remove", "test")
        for path, resource in _asking((OPERATIONS, index), operation, settings)
    }


def _asking(
    at: FieldPath, operation: Mapping[str, Any], settings: MigrationSettings
) -> Iterator[tuple[FieldPath, Resource]]:
    steps = steps_of(operation.get("path"))
    resource = _moving(steps[-1], settings) if len(steps) > 1 and steps[-2] in _AMOUNTS else None
    if resource is not None:
        yield at, resource
        return
    for path in _keys((*at, "value"), operation.get("value"), inside=bool(steps) and steps[-1] in _AMOUNTS):
        resource = _moving(str(path[-1]), settings)
        if resource is not None:
            yield (at if operation["op"] == "test" else path), resource


def _keys(path: FieldPath, value: Any, *, inside: bool) -> Iterator[FieldPath]:
    """The paths of the keys in limits and requests of a value; ``inside``: it is one of these."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            if inside:
                yield (*path, key)
            else:
                yield from _keys((*path, key), below, inside=key in _AMOUNTS)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _keys((*path, index), below, inside=False)


def _moving(name: str, settings: MigrationSettings) -> Resource | None:
    if not settings.catalogue.moves(name):
        return None
    resource = settings.catalogue.resource(name)
    return resource if resource is not None and resource.outcome not in ("ask", "refuse") else None


def without(document: Document, paths: Collection[FieldPath]) -> Rest:
    """What is left of a patch without some operations, or keys in their values.

    Raises:
        EditRefused: what would be left is uncertain.
    """
    operations = document.object[OPERATIONS]
    gone = set(paths)
    changes: list[Change] = []
    for path in sorted(paths, key=len, reverse=True):
        while len(path := path[:-1]) > len((OPERATIONS, 0, "value")):
            value = _at(document.object, path)
            if path[-1] not in (*_AMOUNTS, "resources") or not all((*path, key) in gone for key in value):
                break
            if _begun(operations, int(path[1]), path[3:]):
                gone -= {(*path, key) for key in value}
                changes.append(Set(path, {}))
                break
            gone.add(path)
    for index, operation in enumerate(operations):
        at: FieldPath = (OPERATIONS, index)
        value = operation.get("value") if isinstance(operation, Mapping) else None
        emptied = isinstance(value, Mapping) and value and all((*at, "value", key) in gone for key in value)
        if not emptied:
            continue
        gone = {path for path in gone if path[: len(at)] != at}
        last = steps_of(operation["path"])[-1]
        if operation["op"] == "add" and not _begun(operations, index):
            gone.add(at)
        elif operation["op"] == "replace" and last in _AMOUNTS and not _begun(operations, index):
            changes += [Set((*at, "op"), "remove"), Delete((*at, "value"))]
        else:
            changes.append(Set((*at, "value"), {}))
    changes += [Delete(path) for path in gone if not any(path[:length] in gone for length in range(1, len(path)))]
    return _rest(document, changes)


def _at(value: Any, path: FieldPath) -> Any:
    for part in path:
        value = value[part]
    return value


def _begun(operations: Sequence[Any], index: int, below: FieldPath = ()) -> bool:
    """Whether later operations are about parts of what an operation adds, or of a value ``below`` in that."""
    path = f"{operations[index]['path']}{pointer_of(below)}/"
    return any(str(operation.get("path", "")).startswith(path) for operation in operations[index + 1 :])


def _rest(document: Document, changes: Sequence[Change]) -> Rest:
    if all(Delete((OPERATIONS, index)) in changes for index in range(len(document.object[OPERATIONS]))):
        return Rest("", tuple(comments_of(document.source.text, [document.root])))
    text = with_changes((document,), {document.index: changes})
    return Rest(text.removeprefix(f"{OPERATIONS}:")[1:])


def saying(document: Document, paths: Collection[FieldPath]) -> list[FieldPath]:
    """The operations that set the values at some paths of what they patch, and the keys in their values that do."""
    pointed = {tuple(map(str, path)) for path in paths}
    out: list[FieldPath] = []
    for index, operation in enumerate(document.object[OPERATIONS]):
        if not isinstance(operation, Mapping) or operation.get("op") not in ("add", "replace"):
            continue
        steps = steps_of(operation.get("path"))
        for path in pointed:
            if path == steps:
                out.append((OPERATIONS, index))
            elif path[: len(steps)] == steps:
                below: Any = operation.get("value")
                for key in path[len(steps) :]:
                    below = below.get(key) if isinstance(below, Mapping) else None
                if below is not None:
                    out.append((OPERATIONS, index, "value", *path[len(steps) :]))
    return out


def on_less(text: str, has: Callable[[tuple[str, ...]], bool]) -> str:
    """The patch for pods that have lost limits, requests or labels: nothing removes, tests or replaces what they do not
    have in the end, and what they do have is added. Empty where nothing is left.

    ``has``: whether what is patched has a value at a path when all is done.

    Raises:
        FileError, EditRefused: as ``operations_of``.
    """
    document = operations_of(text)
    changes: list[Change] = []
    for index, operation in enumerate(document.object[OPERATIONS]):
        steps = steps_of(operation.get("path")) if isinstance(operation, Mapping) else ()
        if not steps or operation.get("op") not in ("remove", "test", "replace") or not _STEERING.intersection(steps):
            continue
        if not has(steps):
            changes.append(Delete((OPERATIONS, index)))
        elif operation["op"] == "replace":
            changes.append(Set((OPERATIONS, index, "op"), "add"))
    return _rest(document, changes).text if changes else text
