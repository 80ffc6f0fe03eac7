"""Applies the wanted changes to a file and reads it again; one by one if they fail together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.manifests.changes import Append, Change, Delete, EditRefused, changed, value_at
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.edits import Edit, edited, edits_of, reread
from kubectl_dra.manifests.objects import ObjectKey, is_object, object_key
from kubectl_dra.manifests.places import Places
from kubectl_dra.manifests.shared_parts import with_unread
from kubectl_dra.manifests.source import Source, comment_spans, comments_of
from kubectl_dra.migrate import codes
from kubectl_dra.migrate.new_objects import added_behind, stands_alone
from kubectl_dra.migrate.planned_edit import PlannedEdit
from kubectl_dra.migrate.reading import TEMPLATE_OBJECTS, File, MadeFile

# Removes documents from a text and keeps one marker between their neighbours.


def without(documents: Sequence[Document], removed: Sequence[Document]) -> list[Edit]:
    """The edits that remove documents, each with the marker before it: the reverse of appending them."""
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
    """From the marker before a document to the next one, or to the ends of the text.

    Raises:
        EditRefused: it is not a separate document, for example inside JSON.
    """
    text = source.text
    places = Places(document)
    if stands_alone(document):
        raise EditRefused("JSON that is one object cannot be without it")
    start = places.line_start(document.root.start_mark.index)
    marker = text.rfind("\n---", 0, start)
    before = marker + 1 if marker >= 0 else 0 if text.startswith("---") else -1
    inside = any(other is not document and before <= other.root.start_mark.index < start for other in documents)
    if inside:
        raise EditRefused("it is not in a place of its own")
    following = [other.root.start_mark.index for other in documents if other.index > document.index]
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


# Takes comments about a request along to the claim that takes its place.

_REQUESTS: Final = ("limits", "requests")
_LABELS: Final = "nodeSelector"
# An entry that someone switched off belongs where it stands.
_SWITCHED_OFF: Final = re.compile(r"#\s*(?:-\s+)?[\"']?[\w./-]+[\"']?:(?:\s+\S+)?\s*")


def _comments_now(before: Sequence[Document], after: Sequence[Document]) -> dict[int, tuple[int, int]]:
    """Where each comment is after a change, by where it began; empty if their order has changed."""
    old, new = before[0].source.text, after[0].source.text
    spans = comment_spans(old, [document.root for document in before])
    now = comment_spans(new, [document.root for document in after])
    alike = [old[a:b] for a, b in spans] == [new[a:b] for a, b in now]
    return {start: there for (start, _), there in zip(spans, now, strict=True)} if alike else {}


def _moved_comments(
    before: Document, after: Document, changes: Sequence[Change], comments: Mapping[int, tuple[int, int]]
) -> list[Edit]:
    """The edits of the text after ``changes`` that take comments of requests and labels to the new claims.

    What stands where it cannot be moved stays.
    """
    text = after.source.text
    places, now = Places(before), Places(after)
    edits: list[Edit] = []
    seen: set[int] = set()
    explained = sorted(_explained(before.object, changes), key=lambda pair: before.key_position(pair[0]).offset)
    for key, path in explained:
        claims = value_at(before.object, path)
        target = after.nodes((*path, len(claims)) if claims else path)
        if target is None:
            continue
        begin = (target.key or target.value).start_mark.index
        at = now.line_start(begin)
        indent = " " * (begin - at - len(text[at:begin].lstrip(" ")))
        lines = []
        for start in _about(places, key):
            there, end = comments.get(start, (-1, -1))
            # Only what has a line of its own now can be taken away without a trace.
            if start not in seen and there >= 0 and now.begins_line(there):
                seen.add(start)
                lines.append(f"{indent}{text[there:end]}{now.style.newline}")
                edits.append(Edit(now.line_start(there), now.next_line(there), ""))
        if lines:
            edits.append(Edit(at, at, "".join(lines)))
    return edits


def _explained(raw: object, changes: Sequence[Change]) -> Iterator[tuple[FieldPath, FieldPath]]:
    """The keys that go, each with the list of claims that says the same from now on."""
    lists = {change.path for change in changes if change.path[-1:] in (("claims",), ("resourceClaims",))}
    for change in changes:
        if not isinstance(change, Delete):
            continue
        path = change.path
        field = path[-1] if path[-1] in (*_REQUESTS, _LABELS) else path[-2] if len(path) > 1 else ""
        whole = field == path[-1]
        around = path[:-1] if whole else path[:-2]
        claims = (*around, "claims") if field in _REQUESTS else (*around, "resourceClaims") if field == _LABELS else ()
        if claims not in lists:
            continue
        value = value_at(raw, path)
        keys = [(*path, key) for key in value] if whole and isinstance(value, Mapping) else [path]
        yield from ((key, claims) for key in keys)


def _about(places: Places, path: FieldPath) -> Iterator[int]:
    """Where the comments begin that stand right above a key, beside it, or below it where nothing follows it."""
    pair, parent = places.document.nodes(path), places.document.nodes(path[:-1])
    if pair is None or pair.key is None or parent is None or parent.value.flow_style:
        return
    start = pair.key.start_mark.index
    if not places.begins_line(start):
        return
    above: list[int] = []
    line = places.line_start(start)
    while line:
        line = places.line_start(line - 1)
        comments = places.comments_in(line, places.line_end(line))
        if (
            not comments
            or not places.begins_line(comments[0][0])
            or places.column(comments[0][0]) != places.column(start)
        ):
            break
        if _SWITCHED_OFF.fullmatch(places.text[slice(*comments[0])]):
            break
        above.insert(0, comments[0][0])
    yield from above
    end = places.line_end(max(places.end(pair.value), pair.key.end_mark.index))
    yield from (begin for begin, _ in places.comments_in(start, end))
    if len(parent.value.value) == 1:
        below = places.behind_comments(end, places.column(start))
        yield from (begin for begin, _ in places.comments_in(end, below))


_ALONE: Final = "JSON that is one object cannot hold a second one"


class NoPlace(EditRefused):
    """The file has no place for a new object."""


class RepeatedKey(EditRefused):
    """A key occurs twice."""


class Settled(NamedTuple):
    """The resulting file, the wants that it includes, and the reason for each one that it does not."""

    made: MadeFile | None
    good: tuple[PlannedEdit, ...]
    refused: tuple[tuple[PlannedEdit, EditRefused], ...]


def settle(file: File, wants: Sequence[PlannedEdit], separate_claims: bool = False) -> Settled:
    """Apply as many wants as possible; with ``separate_claims`` new objects do not go into the file.

    If all together fail, each half is tried, which finds few bad ones among many quickly.
    """
    result: MadeFile | None = None
    good: list[PlannedEdit] = []
    placeless = set[PlannedEdit]() if separate_claims else _placeless(wants)
    refused: list[tuple[PlannedEdit, EditRefused]] = [(want, NoPlace(_ALONE)) for want in wants if want in placeless]
    placed = [want for want in wants if want not in placeless]
    waiting = [placed] if placed else []
    while waiting:
        part = waiting.pop()
        try:
            result = made(file, [*good, *part], separate_claims)
            good += part
        except EditRefused as error:
            if len(part) == 1:
                refused.append((part[0], error))
            else:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
    return Settled(result, tuple(good), tuple(refused))


def carry_out(file: File, wants: Sequence[PlannedEdit], separate_claims: bool = False) -> Sequence[PlannedEdit]:
    """Settle the wants of a file, which says what is refused. Returns those that were made."""
    settled = settle(file, wants, separate_claims)
    file.items += [want.refused(_code_of(refused), str(refused)) for want, refused in settled.refused]
    if settled.made is not None:
        file.take(settled.made)
    return settled.good


def _placeless(wants: Sequence[PlannedEdit]) -> set[PlannedEdit]:
    """Those whose new objects have no place. Tried one by one, long files of JSON objects would take minutes."""
    alone = ByIdentity[Document, bool]()
    without, placed = list[PlannedEdit](), set[ObjectKey]()
    for want in wants:
        in_list = _in_plain_list(want.found.document, want.found.path)
        if want.objects and not in_list and alone.of(want.found.document, stands_alone):
            without.append(want)
        else:
            placed.update(object_key(raw) for _, raw in want.objects)
    return {want for want in without if not placed.issuperset(object_key(raw) for _, raw in want.objects)}


def _code_of(refused: EditRefused) -> str:
    """The code for a want that cannot be applied."""
    if isinstance(refused, RepeatedKey):
        return codes.REPEATED
    return codes.NO_PLACE if isinstance(refused, NoPlace) else codes.NO_EDIT


def made(file: File, wants: Sequence[PlannedEdit], separate_claims: bool = False) -> MadeFile:
    """The file with all wants applied; with ``separate_claims`` new objects do not go into it.

    Raises:
        EditRefused: it cannot be made safely.
    """
    if "\r" in file.source.text and "\n" not in file.source.text:
        raise EditRefused("its lines end in carriage returns only; convert them to line feeds first")
    edits: list[Edit] = []
    expected: list[Any] = []
    origins: list[int | None] = []
    removed: list[Document] = []
    by_document = ByIdentity[Document, list[PlannedEdit]]()
    for want in wants:
        by_document.of(want.found.document, lambda _: []).append(want)
    added: set[ObjectKey] = set()
    for number, document in enumerate(file.documents):
        mine = by_document.get(document) or []
        if any(want.removes and not want.found.path for want in mine):
            removed.append(document)
            continue
        changes, behind = _in_document(document, mine, separate_claims, added)
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
    source = file.source.with_text(text)
    documents = reread(file.source, text, expected) if expected else _nothing(text)
    if "#" in file.source.text:
        _keeps_comments(file, text, documents)
        moves = _of_comments(file, documents, origins, by_document)
        if moves:
            rounds.append(tuple(moves))
            text = edited(text, moves)
            source = file.source.with_text(text)
            documents = reread(file.source, text, expected)
            _keeps_comments(file, text, documents)
    return MadeFile(source, documents, tuple(origins), tuple(rounds))


def _of_comments(
    file: File,
    documents: Sequence[Document],
    origins: Sequence[int | None],
    wants: ByIdentity[Document, list[PlannedEdit]],
) -> list[Edit]:
    """The edits that take comments along to what they explain."""
    before = {file.origins[number]: document for number, document in enumerate(file.documents)}
    if not documents:
        return []
    comments = _comments_now(file.documents, documents)
    edits: list[Edit] = []
    for document, origin in zip(documents, origins, strict=True):
        old = before.get(origin) if origin is not None else None
        changes = [change for want in wants.get(old) or () for change in want.changes] if old is not None else []
        edits += _moved_comments(old, document, changes, comments) if old is not None and changes else []
    return edits


def _nothing(text: str) -> tuple[Document, ...]:
    """The documents of a text after all its objects are removed."""
    if text.strip():
        raise EditRefused("something stands beside it")
    return ()


def _keeps_comments(file: File, text: str, documents: Sequence[Document]) -> None:
    before = comments_of(file.source.text, [document.root for document in file.documents])
    if Counter(before) - Counter(comments_of(text, [document.root for document in documents])):
        raise EditRefused("a comment would be lost")


def _in_document(
    document: Document, wants: Sequence[PlannedEdit], separate_claims: bool, added: set[ObjectKey]
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
        if separate_claims:
            continue
        for _, raw in want.objects:
            if object_key(raw) in added:
                continue
            added.add(object_key(raw))
            if _in_plain_list(document, want.found.path):
                changes.append(Append(want.found.path[:-1], raw))
            elif stands_alone(document):
                raise NoPlace(_ALONE)
            else:
                behind.append(raw)
    return with_unread(document, changes, [want.found.path for want in wants]), behind


def _in_plain_list(document: Document, path: FieldPath) -> bool:
    """Whether the object at the path is in a List or template that accepts objects of all kinds."""
    around = value_at(document.object, path[:-2]) if path else None
    return isinstance(around, Mapping) and (around.get("kind") == "List" or path[-2] == TEMPLATE_OBJECTS)


def _check_list(document: Document, want: PlannedEdit) -> None:
    """Refuse to write apiVersion and kind into items that inherit them from a typed list."""
    if want.found.path and not is_object(value_at(document.object, want.found.path)):
        raise EditRefused("items of a list of one kind have no apiVersion of their own: write kind: List")


def _check_keys(document: Document, want: PlannedEdit) -> None:
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


def _check_ways(document: Document, want: PlannedEdit) -> None:
    """Refuse to change what is there twice."""
    for change in want.changes:
        for length in range(len(change.path)):
            around = document.nodes(change.path[:length])
            if around is None or around.value.id != "mapping":
                continue
            lines = [key.start_mark.line + 1 for key, _ in around.value.value if key.value == change.path[length]]
            if len(lines) > 1:
                raise RepeatedKey(f'the key "{change.path[length]}" is there twice, in line {lines[0]} and {lines[1]}')


def _same(node: Any, other: Any) -> bool:
    """Whether two nodes are written as the same value."""
    if node.id != other.id or node.tag != other.tag:
        return False
    if node.id == "scalar":
        return bool(node.value == other.value and bool(node.style) == bool(other.style))
    if len(node.value) != len(other.value):
        return False
    if node.id == "sequence":
        return all(_same(left, right) for left, right in zip(node.value, other.value, strict=True))
    pairs = zip(node.value, other.value, strict=True)
    return all(_same(pair[0], twin[0]) and _same(pair[1], twin[1]) for pair, twin in pairs)
