"""Applies the wanted changes to a file and reads it again; one by one if they fail together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kubectl_dra.manifests.changes import Append, Change, Delete, EditRefused, Path, changed, value_at
from kubectl_dra.manifests.comments import comments_of
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.edits import Edit, edited, edits_of, reread
from kubectl_dra.manifests.objects import ObjectKey, is_object, object_key
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.style import is_json
from kubectl_dra.migrate import refusals
from kubectl_dra.migrate.file import File, MadeFile
from kubectl_dra.migrate.move_comments import Comments, moved_comments
from kubectl_dra.migrate.openshift import TEMPLATE_OBJECTS
from kubectl_dra.migrate.removal import without
from kubectl_dra.migrate.render import added_behind
from kubectl_dra.migrate.want import Want


class NoPlace(EditRefused):
    """The file has no place for a new object."""


class RepeatedKey(EditRefused):
    """A key occurs twice."""


class Settled(NamedTuple):
    """The resulting file, the wants that it includes, and the reason for each one that it does not."""

    made: MadeFile | None
    good: tuple[Want, ...]
    refused: tuple[tuple[Want, EditRefused], ...]


def settle(file: File, wants: Sequence[Want], apart: bool = False) -> Settled:
    """Apply as many wants as possible; with ``apart`` new objects do not go into the file.

    If all together fail, each half is tried, which finds few bad ones among many quickly.
    """
    result: MadeFile | None = None
    good: list[Want] = []
    refused: list[tuple[Want, EditRefused]] = []
    waiting = [list(wants)] if wants else []
    while waiting:
        part = waiting.pop()
        try:
            result = made(file, [*good, *part], apart)
            good += part
        except EditRefused as error:
            if len(part) == 1:
                refused.append((part[0], error))
            else:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
    return Settled(result, tuple(good), tuple(refused))


def code_of(refused: EditRefused) -> str:
    """The code for a want that cannot be applied."""
    if isinstance(refused, RepeatedKey):
        return refusals.REPEATED
    return refusals.NO_PLACE if isinstance(refused, NoPlace) else refusals.NO_EDIT


def made(file: File, wants: Sequence[Want], apart: bool = False) -> MadeFile:
    """The file with all wants applied; with ``apart`` new objects do not go into it.

    Raises:
        EditRefused: it cannot be made safely.
    """
    if "\r" in file.source.text and "\n" not in file.source.text:
        raise EditRefused("its lines end in carriage returns only; convert them to line feeds first")
    edits: list[Edit] = []
    expected: list[Any] = []
    origins: list[int | None] = []
    removed: list[Document] = []
    by_document: dict[int, list[Want]] = {}
    for want in wants:
        by_document.setdefault(id(want.found.document), []).append(want)
    added: set[ObjectKey] = set()
    for number, document in enumerate(file.documents):
        mine = by_document.get(id(document), [])
        if any(want.removes and not want.found.path for want in mine):
            removed.append(document)
            continue
        changes, behind = _in_document(document, mine, apart, added)
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
    edits += without(file.documents, removed)
    text = edited(file.source.text, edits)
    rounds = [tuple(edits)]
    if removed and text and text[-1] in "\r\n" and file.source.text[-1] not in "\r\n":
        # The text had no final line break, and has none after.
        last = Edit(len(text) - (2 if text.endswith("\r\n") else 1), len(text), "")
        rounds.append((last,))
        text = edited(text, [last])
    source = Source(file.name, text, file.source.encoding, file.source.bom)
    documents = reread(file.source, text, expected) if expected else _nothing(text)
    if "#" in file.source.text:
        _keeps_comments(file, text, documents)
        moves = _of_comments(file, documents, origins, by_document)
        if moves:
            rounds.append(tuple(moves))
            text = edited(text, moves)
            source = Source(file.name, text, file.source.encoding, file.source.bom)
            documents = reread(file.source, text, expected)
            _keeps_comments(file, text, documents)
    return MadeFile(source, documents, tuple(origins), tuple(rounds))


def _of_comments(
    file: File, documents: Sequence[Document], origins: Sequence[int | None], wants: Mapping[int, Sequence[Want]]
) -> list[Edit]:
    """The edits that take comments along to what they explain."""
    before = {file.origins[number]: document for number, document in enumerate(file.documents)}
    if not documents or not wants:
        return []
    comments = Comments(file.documents, documents)
    edits: list[Edit] = []
    for document, origin in zip(documents, origins, strict=True):
        old = before.get(origin) if origin is not None else None
        changes = [change for want in wants.get(id(old), ()) for change in want.changes] if old is not None else []
        edits += moved_comments(old, document, changes, comments) if old is not None and changes else []
    return edits


def _nothing(text: str) -> tuple[Document, ...]:
    """The documents of a text after all its objects are removed."""
    if text.strip():
        raise EditRefused("something stands beside it")
    return ()


def _keeps_comments(file: File, text: str, documents: Sequence[Document]) -> None:
    left = comments_of(text, [document.root for document in documents])
    for comment in comments_of(file.source.text, [document.root for document in file.documents]):
        if comment not in left:
            raise EditRefused("a comment would be lost")
        left.remove(comment)


def _in_document(
    document: Document, wants: Sequence[Want], apart: bool, added: set[ObjectKey]
) -> tuple[list[Change], list[Mapping[str, Any]]]:
    """The changes inside a document, and the objects to add after it; ``added`` are those of the file so far."""
    changes: list[Change] = []
    behind: list[Mapping[str, Any]] = []
    for want in wants:
        if want.removes:
            changes.append(Delete(want.found.path))
            continue
        changes += want.changes
        _check_list(document, want)
        if apart:
            continue
        for _, raw in want.objects:
            if object_key(raw) in added:
                continue
            added.add(object_key(raw))
            if _in_plain_list(document, want.found.path):
                changes.append(Append(want.found.path[:-1], raw))
            elif is_json(document.source.text, document.root):
                raise NoPlace("JSON that is one object cannot hold a second one")
            else:
                behind.append(raw)
    return changes, behind


def _in_plain_list(document: Document, path: Path) -> bool:
    """Whether the object at the path is in a List or template that accepts objects of all kinds."""
    around = value_at(document.object, path[:-2]) if path else None
    return isinstance(around, Mapping) and (around.get("kind") == "List" or path[-2] == TEMPLATE_OBJECTS)


def _check_list(document: Document, want: Want) -> None:
    """Refuse to write apiVersion and kind into items that inherit them from a typed list."""
    if want.found.path and not is_object(value_at(document.object, want.found.path)):
        raise EditRefused("items of a list of one kind have no apiVersion of their own: write kind: List")


def _check_keys(document: Document, want: Want) -> None:
    """Refuse to change an object with a duplicate key: its author may have meant the value that is ignored.

    Two that say the same are in the way only of a change of what they say.
    """
    pair = document.nodes(want.found.path)
    if not document.repeated or pair is None:
        return
    _check_ways(document, want)
    stack = [pair.value]
    while stack:
        node = stack.pop()
        if node.id == "sequence":
            stack.extend(node.value)
        elif node.id == "mapping":
            lines: dict[str, tuple[int, Any]] = {}
            for key, value in node.value:
                line = key.start_mark.line + 1
                if key.value != "<<" and key.value in lines:
                    before = lines[key.value]
                    if not _same(before[1], value):
                        raise RepeatedKey(f'the key "{key.value}" is there twice, in line {before[0]} and {line}')
                lines[key.value] = line, value
                stack.append(value)


def _check_ways(document: Document, want: Want) -> None:
    """Refuse to change what is there twice."""
    for change in want.changes:
        for length in range(len(change.path)):
            around = document.nodes(change.path[:length])
            if around is None or around.value.id != "mapping":
                continue
            lines = [key.start_mark.line + 1 for key, _ in around.value.value if key.value == change.path[length]]
            if len(lines) > 1:
                raise RepeatedKey(f'the key "{change.path[length]}" is there twice, in line {lines[0]} and {lines[1]}')


def _same(one: Any, other: Any) -> bool:
    """Whether two nodes are written as the same value."""
    if one.id != other.id or one.tag != other.tag:
        return False
    if one.id == "scalar":
        return bool(one.value == other.value and bool(one.style) == bool(other.style))
    if len(one.value) != len(other.value):
        return False
    if one.id == "sequence":
        return all(_same(left, right) for left, right in zip(one.value, other.value, strict=True))
    pairs = zip(one.value, other.value, strict=True)
    return all(_same(pair[0], twin[0]) and _same(pair[1], twin[1]) for pair, twin in pairs)
