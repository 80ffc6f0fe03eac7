"""``migrate --reverse``: from the claims that migrate made back to requests of device plugins, file by file."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import Change, Delete, EditRefused, Path, changed
from kubectl_dra.manifests.comments import comments_of
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.edits import Edit, edited, edits_of, reread
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.manifests.objects import ManifestObject, title
from kubectl_dra.manifests.places import Places
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate import refusals
from kubectl_dra.migrate.engine import MigrationJob
from kubectl_dra.migrate.file import File
from kubectl_dra.migrate.readable import check_readable, source_of
from kubectl_dra.migrate.result import MigratedFile, MigrationReport, Remark, Sort
from kubectl_dra.migrate.reverse.pages import REMOVED, STILL_USED
from kubectl_dra.migrate.reverse.plan import Key, Reversal, key_of, plan, references

_WAY_OUT: Final = "change it by hand, or take the manifest from before out of version control"


def reverse(inputs: Sequence[Input], job: MigrationJob) -> MigrationReport:
    """Plans the way back of all inputs; writes nothing.

    Raises:
        InputError: a file that was named cannot be read, or none of all.
    """
    notes: list[str] = []
    closed: list[MigratedFile] = []
    files = [file for found in inputs if (file := _opened(found, notes, closed)) is not None]
    if not files:
        check_readable(inputs, notes)
    world: dict[Key, Mapping[str, Any]] = {}
    for file in files:
        for one in file.objects:
            world.setdefault(key_of(one.object), one.object)
    runs = [_Run(file, job, world) for file in files]
    left = {key for run in runs for key in run.still_needed}
    freed = {key for run in runs for key in run.freed} - left
    results = (*closed, *(run.result(freed) for run in runs))
    return MigrationReport(
        tuple(result for result in results if result.items or result.changed),
        len(inputs),
        sum(len(file.objects) for file in files),
        replace(job.settings, reverse=True),
        job.unsafe,
        tuple(notes),
    )


def _opened(found: Input, notes: list[str], closed: list[MigratedFile]) -> File | None:
    source = source_of(found, notes, closed)
    if source is None:
        return None
    if "resource.k8s.io" not in source.text and "resourceClaims" not in source.text:
        return None
    try:
        return File(source, parse(source))
    except InputError as error:
        notes.append(str(error))
        return None


class _Run:
    """One file: what goes back in it, and what of it is needed still.

    ``freed`` are the claims and templates that its workloads need no more, ``still_needed`` those that they need.
    """

    def __init__(self, file: File, job: MigrationJob, world: dict[Key, Mapping[str, Any]]) -> None:
        self._file = file
        self._job = job
        self.freed: set[Key] = set()
        self.still_needed: set[Key] = set()
        self._items: list[Remark] = []
        self._wants: list[tuple[ManifestObject, list[Change], list[Remark]]] = []
        # Copies of a workload, as overlays have them, have claims of the same name each in its own file.
        around = ChainMap({key_of(one.object): one.object for one in reversed(file.objects)}, world)
        for found in file.objects:
            self._plan(found, plan(found.object, around, job.settings))

    def _plan(self, found: ManifestObject, reversal: Reversal) -> None:
        planned = reversal.plan
        changes: list[Change] = []
        said: list[Remark] = []
        for step in planned.steps:
            offered = step.safety == "unsafe" and not self._job.unsafe
            item = self._item(found, "offer" if offered else "change", step.code, step.path, step.reason)
            item = item._replace(safety=step.safety)
            if offered:
                self._items.append(item)
                continue
            # The last step has all that the ones before it change.
            changes = [*changes, *(change for change in step.changes if change not in changes)]
            said.append(item)
        for refusal in planned.refusals:
            item = self._item(found, "refusal", refusal.code, refusal.path, refusal.message)
            self._items.append(item._replace(way_out=refusal.way_out))
        if changes and self._fits(found, changes):
            said += [self._item(found, "note", note.code, note.path, note.message) for note in planned.notes]
            self._wants.append((found, [_below(change, found.path) for change in changes], said))
            self.freed.update(reversal.freed)
            self.still_needed.update(key for key in references(found.object) if key not in reversal.freed)
        else:
            self.still_needed.update(references(found.object))

    def _fits(self, found: ManifestObject, changes: Sequence[Change]) -> bool:
        """Whether the changes can be made in the text; if not, that is said."""
        try:
            self._made([(found, [_below(change, found.path) for change in changes])], ())
            return True
        except EditRefused as refused:
            item = self._item(found, "refusal", refusals.NO_EDIT, (), f"left as it is: {refused}")
            self._items.append(item._replace(way_out=_WAY_OUT))
            return False

    def result(self, freed: set[Key]) -> MigratedFile:
        """The file with everything made, and without the claims and templates that are ``freed``."""
        gone: list[ManifestObject] = []
        for found in self._file.objects:
            if key_of(found.object) in freed and found.object.get("apiVersion", "").startswith("resource.k8s.io/"):
                self._remove(found, gone)
        wants = [(found, changes) for found, changes, _ in self._wants]
        text, rounds = self._made(wants, gone)
        items = [*self._items, *(item for _, _, said in self._wants for item in said)]
        items.sort(key=lambda item: (item.document, item.line, item.column, item.code))
        source = self._file.source
        return MigratedFile(
            self._file.name, Rewritten(self._file.name, source.text, text, source), tuple(items), rounds
        )

    def _remove(self, found: ManifestObject, gone: list[ManifestObject]) -> None:
        name = title(found.object)
        try:
            self._made([(one, changes) for one, changes, _ in self._wants], [*gone, found])
        except EditRefused as refused:
            message = f"{name} stays, though nothing here needs it: {refused}"
            self._items.append(self._item(found, "note", STILL_USED, (), message))
            return
        gone.append(found)
        message = "nothing among these files needs it any more; in the cluster it goes after its last pod"
        self._items.append(self._item(found, "change", REMOVED, (), message))

    def _made(
        self, wants: Sequence[tuple[ManifestObject, list[Change]]], gone: Sequence[ManifestObject]
    ) -> tuple[str, tuple[tuple[Edit, ...], ...]]:
        """The text with the changes made and the objects gone, and the rounds of edits that lead to it.

        Raises:
            EditRefused: that is not certain.
        """
        file = self._file
        edits: list[Edit] = []
        expected: list[Any] = []
        removed = [one.document for one in gone if not one.path]
        for document in file.documents:
            if document in removed:
                continue
            changes = [change for found, those in wants if found.document is document for change in those]
            changes += [Delete(one.path) for one in gone if one.path and one.document is document]
            try:
                edits += edits_of(document, changes) if changes else []
                expected.append(changed(document.object, changes))
            except (KeyError, IndexError, TypeError, ValueError) as error:
                raise EditRefused(f"the change does not fit what is there ({type(error).__name__})") from None
        edits += _without(file.documents, removed)
        text = edited(file.source.text, edits)
        rounds = [tuple(edits)] if edits else []
        if removed and text and text[-1] in "\r\n" and file.source.text[-1] not in "\r\n":
            # The text had no final line break, and has none after.
            last = Edit(len(text) - (2 if text.endswith("\r\n") else 1), len(text), "")
            rounds.append((last,))
            text = edited(text, [last])
        if expected:
            documents = reread(file.source, text, expected)
        else:
            documents = ()
            if text.strip():
                raise EditRefused("something stands beside it")
        self._keeps_comments(text, documents)
        return text, tuple(rounds)

    def _keeps_comments(self, text: str, documents: Sequence[Document]) -> None:
        if "#" not in self._file.source.text:
            return
        left = comments_of(text, [document.root for document in documents])
        for comment in comments_of(self._file.source.text, [document.root for document in self._file.documents]):
            if comment not in left:
                raise EditRefused("a comment would be lost")
            left.remove(comment)

    def _item(self, found: ManifestObject, sort: Sort, code: str, path: Path, message: str) -> Remark:
        from kubectl_dra.api.fields import path_text

        line, column, document = self._file.place(found, path)
        name, text = title(found.object), path_text(path)
        return Remark(
            sort, code, self._file.name, line, column, name, text, message, document=document, root=found.path
        )


def _below(change: Change, root: Path) -> Change:
    return replace(change, path=(*root, *change.path)) if root else change


def _without(documents: Sequence[Document], removed: Sequence[Document]) -> list[Edit]:
    """The edits that take documents out, each with the marker before it: as they were put behind others."""
    out: list[Edit] = []
    for document in removed:
        source = document.source
        start, end = _span(source, document, documents)
        out.append(Edit(start, end, ""))
    out.sort()
    merged: list[Edit] = []
    for edit in out:
        if merged and edit.start <= merged[-1].end:
            merged[-1] = Edit(merged[-1].start, max(edit.end, merged[-1].end), "")
        else:
            merged.append(edit)
    return merged


def _span(source: Source, document: Document, documents: Sequence[Document]) -> tuple[int, int]:
    """From the marker before a document to the one behind it, or the ends of the text.

    Raises:
        EditRefused: it is not in a place of its own, as where JSON holds it.
    """
    text = source.text
    places = Places(document)
    if places.style.json:
        raise EditRefused("JSON that is one object cannot be without it")
    start = places.line_start(document.root.start_mark.index)
    marker = text.rfind("\n---", 0, start)
    before = marker + 1 if marker >= 0 else 0 if text.startswith("---") else -1
    inside = any(other is not document and before <= other.root.start_mark.index < start for other in documents)
    if inside:
        raise EditRefused("it is not in a place of its own")
    following = [one.root.start_mark.index for one in documents if one.index > document.index]
    end = len(text)
    if following:
        behind = text.rfind("\n---", start, min(following))
        if behind < 0:
            raise EditRefused("it is not in a place of its own")
        end = behind + 1
    if before < 0:
        # The first document of a text that does not begin with a marker: the next one's goes.
        return 0, places.next_line(end) if following else end
    # What is behind its lines is not its own: comments there head what follows.
    return before, min(end, places.next_line(places.end(document.root)))
