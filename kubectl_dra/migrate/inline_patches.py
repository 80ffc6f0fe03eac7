"""Patches that stand in a kustomization itself: without what they ask of device plugins, as patches in files are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from textwrap import dedent
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import Change, Clear, Delete, EditRefused, Set, fields_at, items_at, value_at
from kubectl_dra.manifests.documents import Document, NotAnObject, parse
from kubectl_dra.manifests.edits import with_changes
from kubectl_dra.manifests.objects import objects
from kubectl_dra.manifests.source import Source, comments_of
from kubectl_dra.manifests.style import Style
from kubectl_dra.migrate.codes import PATCH, WAY_OUT_PATCH, Safety
from kubectl_dra.migrate.device_plugins.asks import ask_elsewhere, by_name
from kubectl_dra.migrate.device_plugins.pods import plan_patch, request_gone
from kubectl_dra.migrate.model import MigrationSettings, ObjectPlan, PlanRefusal, Step
from kubectl_dra.migrate.new_objects import documents_of
from kubectl_dra.migrate.reading import Ignored, asked_in, named_in
from kubectl_dra.migrate.vendors.model import Resource

FIELDS: Final = ("patches", "patchesStrategicMerge", "patchesJson6902")
TRANSFORMER: Final = "PatchTransformer"
"""What a list of ``transformers`` may name: one patch as an object of its own."""
_NOTHING: Final = '[{"op": "copy", "from": "/kind", "path": "/kind"}]'
"""A JSON patch that changes nothing; a transformer refuses one without operations."""
GONE: Final = "MIG109"
"""A patch that no longer asks for devices."""


class InlinePatch(NamedTuple):
    """A patch in a kustomization, ``text`` at ``path``. ``target`` says what it is for, if not the text itself does."""

    path: FieldPath
    text: str
    target: Mapping[str, Any]

    @property
    def entry(self) -> FieldPath:
        """The place of its entry in the list of patches."""
        return self.path[:2]


class CommentsLeave(Exception):
    """Comments in a patch say to leave it; the argument is their number."""


class Without(NamedTuple):
    """What is left of a patch: its text, empty for nothing; and why its requests may go.

    ``comments`` are those of a text of which nothing else is left.
    """

    text: str
    reason: str
    safety: Safety
    comments: tuple[str, ...] = ()


def inline_patches(raw: Mapping[str, Any]) -> Iterator[InlinePatch]:
    """The patches of a kustomization that are no files; of a transformer of patches its own."""
    if raw.get("kind") == TRANSFORMER and isinstance(raw.get("patch"), str):
        yield InlinePatch(("patch",), raw["patch"], fields_at(raw, "target"))
        return
    for field in FIELDS:
        for index, patch in enumerate(items_at(raw, field)):
            if isinstance(patch, str):
                yield InlinePatch((field, index), patch, {})
            elif isinstance(patch, Mapping) and isinstance(patch.get("patch"), str):
                yield InlinePatch((field, index, "patch"), patch["patch"], fields_at(patch, "target"))


def plan_inline(raw: Mapping[str, Any], around: Iterable[Mapping[str, Any]], settings: MigrationSettings) -> ObjectPlan:
    """Remove the requests of device plugins from the patches of a kustomization, and change nothing else.

    The build shows what the patched objects need instead.
    """
    steps: list[Step] = []
    refusals: list[PlanRefusal] = []
    remaining = 0
    for patch in inline_patches(raw):
        names = named_in(patch.text, settings.catalogue)
        if not names:
            continue
        try:
            remainder = _without_requests(patch, around, settings)
        except CommentsLeave as comments:
            remaining += comments.args[0]
            continue
        except (FileError, EditRefused):
            message = f"a patch names {', '.join(names)}"
            refusals.append(PlanRefusal(PATCH, patch.path, message, WAY_OUT_PATCH))
            continue
        if remainder is not None:
            text = remainder.text or (_NOTHING if raw.get("kind") == TRANSFORMER else "")
            change: Change = Set(patch.path, text) if text else Delete(patch.entry, remainder.comments)
            steps.append(Step(GONE, patch.path, remainder.reason, (change,), remainder.safety))
    return ObjectPlan(tuple(_whole_lists(raw, steps)), refusals=tuple(refusals), left=remaining)


def _whole_lists(raw: Mapping[str, Any], steps: Sequence[Step]) -> Iterator[Step]:
    """The steps. A list that loses all its patches stays as an empty one, which keeps its place for other patches."""
    yield from (step for step in steps if step.path[0] not in FIELDS)
    for field in FIELDS:
        mine = [step for step in steps if step.path[0] == field]
        gone = [change for step in mine for change in step.changes if isinstance(change, Delete)]
        if not gone or len(gone) < len(raw[field]):
            yield from mine
            continue
        safety: Safety = "unsafe" if any(step.safety == "unsafe" for step in mine) else "safe"
        cleared = Clear((field,), tuple(comment for change in gone for comment in change.comments))
        for step in mine:
            yield Step(step.code, step.path, step.reason, (cleared,) if step is mine[0] else (), safety)


def dropped(raw: Mapping[str, Any], entries: Sequence[FieldPath]) -> Iterator[Change]:
    """The changes that remove patches from a kustomization. A list that loses all keeps its place, as above."""
    for field in dict.fromkeys(patch[0] for patch in entries):
        mine = [patch for patch in entries if patch[0] == field]
        yield from [Clear((field,))] if len(mine) == len(raw[str(field)]) else [Delete(patch) for patch in mine]


def without_empty_lists(raw: Mapping[str, Any]) -> Iterator[Delete]:
    """The changes that remove lists of patches without any, as far as the kustomization has something else."""
    empty = [field for field in FIELDS if raw.get(field) == []]
    if raw.keys() <= {"apiVersion", "kind", *empty}:
        # Kustomize refuses a file that says nothing.
        empty = empty[1:]
    yield from (Delete((field,)) for field in empty)


def _without_requests(
    patch: InlinePatch, around: Iterable[Mapping[str, Any]], settings: MigrationSettings
) -> Without | None:
    """What is left of a patch; None if its requests stay.

    Raises:
        FileError: it is not YAML.
        EditRefused: what would be left is uncertain, or still names a resource.
        CommentsLeave: a comment says to leave it.
    """
    try:
        remainder = _merge_left(parse(Source("<patch>", patch.text)), around, settings)
    except NotAnObject:
        return operations_without(patch.text, settings)
    if remainder is not None and asked_in(remainder.text, settings.catalogue):
        raise EditRefused("something else of the patch names a resource")
    return remainder


def operations_without(text: str, settings: MigrationSettings) -> Without | None:
    """What is left of a JSON patch; None if its requests stay.

    Raises:
        FileError, EditRefused, CommentsLeave: as for other patches.
    """
    remainder = _operations_left(operations_of(text), settings)
    if remainder is not None and asked_in(remainder.text, settings.catalogue):
        raise EditRefused("something else of the patch names a resource")
    return remainder


def _check_comments(documents: Sequence[Document], places: Sequence[tuple[Document, FieldPath]]) -> None:
    """Raises CommentsLeave where comments of the patch itself cover what would go."""
    ignored = Ignored(documents[0].source, documents)
    for document, path in places:
        ignored.covers(GONE, document, path)
    if ignored.count:
        raise CommentsLeave(ignored.count)


def _operations_left(document: Document, settings: MigrationSettings) -> Without | None:
    places = asking(document, settings)
    moved = {resource.name: resource for resource in places.values()}
    if not places:
        if asked_in(document.source.text, settings.catalogue):
            raise EditRefused("no operation sets an amount")
        return None
    if by_name([ask_elsewhere((), resource) for resource in moved.values()], {}, settings):
        return None
    _check_comments((document,), [(document, _said_at(document, path)) for path in places])
    reason, safety = request_gone(moved)
    rest = without(document, places)
    return Without(rest.text, reason, safety, rest.comments)


def _said_at(document: Document, path: FieldPath) -> FieldPath:
    """The place of an operation, or of a key in its value, that comments may be about."""
    return (*path, "path") if len(path) == len((OPERATIONS, 0)) else path


def _merge_left(
    documents: Sequence[Document], around: Iterable[Mapping[str, Any]], settings: MigrationSettings
) -> Without | None:
    changes: dict[int, list[Change]] = {}
    places: list[tuple[Document, FieldPath]] = []
    steps: list[Step] = []
    for document in documents:
        deleted = changes.setdefault(document.index, [])
        for patched in objects((document,)):
            plan = plan_patch(patched.object, around, settings)
            if plan.refusals:
                raise EditRefused(plan.refusals[0].message)
            steps += plan.steps
            for step in plan.steps:
                places.append((document, (*patched.path, *step.path)))
                deleted += [Delete((*patched.path, *change.path)) for change in step.changes]
    if not steps:
        return None
    _check_comments(documents, places)
    text = with_changes(documents, changes)
    unsafe = any(step.safety == "unsafe" for step in steps)
    return Without(text, "; ".join(dict.fromkeys(step.reason for step in steps)), "unsafe" if unsafe else "safe")


# JSON patches (RFC 6902) as texts: their operations, and what is left of them without some.


OPERATIONS: Final = "operations"
_REQUESTS: Final = ("limits", "requests")
_STEERING: Final = frozenset((*_REQUESTS, "nodeSelector", "affinity"))


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
    resource = _moving(steps[-1], settings) if len(steps) > 1 and steps[-2] in _REQUESTS else None
    if resource is not None:
        yield at, resource
        return
    for path in _keys((*at, "value"), operation.get("value"), inside=bool(steps) and steps[-1] in _REQUESTS):
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
                yield from _keys((*path, key), below, inside=key in _REQUESTS)
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
            value = value_at(document.object, path)
            if path[-1] not in (*_REQUESTS, "resources") or not all((*path, key) in gone for key in value):
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
        elif operation["op"] == "replace" and last in _REQUESTS and not _begun(operations, index):
            changes += [Set((*at, "op"), "remove"), Delete((*at, "value"))]
        else:
            changes.append(Set((*at, "value"), {}))
    changes += [Delete(path) for path in gone if not any(path[:length] in gone for length in range(1, len(path)))]
    return _rest(document, changes)


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
