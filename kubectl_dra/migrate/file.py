"""One file on its way: its text as it is now, what is wanted of its objects, and the text after that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kubectl_dra.api.conversion import from_v1
from kubectl_dra.api.fields import path_text
from kubectl_dra.api.versions import GROUP
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import Append, Change, EditRefused, Path, changed, value_at
from kubectl_dra.manifests.comments import comments_of
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.edits import Edit, edited, edits_of, reread
from kubectl_dra.manifests.objects import ManifestObject, is_object, objects, title
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.style import is_json
from kubectl_dra.migrate import refusals
from kubectl_dra.migrate.model import MigrationSettings, ObjectPlan
from kubectl_dra.migrate.openshift import TEMPLATE_OBJECTS, in_template
from kubectl_dra.migrate.render import added_behind
from kubectl_dra.migrate.result import Remark, Sort

_NO_PLACE = "JSON that is one object cannot hold a second one"
_WAYS_OUT = {
    refusals.NO_PLACE: "give new objects another file with --claims-file FILE, or make this one a List",
    refusals.REPEATED: "make one of the two, then run migrate again",
    refusals.NAME_TAKEN: "rename one of the two, then run migrate again",
    refusals.NO_EDIT: "change it by hand, or write the part out without anchors and comments in the middle; "
    "then run migrate again",
}


class _Repeated(EditRefused):
    """A key is there twice."""


class File:
    """A file: ``original`` as read, ``source`` as it is now with its ``documents`` and ``objects``.

    ``origins`` says of each document which of the original it is, None for those added. ``strangers`` are
    documents that are no Kubernetes objects.
    """

    def __init__(self, source: Source, documents: tuple[Document, ...]) -> None:
        self.name = source.name
        self.original = source
        self.before = documents
        self.items: list[Remark] = []
        self.edits: tuple[tuple[Edit, ...], ...] = ()
        self._set(source, documents, tuple(range(len(documents))))

    def _set(self, source: Source, documents: tuple[Document, ...], origins: tuple[int | None, ...]) -> None:
        self.source, self.documents, self.origins = source, documents, origins
        self.objects: list[ManifestObject] = []
        self.strangers: list[Document] = []
        self.numbers = {id(document): number for number, document in enumerate(documents)}
        for document in documents:
            try:
                self.objects += list(objects((document,)))
                self.objects += in_template(document)
            except InputError:
                self.strangers.append(document)

    def take(self, result: Made) -> None:
        """The file is now what was made of it."""
        self._set(result.source, result.documents, result.origins)
        self.edits = (*self.edits, result.edits)

    def place(self, found: ManifestObject, path: Path) -> tuple[int, int, int]:
        """Line and column in the original of a path of an object, and the number of its document there."""
        origin = self.origins[self.numbers[id(found.document)]]
        if origin is None:
            return 1, 1, 0
        document = self.before[origin]
        position = document.key_position((*found.path, *path))
        return position.line, position.column, document.index


class Made(NamedTuple):
    """A file after some changes."""

    source: Source
    documents: tuple[Document, ...]
    origins: tuple[int | None, ...]
    edits: tuple[Edit, ...]


class Want:
    """What is wanted of one object: ``changes`` with the paths of its document, new ``objects`` with what is said.

    ``told`` is said in any case, ``made`` if the changes are made.
    """

    def __init__(self, file: File, found: ManifestObject) -> None:
        self._file = file
        self.found = found
        self.owner: Mapping[str, Any] = found.object
        self.changes: list[Change] = []
        self.objects: list[tuple[Remark, Mapping[str, Any]]] = []
        self.told: list[Remark] = []
        self.made: list[Remark] = []

    @classmethod
    def of(cls, file: File, found: ManifestObject, plan: ObjectPlan, settings: MigrationSettings, unsafe: bool) -> Want:
        """What a plan wants; unsafe steps and objects only with ``unsafe``."""
        out = cls(file, found)
        for step in plan.steps:
            offered = step.safety == "unsafe" and not unsafe
            item = out.item("offer" if offered else "change", step.code, step.path, step.reason)._replace(
                safety=step.safety
            )
            (out.told if offered else out.made).append(item)
            if not offered:
                out.changes += [_at(change, found.path) for change in step.changes]
        for new in plan.objects:
            raw = _in_version(new.raw, settings.version)
            offered = new.safety == "unsafe" and not unsafe
            item = out.item("offer" if offered else "object", new.code, (), new.reason)._replace(
                safety=new.safety, new=title(raw)
            )
            if offered:
                out.told.append(item)
            else:
                out.objects.append((item, raw))
        for note in plan.notes:
            # Of an object that is left alone, what to know of its change is nothing to know.
            item = out.item("note", note.code, note.path, note.message)
            (out.made if out.changes or out.objects else out.told).append(item)
        for refusal in plan.refusals:
            item = out.item("refusal", refusal.code, refusal.path, refusal.message)
            out.told.append(item._replace(way_out=refusal.way_out))
        return out

    def item(self, sort: Sort, code: str, path: Path, message: str) -> Remark:
        """Something that is said of a path of the object."""
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
        """The whole of it is left alone."""
        place = next((item for item in self.made if item.sort == "change"), self.item("refusal", code, (), ""))
        return place._replace(
            sort="refusal", code=code, message=f"left as it is: {why}", way_out=_WAYS_OUT[code], safety="safe"
        )

    @staticmethod
    def code_of(refused: EditRefused) -> str:
        """The code of a refusal by its reason."""
        if isinstance(refused, _Repeated):
            return refusals.REPEATED
        return refusals.NO_PLACE if str(refused) == _NO_PLACE else refusals.NO_EDIT


def made(file: File, wants: Sequence[Want], apart: bool) -> Made:
    """The file with everything made that is wanted; with ``apart`` new objects do not go into it.

    Raises:
        EditRefused: it cannot be made for certain.
    """
    if "\r" in file.source.text and "\n" not in file.source.text:
        raise EditRefused("its lines end with a carriage return only; make that line feeds first")
    edits: list[Edit] = []
    expected: list[Any] = []
    origins: list[int | None] = []
    for number, document in enumerate(file.documents):
        mine = [want for want in wants if want.found.document is document]
        changes, behind = _in_document(document, mine, apart)
        if changes:
            for want in mine:
                _check_keys(document, want)
        try:
            edits += edits_of(document, changes)
            expected.append(changed(document.object, changes))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise EditRefused(f"the change does not fit what is there ({type(error).__name__})") from None
        origins.append(file.origins[number])
        if behind:
            edits.append(added_behind(document, behind))
            expected += behind
            origins += [None] * len(behind)
    text = edited(file.source.text, edits)
    source = Source(file.name, text, file.source.encoding, file.source.bom)
    documents = reread(file.source, text, expected)
    if "#" in file.source.text:
        _keeps_comments(file, text, documents)
    return Made(source, documents, tuple(origins), tuple(edits))


def _keeps_comments(file: File, text: str, documents: Sequence[Document]) -> None:
    left = comments_of(text, [document.root for document in documents])
    for comment in comments_of(file.source.text, [document.root for document in file.documents]):
        if comment not in left:
            raise EditRefused("a comment would be lost")
        left.remove(comment)


def _in_document(
    document: Document, wants: Sequence[Want], apart: bool
) -> tuple[list[Change], list[Mapping[str, Any]]]:
    """The changes inside a document, and the objects that go behind it."""
    changes: list[Change] = []
    behind: list[Mapping[str, Any]] = []
    for want in wants:
        changes += want.changes
        _check_list(document, want)
        if apart:
            continue
        for _, raw in want.objects:
            if _in_plain_list(document, want.found.path):
                changes.append(Append(want.found.path[:-1], raw))
            elif is_json(document.source.text, document.root):
                raise EditRefused(_NO_PLACE)
            else:
                behind.append(raw)
    return changes, behind


def _in_plain_list(document: Document, path: Path) -> bool:
    """Whether the object at the path is an item of a List, or of a template, that takes objects of all kinds."""
    around = value_at(document.object, path[:-2]) if path else None
    return isinstance(around, Mapping) and (around.get("kind") == "List" or path[-2] == TEMPLATE_OBJECTS)


def _check_list(document: Document, want: Want) -> None:
    """Refuses to write apiVersion and kind into items that have them from a list of their kind."""
    if want.found.path and not is_object(value_at(document.object, want.found.path)):
        raise EditRefused("items of a list of one kind have no apiVersion of their own: write kind: List")


def _check_keys(document: Document, want: Want) -> None:
    """Refuses to change an object in which a key is there twice: somebody meant the one that does not count."""
    pair = document.nodes(want.found.path)
    if not document.repeated or pair is None:
        return
    stack = [pair.value]
    while stack:
        node = stack.pop()
        if node.id == "sequence":
            stack.extend(node.value)
        elif node.id == "mapping":
            lines: dict[str, int] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                if key.value != "<<" and key.value in lines:
                    raise _Repeated(f'the key "{key.value}" is there twice, in line {lines[key.value]} and {line}')
                lines[key.value] = line
                stack.append(value)


def _at(change: Change, root: Path) -> Change:
    return replace(change, path=(*root, *change.path)) if root else change


def _in_version(raw: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """A new object in the API version that is asked for."""
    if raw.get("apiVersion") != f"{GROUP}/v1" or version == "v1":
        return raw
    return from_v1(raw, version)
