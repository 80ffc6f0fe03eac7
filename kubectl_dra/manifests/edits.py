"""Changes of objects as minimal edits of their text, verified by reading the result again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import Append, Change, Delete, EditRefused, Path, Set, Unwrap, below, value_at
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.places import ELSEWHERE
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.writer import pieces

# Splits changes of whole mappings and lists into the smallest equivalent ones, so that the rest of the text stays.

_NOTHING = object()


def smallest(raw: Any, changes: Sequence[Change]) -> list[Change]:
    """The same changes of ``raw``, without rewriting anything that is already there."""
    out: list[Change] = []
    for change in _moves(raw, changes):
        if isinstance(change, Set):
            out += _set(change.path, _old(raw, change.path), change.value)
        else:
            out.append(change)
    return out


def _moves(raw: Any, changes: Sequence[Change]) -> list[Change]:
    """The changes; if all entries of a mapping are set beside its key and the key is deleted, they become a move."""
    sets = {change.path: change for change in changes if isinstance(change, Set)}
    moved: set[Path] = set()
    unwrapped: list[Unwrap] = []
    for gone in [change for change in changes if isinstance(change, Delete)]:
        inner = value_at(raw, gone.path)
        if not isinstance(inner, dict) or not inner:
            continue
        beside = [Set((*gone.path[:-1], key), value) for key, value in inner.items()]
        if all(sets.get(change.path) == change for change in beside):
            moved.update((gone.path, *(change.path for change in beside)))
            unwrapped.append(Unwrap(gone.path))
    return [
        *(change for change in changes if not (isinstance(change, Set | Delete) and change.path in moved)),
        *unwrapped,
    ]


def _old(raw: Any, path: Path) -> Any:
    parent = value_at(raw, path[:-1])
    if isinstance(parent, dict) and path[-1] not in parent:
        return _NOTHING
    return below(parent, path[-1])


def _set(path: Path, old: Any, new: Any) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict) and old and new:
        for key in old:
            if key not in new:
                yield Delete((*path, key))
        for key, value in new.items():
            if key not in old:
                yield Set((*path, key), value)
            else:
                yield from _set((*path, key), old[key], value)
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        yield from _set_list(path, old, new)
    elif not _same(old, new):
        yield Set(path, new)


def _set_list(path: Path, old: list[Any], new: list[Any]) -> Iterator[Change]:
    if len(old) <= len(new) and all(_same(one, other) for one, other in zip(old, new, strict=False)):
        for value in new[len(old) :]:
            yield Append(path, value)
        return
    kept = _kept(old, new)
    if kept is not None:
        yield from (Delete((*path, index)) for index in range(len(old)) if index not in kept)
    elif len(old) == len(new):
        for index, value in enumerate(new):
            yield from _set((*path, index), old[index], value)
    else:
        yield Set(path, new)


def _kept(old: Sequence[Any], new: Sequence[Any]) -> set[int] | None:
    """The indices of ``old`` that remain in ``new``, if ``new`` is ``old`` without some items."""
    out: set[int] = set()
    at = 0
    for value in new:
        while at < len(old) and not _same(old[at], value):
            at += 1
        if at == len(old):
            return None
        out.add(at)
        at += 1
    return out


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same. A bool is not a number."""
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(left, right) for left, right in zip(one, other, strict=True))
    return bool(one == other)


class Edit(NamedTuple):
    """``text[start:end]`` becomes ``text``. Offsets refer to the source's text before all edits."""

    start: int
    end: int
    text: str


def edits_of(document: Document, changes: Sequence[Change]) -> list[Edit]:
    """The edits that make the changes, whose paths are the document's.

    Raises:
        EditRefused: a change that cannot be made in this text.
    """
    found = pieces(document, smallest(document.object, changes))
    # What is added at one place belongs to ever larger mappings: the innermost comes first.
    found.sort(key=lambda piece: (piece.start, piece.end, -piece.depth))
    out = _merged(list(dict.fromkeys(Edit(piece.start, piece.end, piece.text) for piece in found)))
    if any(later.start < earlier.end for earlier, later in pairwise(out)):
        shared = "&" in document.source.text and "*" in document.source.text
        raise EditRefused(ELSEWHERE if shared else "its changes overlap in the text")
    return out


def _merged(edits: Sequence[Edit]) -> list[Edit]:
    """The edits, with added lines merged into a deletion directly before them."""
    out: list[Edit] = []
    for edit in edits:
        before = out[-1] if out else None
        inside = before is not None and edit.start == edit.end and before.start < edit.start <= before.end
        if before is not None and inside and edit.text[:1] in "\r\n":
            if edit.start == before.end:
                # Lines that go up to the end of a text without a final line break.
                out[-1] = before._replace(text=before.text + edit.text)
            else:
                lines = edit.text.lstrip("\r\n")
                newline = edit.text[: len(edit.text) - len(lines)]
                out[-1] = before._replace(text=f"{before.text}{lines}{newline}")
        else:
            out.append(edit)
    return out


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with all edits made; they must not overlap."""
    out: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        out += (text[at : edit.start], edit.text)
        at = edit.end
    return "".join([*out, text[at:]])


def verified(documents: Sequence[Document], edits: Sequence[Edit], intended: Mapping[int, Any]) -> str:
    """The edited text, if it reads as intended: ``intended`` by document index, all other documents
    unchanged.

    Raises:
        EditRefused: it would read differently.
    """
    source = documents[0].source
    text = edited(source.text, edits)
    reread(source, text, [intended.get(document.index, document.object) for document in documents])
    return text


def reread(source: Source, text: str, objects: Sequence[Any]) -> tuple[Document, ...]:
    """The documents of a text made from ``source``, if they hold exactly the objects.

    Raises:
        EditRefused: it cannot be read, or reads differently.
    """
    anchors = "&" in source.text and "*" in source.text
    try:
        result = parse(Source(source.name, text, source.encoding, source.bom))
    except (FileError, RecursionError) as error:
        raise EditRefused(ELSEWHERE if anchors else f"the text could no longer be read: {error}") from None
    if len(result) != len(objects):
        raise EditRefused("it would change the number of documents")
    for document, expected in zip(result, objects, strict=True):
        if document.object != expected:
            raise EditRefused(ELSEWHERE if anchors else "the text would not read as intended")
    return result
