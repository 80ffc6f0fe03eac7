"""Patches that stand in a kustomization itself: without what they ask of device plugins, as patches in files are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import Change, Clear, Delete, EditRefused, Set, fields_at, items_at
from kubectl_dra.manifests.documents import Document, NotAnObject, parse
from kubectl_dra.manifests.edits import with_changes
from kubectl_dra.manifests.objects import objects
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.codes import PATCH, WAY_OUT_PATCH, Safety
from kubectl_dra.migrate.device_plugins.asks import ask_elsewhere, by_name
from kubectl_dra.migrate.device_plugins.pods import plan_patch, request_gone
from kubectl_dra.migrate.json_patches import OPERATIONS, asking, operations_of, without
from kubectl_dra.migrate.model import MigrationSettings, ObjectPlan, PlanRefusal, Step
from kubectl_dra.migrate.reading import Ignored, asked_in, named_in

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


def plan_inline(raw: Mapping[str, Any], around: Sequence[Mapping[str, Any]], settings: MigrationSettings) -> ObjectPlan:
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
    patch: InlinePatch, around: Sequence[Mapping[str, Any]], settings: MigrationSettings
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
    documents: Sequence[Document], around: Sequence[Mapping[str, Any]], settings: MigrationSettings
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
