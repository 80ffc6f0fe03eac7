"""The planned changes of one object, and what to report about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from kubectl_dra.api.schema import FieldPath, path_text
from kubectl_dra.manifests.changes import Change
from kubectl_dra.manifests.objects import ManifestObject, ObjectKey, object_key, title
from kubectl_dra.migrate import codes
from kubectl_dra.migrate.codes import Safety
from kubectl_dra.migrate.model import MigrationSettings, Note, ObjectPlan, Remark, Sort
from kubectl_dra.migrate.new_objects import in_version
from kubectl_dra.migrate.reading import File
from kubectl_dra.migrate.vendors.catalogue import is_extended

_WAYS_OUT = {
    codes.NO_PLACE: "give new objects another file with --claims-file FILE, or make this one a List",
    codes.REPEATED: "keep only one of the two, then run migrate again",
    codes.NAME_TAKEN: "rename one of the two, then run migrate again",
    codes.NO_EDIT: "change it by hand, or write the part out without anchors and comments in the middle; "
    "then run migrate again",
    codes.BUILD: "turn the overlay's patch of the claim into one of the limit by hand, then run migrate again",
}


class PlannedEdit:
    """What is planned for one object: ``changes`` with document paths, and new ``objects`` with their remarks.

    ``told`` is reported in any case, ``made`` only if the changes are made. ``offered`` are new objects that only
    --unsafe adds. With ``removes`` the object itself is removed. ``frees`` are the claims and templates that the
    object no longer needs then.
    """

    def __init__(self, file: File, manifest: ManifestObject) -> None:
        self._file = file
        self.found = manifest
        self.owner: Mapping[str, Any] = manifest.object
        self.changes: list[Change] = []
        self.objects: list[tuple[Remark, Mapping[str, Any]]] = []
        self.offered: list[Mapping[str, Any]] = []
        self.told: list[Remark] = []
        self.made: list[Remark] = []
        self.removes = False
        self.frees: tuple[ObjectKey, ...] = ()

    @classmethod
    def of(
        cls, file: File, manifest: ManifestObject, plan: ObjectPlan, settings: MigrationSettings, unsafe: bool
    ) -> PlannedEdit:
        """The edit of a plan; unsafe steps and objects only with ``unsafe``."""
        out = cls(file, manifest)
        plan = _not_ignored(file, manifest, plan)
        for step in plan.steps:
            offered = step.safety == "unsafe" and not unsafe
            item = out.item("offer" if offered else "change", step.code, step.path, step.reason)._replace(
                safety=step.safety, moved=step.moved
            )
            told = out.told if offered else out.made
            told.append(item)
            told += [out.note(note, offered) for note in step.notes]
            if not offered:
                out.changes += [_at(change, manifest.path) for change in step.changes]
        for new in plan.objects:
            raw = in_version(new.raw, settings.version)
            offered = new.safety == "unsafe" and not unsafe
            item = out.item("offer" if offered else "object", new.code, (), new.reason)._replace(
                safety=new.safety, new=title(raw), moved=new.moved
            )
            if offered:
                out.told.append(item)
                out.offered.append(raw)
            else:
                out.objects.append((item, raw))
        for note in plan.notes:
            # Of an object that is left alone, what to know of its change is nothing to know.
            changes = bool(out.changes or out.objects)
            (out.made if changes else out.told).append(out.note(note, offered=not changes))
        for refusal in plan.refusals:
            item = out.item("refusal", refusal.code, refusal.path, refusal.message)
            out.told.append(item._replace(way_out=refusal.way_out, stays=_resource(refusal.path)))
        return out

    def note(self, note: Note, offered: bool = False) -> Remark:
        """A note, or the change that it tells; of a step that is only ``offered`` it says what --unsafe would do."""
        if note.writes:
            safety: Safety = "unsafe" if offered else "safe"
            sort: Sort = "offer" if offered else "change"
            return self.item(sort, note.code, note.path, note.message)._replace(safety=safety)
        message = f"with --unsafe {note.message}" if note.done and offered else note.message
        return self.item("note", note.code, note.path, message)

    def item(self, sort: Sort, code: str, path: FieldPath, message: str) -> Remark:
        """A remark about a path of the object."""
        line, column, document = self._file.place(self.found, path)
        return Remark(
            sort,
            code,
            self._file.name,
            line,
            column,
            title(self.owner),
            path_text(path),
            message,
            document=document,
            root=self.found.path,
        )

    def refused(self, code: str, why: str) -> Remark:
        """The refusal of the whole edit."""
        place = next((item for item in self.made if item.sort == "change"), self.item("refusal", code, (), ""))
        return place._replace(
            sort="refusal", code=code, message=f"left as it is: {why}", way_out=_WAYS_OUT[code], safety="safe", moved=()
        )


def _resource(path: FieldPath) -> str:
    """The resource that a path leads to; empty if it leads to something else."""
    name = path[-1] if path[-2:-1] in (("limits",), ("requests",)) else ""
    return name if isinstance(name, str) and is_extended(name) else ""


def _not_ignored(file: File, manifest: ManifestObject, plan: ObjectPlan) -> ObjectPlan:
    """The plan without what comments of the file say to leave; where a step is, the object is not changed at all."""
    ignored = [file.ignores(manifest, step.code, step.path) for step in plan.steps]
    file.ignored.note_inside(plan.left)
    if any(ignored) or plan.left:
        file.left.add(object_key(manifest.object))
        plan = replace(plan, steps=(), objects=(), notes=())
    return replace(
        plan,
        steps=tuple(replace(step, notes=_notes_not_ignored(file, manifest, step.notes)) for step in plan.steps),
        objects=tuple(new for new in plan.objects if plan.steps or not file.ignores(manifest, new.code, ())),
        notes=_notes_not_ignored(file, manifest, plan.notes),
        refusals=tuple(refusal for refusal in plan.refusals if not file.ignores(manifest, refusal.code, refusal.path)),
    )


def _notes_not_ignored(file: File, manifest: ManifestObject, notes: Iterable[Note]) -> tuple[Note, ...]:
    return tuple(note for note in notes if not file.ignores(manifest, note.code, note.path))


def _at(change: Change, root: FieldPath) -> Change:
    return replace(change, path=(*root, *change.path)) if root else change
