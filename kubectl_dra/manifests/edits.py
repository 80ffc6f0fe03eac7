"""Changes of objects as edits of their text: only the bytes that change, checked by reading the result again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import Change, Delete, Path, Refused, Rename, Set, Splice, Unwrap, Wrap, value_at
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.scalars import source_offsets
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.values import scalar

_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*\Z")
_KEYED: Final = re.compile(r":([ \t]|\Z)|[ \t]#|[ \t]\Z|[\r\n]")
_STEP: Final = 2


class Edit(NamedTuple):
    """``text[start:end]`` becomes ``text``; offsets are of the source's text before all edits."""

    start: int
    end: int
    text: str


def edits_of(document: Document, changes: Sequence[Change]) -> list[Edit]:
    """The edits that make the changes, whose paths are the document's.

    Raises:
        Refused: a change that cannot be made in this text.
    """
    out: list[Edit] = []
    added = [change.path[:-1] for change in changes if isinstance(change, Set) and not document.nodes(change.path)]
    for change in _moves(document, changes):
        writer = _Writer(document)
        if isinstance(change, Set):
            out += writer.set(change.path, change.value)
        elif isinstance(change, Delete):
            out += writer.delete(change.path, alone=change.path[:-1] in added)
        elif isinstance(change, Rename):
            out.append(writer.rename(change.path, change.key))
        elif isinstance(change, Wrap):
            out += writer.wrap(change.path, change.key, change.fields)
        elif isinstance(change, Unwrap):
            out += writer.unwrap(change.path)
        else:
            out += writer.splice(change)
    out = _merged(sorted(set(out)))
    if any(later.start < earlier.end for earlier, later in pairwise(out)):
        raise Refused("its changes overlap in the text")
    return out


def _moves(document: Document, changes: Sequence[Change]) -> list[Change]:
    """The changes; where all entries of a mapping are set beside its key and that is deleted, they move as written."""
    out = list(changes)
    for gone in [change for change in changes if isinstance(change, Delete)]:
        inner = value_at(document.object, gone.path)
        if not isinstance(inner, dict) or not inner:
            continue
        beside = [Set((*gone.path[:-1], key), value) for key, value in inner.items()]
        if all(change in out for change in beside):
            out = [change for change in out if change != gone and change not in beside]
            out.append(Unwrap(gone.path))
    return out


def _merged(edits: Sequence[Edit]) -> list[Edit]:
    """The edits, with what is added at the end of lines that go put in their place."""
    out: list[Edit] = []
    for edit in edits:
        before = out[-1] if out else None
        inside = before is not None and edit.start == edit.end and before.start < edit.start < before.end
        if before is not None and inside and edit.text[:1] in "\r\n":
            lines = edit.text.lstrip("\r\n")
            newline = edit.text[: len(edit.text) - len(lines)]
            out[-1] = Edit(before.start, before.end, f"{before.text}{lines}{newline}")
        else:
            out.append(edit)
    return out


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with all edits made; they must not overlap."""
    out: list[str] = []
    at = 0
    for edit in sorted(edits):
        out += (text[at : edit.start], edit.text)
        at = edit.end
    return "".join([*out, text[at:]])


def verified(documents: Sequence[Document], edits: Sequence[Edit], intended: Mapping[int, Any]) -> str:
    """The edited text, if it reads as intended: ``intended`` by document index, all other documents as before.

    Raises:
        Refused: it would say something else.
    """
    source = documents[0].source
    text = edited(source.text, edits)
    try:
        result = parse(Source(source.name, text, source.encoding, source.bom))
    except (InputError, RecursionError) as error:
        raise Refused(f"the text could not be read any more: {error}") from None
    if len(result) != len(documents):
        raise Refused("it would change the number of documents")
    for before, after in zip(documents, result, strict=True):
        if after.object != intended.get(before.index, before.object):
            raise Refused("the text would not say what is meant")
    return text


class _Writer:
    """Writes single changes into the text of a document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._source = document.source
        self._text = document.source.text

    # --- the five changes ------------------------------------------------------------------------

    def set(self, path: Path, value: Any) -> list[Edit]:
        pair = self._document.nodes(path)
        if pair is None:
            return [self._added(path[:-1], path[-1], value)]
        node = pair.value
        self._own(node)
        if node.id != "scalar" and not node.flow_style:
            return [self._block_replaced(path, value)]
        if node.id == "scalar" and node.style in ("|", ">"):
            raise Refused("a block of text is not replaced as a whole")
        start, end = node.start_mark.index, node.end_mark.index
        text = _flow(value, quoted=self._is_json(), style=node.style if node.id == "scalar" else None)
        # An empty value begins right behind the colon of its key.
        blank = " " if start == end and start and self._text[start - 1] == ":" else ""
        return [Edit(start, end, blank + text)]

    def rename(self, path: Path, key: str) -> Edit:
        pair = self._document.nodes(path)
        if pair is None or pair.key is None:
            raise Refused("there is no key to rename")
        node = pair.key
        text = json.dumps(key, ensure_ascii=False) if node.style == '"' else _flow(key, style=node.style)
        return Edit(node.start_mark.index, node.end_mark.index, text)

    def delete(self, path: Path, *, alone: bool = False) -> list[Edit]:
        parent = self._mapping_or_list(path[:-1])
        entries = list(self._entries(parent))
        index = self._index(parent, path[-1])
        if len(entries) == 1 and not alone:
            raise Refused("nothing would be left beside it")
        start, end = entries[index]
        if parent.flow_style:
            return (
                [Edit(start, entries[index + 1][0], "")]
                if index + 1 < len(entries)
                else [Edit(entries[index - 1][1], end, "")]
            )
        begin = self._line_start(start)
        if self._text[begin:start].strip(" "):
            # The first key behind a dash: the next one takes its place.
            if index + 1 == len(entries) or "#" in self._text[end : entries[index + 1][0]]:
                raise Refused("a comment or the end of a list item is in the way")
            return [Edit(start, entries[index + 1][0], "")]
        return [Edit(begin, self._next_line(end), "")]

    def wrap(self, path: Path, key: str, fields: tuple[str, ...]) -> list[Edit]:
        node = self._mapping_or_list(path)
        if node.id != "mapping":
            raise Refused("only fields of a mapping can be moved")
        if self._document.nodes((*path, key)) is not None:
            raise Refused(f'the key "{key}" is there already')
        names = [str(pair[0].value) for pair in node.value]
        chosen = [index for index, name in enumerate(names) if name in fields]
        if not chosen:
            raise Refused("there is no field to move")
        entries = list(self._entries(node))
        first, last = chosen[0], chosen[-1]
        together = chosen == list(range(first, last + 1))
        if node.flow_style:
            if not together:
                raise Refused("the fields are not side by side")
            name = json.dumps(key) if self._is_json() else key
            return [
                Edit(entries[first][0], entries[first][0], f"{name}: {{"),
                Edit(entries[last][1], entries[last][1], "}"),
            ]
        return self._wrapped_block(entries, chosen, key)

    def unwrap(self, path: Path) -> list[Edit]:
        pair, inner = self._document.nodes(path), self._mapping_or_list(path)
        if pair is None or pair.key is None or inner.id != "mapping" or inner.flow_style or not inner.value:
            raise Refused("only the entries of a mapping on lines of their own can be moved")
        start, first = pair.key.start_mark.index, inner.value[0][0].start_mark.index
        if "#" in self._text[pair.key.end_mark.index : first]:
            raise Refused("a comment is in the way")
        step = self._column(first) - self._column(start)
        if step <= 0:
            raise Refused("its entries are not indented")
        out = [Edit(start, first, "")]
        at, end = self._next_line(first), self._end(inner)
        while at < end:
            if self._text[at : self._line_end(at)].strip():
                if self._text[at : at + step].strip(" "):
                    raise Refused("a line is not indented")
                out.append(Edit(at, at + step, ""))
            at = self._next_line(at)
        return out

    def splice(self, change: Splice) -> list[Edit]:
        pair = self._document.nodes(change.path)
        value = value_at(self._document.object, change.path)
        if pair is None or not isinstance(value, str):
            raise Refused("there is no text to change")
        self._own(pair.value)
        style = pair.value.style or ""
        whole = value[: change.start] + change.text + value[change.end :]
        if "\n" in change.text or (not style and (_KEYED.search(whole) or scalar(whole) != whole)):
            return self.set(change.path, whole)
        offsets = source_offsets(self._text, pair.value, value)
        if not offsets or change.start > len(offsets):
            raise Refused("the place in the text is not certain")
        if change.start == len(offsets):
            start = end = offsets[-1][1]
        else:
            start = offsets[change.start][0]
            end = offsets[change.end - 1][1] if change.end > change.start else start
        text = change.text
        if style == '"':
            text = json.dumps(text, ensure_ascii=False)[1:-1]
        elif style == "'":
            text = text.replace("'", "''")
        return [Edit(start, end, text)]

    # --- parts -----------------------------------------------------------------------------------

    def _added(self, path: Path, key: str | int, value: Any) -> Edit:
        """A key that the mapping at the path does not have yet, as its last one."""
        node = self._mapping_or_list(path)
        if node.id != "mapping" or not isinstance(key, str) or not node.value:
            raise Refused("there is no mapping to add it to")
        entries = list(self._entries(node))
        end = entries[-1][1]
        if node.flow_style:
            name = json.dumps(key) if self._is_json() else _flow(key)
            return Edit(end, end, f", {name}: {_flow(value, quoted=self._is_json())}")
        indent = self._column(entries[0][0])
        lines = list(_block(key, value, indent))
        behind = self._line_end(end)
        return Edit(behind, behind, "".join(f"{self._newline()}{line}" for line in lines))

    def _block_replaced(self, path: Path, value: Any) -> Edit:
        pair = self._document.nodes(path)
        key = path[-1]
        if pair is None or pair.key is None or not isinstance(key, str):
            raise Refused("a list item is not replaced as a whole")
        start = pair.key.start_mark.index
        end = self._document.position(path).end_offset
        lines = list(_block(self._text[start : pair.key.end_mark.index], value, self._column(start), bare=True))
        return Edit(start, end, self._newline().join(lines).lstrip(" "))

    def _wrapped_block(self, entries: Sequence[tuple[int, int]], chosen: Sequence[int], key: str) -> list[Edit]:
        first = chosen[0]
        column = self._column(entries[first][0])
        inner = " " * (column + _STEP)
        out = [Edit(entries[first][0], entries[first][0], f"{key}:{self._newline()}{inner}")]
        moved: list[str] = []
        last = first
        for index in chosen:
            start, end = entries[index]
            if index == first or index == last + 1:
                # Comments between fields that stay together move with them.
                begin = start if index == first else self._next_line(entries[last][1])
                last = index
                out += self._indented(begin, end, index == first)
            else:
                begin, behind = self._line_start(start), self._next_line(end)
                if self._text[begin:start].strip(" "):
                    raise Refused("a field does not begin its line")
                moved += [f"{' ' * _STEP}{line}" for line in self._text[begin:behind].splitlines()]
                out.append(Edit(begin, behind, ""))
        if moved:
            at = self._line_end(entries[last][1])
            out.append(Edit(at, at, "".join(f"{self._newline()}{line}" for line in moved)))
        return out

    def _indented(self, start: int, end: int, skip_first: bool) -> Iterator[Edit]:
        """Moves the lines from ``start`` to ``end`` to the right."""
        at = start
        if skip_first:
            at = self._next_line(start)
        while at < end:
            if self._text[at : self._line_end(at)].strip():
                yield Edit(at, at, " " * _STEP)
            following = self._next_line(at)
            if following <= at:
                return
            at = following

    def _mapping_or_list(self, path: Path) -> Any:
        pair = self._document.nodes(path)
        if pair is None or pair.value.id == "scalar":
            raise Refused("there is nothing at its path")
        self._own(pair.value)
        return pair.value

    def _own(self, node: Any) -> None:
        """Refuses what is written elsewhere: values behind anchors may be used by others as well."""
        at = node.start_mark.index
        if self._text[at : at + 1] in ("&", "*") or re.search(r"&\S+\s*\Z", self._text[max(0, at - 200) : at]):
            raise Refused("an anchor or alias is in the way")
        if "<<" in self._text and "*" in self._text and "&" in self._text:
            raise Refused("merged mappings are in the way")

    def _entries(self, node: Any) -> Iterator[tuple[int, int]]:
        """Start and end of each key with its value, or list item, without what follows on the line."""
        if node.id == "sequence":
            for item in node.value:
                start, end = item.start_mark.index, self._end(item)
                if not node.flow_style:
                    start = self._text.rindex("-", 0, start)
                yield start, end
            return
        for key, value in node.value:
            yield key.start_mark.index, max(self._end(value), key.end_mark.index + (0 if self._end(value) else 1))

    def _end(self, node: Any) -> int:
        end: int = node.end_mark.index
        if node.id != "scalar" and not node.flow_style and node.value:
            last = node.value[-1] if node.id == "sequence" else node.value[-1][1]
            end = self._end(last)
            if node.id == "mapping" and end < node.value[-1][0].end_mark.index:
                end = node.value[-1][0].end_mark.index + 1
        while end > node.start_mark.index and self._text[end - 1] in " \t\r\n":
            end -= 1
        return end

    def _index(self, parent: Any, key: str | int) -> int:
        if parent.id == "sequence" and isinstance(key, int):
            return key
        found = [index for index, pair in enumerate(parent.value) if str(pair[0].value) == key]
        if len(found) != 1:
            raise Refused("there is no such key, or there are two")
        return found[0]

    def _is_json(self) -> bool:
        node = self._document.root
        return bool(node.flow_style) and bool(node.value) and node.value[0][0].style == '"'

    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self._text else "\n"

    def _column(self, offset: int) -> int:
        return offset - self._line_start(offset)

    def _line_start(self, offset: int) -> int:
        return self._text.rfind("\n", 0, offset) + 1

    def _line_end(self, offset: int) -> int:
        """Before the line break of the line."""
        found = self._text.find("\n", offset)
        end = len(self._text) if found < 0 else found
        return end - 1 if end > offset and self._text[end - 1] == "\r" else end

    def _next_line(self, offset: int) -> int:
        found = self._text.find("\n", offset)
        return len(self._text) if found < 0 else found + 1


def _flow(value: Any, *, quoted: bool = False, style: str | None = None) -> str:
    """A value on one line; texts in the style of what they replace."""
    if isinstance(value, dict):
        entries = [
            f"{json.dumps(key) if quoted else _flow(key)}: {_flow(below, quoted=quoted)}"
            for key, below in value.items()
        ]
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(below, quoted=quoted) for below in value) + "]"
    if not isinstance(value, str):
        return json.dumps(value)
    if quoted or style == '"' or not value.isprintable():
        return json.dumps(value, ensure_ascii=False)
    if style != "'" and _BARE.match(value) and scalar(value) == value:
        return value
    return "'" + value.replace("'", "''") + "'"


def _block(key: str, value: Any, indent: int, *, bare: bool = False) -> Iterator[str]:
    """The lines of a key with its value, in block style."""
    lead = " " * indent
    name = key if bare else _flow(key)
    if isinstance(value, dict) and value:
        yield f"{lead}{name}:"
        for inner, below in value.items():
            yield from _block(inner, below, indent + _STEP)
    elif isinstance(value, list) and value:
        yield f"{lead}{name}:"
        for item in value:
            lines = (
                [line for inner, below in item.items() for line in _block(inner, below, 0)]
                if isinstance(item, dict) and item
                else [_flow(item)]
            )
            yield f"{lead}- {lines[0]}"
            for line in lines[1:]:
                yield f"{lead}  {line}"
    else:
        yield f"{lead}{name}: {_flow(value)}"
