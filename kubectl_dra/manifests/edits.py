"""Changes of objects as minimal edits of their text, verified by reading the result again."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import (
    Append,
    Change,
    Delete,
    EditRefused,
    Set,
    Unwrap,
    changed,
    found_at,
    value_at,
)
from kubectl_dra.manifests.documents import Document, NotAnObject, covered, parse
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.places import ELSEWHERE
from kubectl_dra.manifests.shared_parts import unshared
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.writer import pieces

# Splits changes of whole mappings and lists into the smallest equivalent ones, so that the rest of the text stays.


def smallest(raw: Any, changes: Sequence[Change]) -> list[Change]:
    """The same changes of ``raw``, without rewriting anything that is already there."""
    out: list[Change] = []
    for change in _moves(raw, changes):
        if isinstance(change, Set):
            out += _set(change.path, found_at(raw, change.path), change.value)
        else:
            out.append(change)
    return out


def _moves(raw: Any, changes: Sequence[Change]) -> list[Change]:
    """The changes; if all entries of a mapping are set beside its key and the key is deleted, they become a move."""
    sets = {change.path: change for change in changes if isinstance(change, Set)}
    moved: set[FieldPath] = set()
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


def _set(path: FieldPath, old: Any, new: Any) -> Iterator[Change]:
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


def _set_list(path: FieldPath, old: list[Any], new: list[Any]) -> Iterator[Change]:
    if len(old) <= len(new) and all(_same(item, other) for item, other in zip(old, new, strict=False)):
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


def _same(first: Any, other: Any) -> bool:
    """Whether two JSON values are the same. A bool is not a number."""
    if isinstance(first, bool) != isinstance(other, bool):
        return False
    if isinstance(first, dict) and isinstance(other, dict):
        return first.keys() == other.keys() and all(_same(value, other[key]) for key, value in first.items())
    if isinstance(first, list) and isinstance(other, list):
        return len(first) == len(other) and all(_same(left, right) for left, right in zip(first, other, strict=True))
    return bool(first == other)


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
    changed = pieces(document, unshared(document, smallest(document.object, changes)))
    # What is added at one place belongs to ever larger mappings: the innermost comes first.
    changed.sort(key=lambda piece: (piece.start, piece.end, -piece.depth))
    edits = list(dict.fromkeys(Edit(piece.start, piece.end, piece.text) for piece in changed))
    out = _merged(edits, document.source.text)
    if any(later.start < earlier.end for earlier, later in pairwise(out)):
        shared = "&" in document.source.text and "*" in document.source.text
        raise EditRefused(ELSEWHERE if shared else "its changes overlap in the text")
    return out


def _merged(edits: Sequence[Edit], text: str) -> list[Edit]:
    """The edits of a text, with added lines merged into a deletion directly before them."""
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
        elif before is not None and edit.end == len(text) and text[edit.start : before.end] in ("\n", "\r\n"):
            out[-1] = _to_the_end(before, edit, text[edit.start : before.end], text)
        else:
            out.append(edit)
    return out


def _to_the_end(before: Edit, last: Edit, newline: str, text: str) -> Edit:
    """One edit for changed lines and those behind them, whose deletion takes the line break between them along because
    the text has no final one.
    """
    if before.text:
        return Edit(before.start, last.end, before.text.removesuffix(newline) + last.text)
    start = before.start if last.text else max(0, before.start - len(newline))
    return Edit(start, last.end, last.text.removeprefix(newline) if text[:start] else last.text)


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


def with_changes(documents: Sequence[Document], changes: Mapping[int, Sequence[Change]]) -> str:
    """The text of documents with changes made; ``changes`` are by the index of their document.

    Raises:
        EditRefused: a change cannot be made in this text, or the text would read differently.
    """
    edits = [edit for document in documents for edit in edits_of(document, changes.get(document.index, ()))]
    intended = {document.index: changed(document.object, changes.get(document.index, ())) for document in documents}
    return verified(documents, edits, intended)


def reread(source: Source, text: str, objects: Sequence[Any]) -> tuple[Document, ...]:
    """The documents of a text made from ``source``, if they hold exactly the objects.

    Raises:
        EditRefused: it cannot be read, or reads differently.
    """
    anchors = "&" in source.text and "*" in source.text
    try:
        result = parse(source.with_text(text))
    except (FileError, RecursionError) as error:
        raise EditRefused(ELSEWHERE if anchors else f"the text could no longer be read: {error}") from None
    if len(result) != len(objects):
        raise EditRefused("it would change the number of documents")
    for document, expected in zip(result, objects, strict=True):
        if document.object != expected:
            raise EditRefused(ELSEWHERE if anchors else "the text would not read as intended")
    return result


# A second reading of edited text by parsers that share no code with PyYAML, by whose nodes edits are made: ruamel.yaml
# and, for JSON, the json module.


_MARKER: Final = re.compile(r"^(?=---(?:\s|\Z))", re.MULTILINE)
_FIRST_MARKER: Final = re.compile(r"\A((?:[ \t]*(?:#.*)?\r?\n)*)---[ \t]*\r?\n")
_DIRECTIVE: Final = re.compile(r"^%", re.MULTILINE)
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_BLANKS: Final = re.compile(r"\s*")
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_LETTER: Final = re.compile("w")
# Where a letter or digit says how to read on: an escape, an anchor, an alias, a tag, the indent of a block.
_TELLING: Final = re.compile(r"[\\&*!]|[|>][-+]?[0-9]")
_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")


def confirmed(file: Rewritten) -> bool:
    """Whether the second parser agrees with the first about the edited text, or could not read the original."""
    partly = covered(Source(file.file, file.before))
    if partly is not None:
        # Templates are no YAML, and are read neither before nor after.
        after = covered(Source(file.file, file.after))
        if after is None or after.templates != partly.templates:
            return False
        file = file._replace(before=partly.source.text, after=after.source.text)
    try:
        documents = parse(Source(file.file, file.after))
    except NotAnObject:
        # Nothing is left in it, or it is a list, as a JSON patch is.
        return not file.after.strip() or confirmed(
            file._replace(before=_below_key(file.before), after=_below_key(file.after))
        )
    except FileError:
        return False
    values = _json_values(file.after)
    if values is not None:
        return len(values) == len(documents) and all(
            map(_alike_json, values, (document.root for document in documents))
        )
    alike = read_alike(file.after, documents)
    return bool(alike) or (alike is None and read_alike(file.before, ()) is None)


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of a JSON object, in order."""


def _json_values(text: str) -> list[Any] | None:
    """The values of a JSON stream, with numbers as they are written; None if it is none."""
    import json

    if not text.lstrip().startswith("{"):
        return None
    decoder = json.JSONDecoder(
        parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=_Pairs, strict=False
    )
    out, at = list[Any](), text.index("{")
    try:
        while at < len(text):
            value, end = decoder.raw_decode(text, at)
            out.append(value)
            at = _BLANKS.match(text, end).end()  # type: ignore[union-attr]
    except (ValueError, RecursionError):
        return None
    return out


def _alike_json(value: Any, root: Any) -> bool:
    """Whether a value that json has read is what PyYAML's nodes say, scalars as they are written."""
    stack = [(value, root)]
    while stack:
        value, node = stack.pop()
        if isinstance(value, _Pairs):
            if node.id != "mapping" or len(value) != len(node.value):
                return False
            for (key, below), (name, twin) in zip(value, node.value, strict=True):
                stack += ((key, name), (below, twin))
        elif isinstance(value, list):
            if node.id != "sequence" or len(value) != len(node.value):
                return False
            stack += zip(value, node.value, strict=True)
        else:
            words = "null" if value is None else str(value).lower() if isinstance(value, bool) else value
            if node.id != "scalar" or (
                words != node.value and _BEYOND.sub("??", words) != _BEYOND.sub("??", node.value)
            ):
                return False
    return True


def _below_key(text: str) -> str:
    """The one document of a text as the value of a key."""
    lines = _FIRST_MARKER.sub(r"\1#\n", text).splitlines(keepends=True)
    return "text:\n" + "".join(f"  {line}" for line in lines)


def read_alike(text: str, documents: Sequence[Document]) -> bool | None:
    """Whether the second parser finds the same mappings, lists and scalars in the text as its documents have.

    Scalars are compared as written, because YAML 1.2 and kubectl disagree about which are numbers. None if
    the second parser cannot read the text.
    """
    from ruamel.yaml.error import ReusedAnchorWarning, YAMLError

    read: dict[str, _Composed] = {}
    left = list(documents)
    alike = True
    try:
        with warnings.catch_warnings():
            # PyYAML is told the same, as kubectl is: an anchor defined twice is no mistake.
            warnings.simplefilter("ignore", ReusedAnchorWarning)
            for part in _parts(text):
                # It is slow: documents that differ only in their words are read once.
                words = [] if _TELLING.search(part) else _WORD.findall(part)
                found = _composed(_WORD.sub("w", part) if words else part, read)
                if words and not found.agree(left[: len(found.roots)], words):
                    found, words = _composed(part, read), []
                alike = alike and found.agree(left[: len(found.roots)], words)
                del left[: len(found.roots)]
    except (YAMLError, RecursionError, ValueError):
        return None
    return alike and not left


class _Composed(NamedTuple):
    """The roots of the documents of a text that have content, and where its letters w are."""

    roots: Sequence[Any]
    places: Sequence[int]

    def agree(self, documents: Sequence[Document], words: Sequence[str]) -> bool:
        """Whether the documents say the same. ``words`` stand for the letters w, if there are any."""
        return len(self.roots) == len(documents) and all(
            self._alike(root, document.root, words) for root, document in zip(self.roots, documents, strict=True)
        )

    def _alike(self, root: Any, other: Any, words: Sequence[str]) -> bool:
        stack, seen = [(root, other)], set()
        while stack:
            left, right = stack.pop()
            if (id(left), id(right)) in seen:
                continue
            seen.add((id(left), id(right)))
            if left.id != right.id:
                return False
            if left.id == "scalar":
                value = self._with(words, left) if words else left.value
                # ``documents`` reads such a pair of escapes in JSON as two question marks.
                if value != right.value and _PAIR.sub("??", value) != right.value:
                    return False
            elif len(left.value) != len(right.value):
                return False
            elif left.id == "sequence":
                stack += zip(left.value, right.value, strict=True)
            else:
                for pair, twin in zip(left.value, right.value, strict=True):
                    stack += zip(pair, twin, strict=True)
        return True

    def _with(self, words: Sequence[str], scalar: Any) -> str:
        """The value of a scalar with its words."""
        pieces = scalar.value.split("w")
        first = bisect_left(self.places, scalar.start_mark.index)
        behind = (*words[first : first + len(pieces) - 1], "")
        return "".join(part + word for part, word in zip(pieces, behind, strict=False))


def _composed(part: str, read: dict[str, _Composed]) -> _Composed:
    """What a text has; each text is read once."""
    from ruamel.yaml import YAML

    if part not in read:
        composed = YAML(typ="safe", pure=True).compose_all(part)
        roots = [root for root in composed if root is not None and _has(root)]
        read[part] = _Composed(roots, [match.start() for match in _LETTER.finditer(part)])
    return read[part]


def _parts(text: str) -> list[str]:
    """The text, cut before each line that begins a document, where no directive says how to read what follows."""
    return [text] if _DIRECTIVE.search(text) else _MARKER.split(text)


def _has(root: Any) -> bool:
    """Whether a document has content."""
    return not (root.id == "scalar" and not root.style and root.value in ("", "~", "null", "Null", "NULL"))
