"""Turns findings in objects into findings in files: line, column, field path and the text of the line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import InputError
from kubectl_dra.lint.context import Item
from kubectl_dra.lint.finding import AsWritten, Fix, LintFinding, LocatedFinding
from kubectl_dra.lint.fixes import obstacle
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Change, Set, below, value_at
from kubectl_dra.manifests.documents import Document, Skipped, each_document
from kubectl_dra.manifests.inputs import Input, read
from kubectl_dra.manifests.places import source_offsets
from kubectl_dra.manifests.source import Source, SourcePosition, decode
from kubectl_dra.manifests.values import Node

# Where a finding is in a text: from v1's paths to the manifest's own, from paths and CEL ranges to offsets.

_POSITIONS_LINE_END: Final = re.compile(r"[\r\n]")
_FLAT: Final = ("v1beta1", "v1alpha3")
_TOKEN: Final = re.compile(
    r"[A-Za-z_]\w*|\d[\w.]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|&&|\|\||[=!<>]=|.", re.DOTALL
)


def written_path(raw: Mapping[str, Any], path: FieldPath) -> FieldPath:
    """The path in the manifest's own shape for one that may be v1's: without ``exactly``, with ``basic``.

    A path that is already the manifest's own stays.
    """
    if str(raw.get("apiVersion", "")).rpartition("/")[2] not in _FLAT:
        return path
    out: list[str | int] = []
    value: Any = raw
    for index, part in enumerate(path):
        before = path[index - 2] if index >= 2 else None
        inside = index >= 1 and isinstance(path[index - 1], int)
        if inside and before == "requests" and part == "exactly" and not _has(value, "exactly"):
            continue
        if inside and before == "devices" and part not in ("name", "basic") and _has(value, "basic"):
            out.append("basic")
            value = value["basic"]
        out.append(part)
        value = below(value, part)
    # A v1alpha3 capacity is a plain quantity.
    if out and out[-1] == "value" and isinstance(value_at(raw, tuple(out[:-1])), str | int | float):
        out.pop()
    return tuple(out)


def _has(value: Any, key: str) -> bool:
    return isinstance(value, dict) and key in value


def position_of(
    document: Document, path: FieldPath, cel: tuple[int, int] | None = None, on_key: bool = False
) -> SourcePosition:
    """The exact span of what a path leads to.

    For a scalar its value (with ``cel`` a range of its characters); for a mapping or list its key, or the
    first line without one; for a missing value, its nearest parent likewise.
    """
    pair, length = document.finder.nearest(path)
    is_scalar = length == len(path) and pair.value.id == "scalar"
    if is_scalar and cel is not None:
        return _inside(document, value_at(document.object, path), pair.value, cel) or document.span(pair.value)
    if pair.key is not None and (on_key or not is_scalar):
        return document.source.span(pair.key.start_mark.index, pair.key.end_mark.index)
    whole = document.span(pair.value)
    if whole.end_line == whole.line:
        return whole
    # A list item or the root: its first line.
    text = document.source.text
    match = _POSITIONS_LINE_END.search(text, whole.offset, whole.end_offset)
    line = text[whole.offset : whole.end_offset if match is None else match.start()]
    return document.source.span(whole.offset, whole.offset + len(line.rstrip(" \t") or line[:1]))


def _inside(document: Document, value: Any, node: Node, cel: tuple[int, int]) -> SourcePosition | None:
    """The span of a range of the characters of a text, which a scalar node stands for."""
    if not isinstance(value, str):
        return None
    offsets = source_offsets(document.source.text, node, value)
    if not offsets:
        return None
    start = max(0, min(cel[0], len(value)))
    end = max(start, min(cel[1], len(value)))
    if start == len(value):
        # Behind what is written last: a block of text ends with the line break of its last line.
        behind = offsets[max(0, len(value.rstrip()) - 1)][1]
        return document.source.span(behind, behind)
    last = max(end - 1, start)
    return document.source.span(offsets[start][0], offsets[last][1])


def token_range(expression: str, offset: int) -> tuple[int, int]:
    """The range of the token at an offset of an expression."""
    if offset >= len(expression):
        return len(expression), len(expression)
    match = _TOKEN.match(expression, offset)
    return (offset, offset + 1) if match is None else match.span()


def enclosing_lines(document: Document, path: FieldPath) -> Iterator[tuple[int, int]]:
    """(line, depth) where each part of the path begins, from the root (depth 0) inward."""
    for depth in range(len(path) + 1):
        if document.nodes(path[:depth]) is None:
            return
        yield document.key_position(path[:depth]).line, depth


_EXCERPT: Final = 400
_LINE_END: Final = re.compile(r"[\r\n]")


def locate(finding: LintFinding, item: Item, document: Document, with_lines: bool) -> LocatedFinding:
    """A finding in an item of a document, with its place. ``with_lines``: comments may silence it."""
    path = item.place.written(written_path(item.raw, finding.path))
    at = position_of(document, path, finding.cel, finding.on_key)
    lines: tuple[int, ...] = ()
    if with_lines:
        lines = tuple(dict.fromkeys((at.line, *(line for line, _ in enclosing_lines(document, path)))))
    owner = item if item.owner is None else item.owner
    field = finding.field or path_text(path[len(owner.place.path) :])
    if item.owner is not None and finding.field:
        field = f"{path_text(item.place.path[len(owner.place.path) :])}.{finding.field}"
    fix = finding.fix or Fix("")
    changes = _changes(fix.changes, item, document)
    return LocatedFinding(
        finding.code,
        finding.severity,
        document.name,
        *at,
        item.title,
        field,
        finding.message,
        fix.title,
        fix.safety if changes else "none",
        finding.detail,
        *excerpt(document.source, at),
        document.index,
        path,
        item.place.path,
        changes,
        lines,
        fix.command,
        fix.block,
        fix.expression,
        obstacle(document, changes) if changes and fix.safety != "none" else "",
    )


def _changes(changes: tuple[Change, ...], item: Item, document: Document) -> tuple[Change, ...]:
    """The changes with paths of the document; none if something to change is not written there."""
    if item.place.bare and any(change.path[:1] != ("spec",) for change in changes):
        return ()
    placed = (replace(change, path=item.place.written(written_path(item.raw, change.path))) for change in changes)
    return tuple(_quoted(change, document) for change in placed)


def _quoted(change: Change, document: Document) -> Change:
    if not isinstance(change, Set) or not isinstance(change.value, AsWritten):
        return change
    there = document.nodes(change.path)
    text = there.value.value if there is not None else value_at(document.object, change.path)
    return Set(change.path, str(text))


class Excerpt(NamedTuple):
    """A part of a line, a few hundred characters at most, and how many characters of the line come before it."""

    text: str
    start: int = 0


def excerpt(source: Source, at: SourcePosition) -> Excerpt:
    """The line of the text where the position begins; of a long one what is around the position."""
    start = at.offset - at.column + 1
    match = _LINE_END.search(source.text, at.offset)
    end = len(source.text) if match is None else match.start()
    before = 0 if end - start <= _EXCERPT else max(0, at.column - 1 - _EXCERPT // 2)
    return Excerpt(source.text[start + before : min(end, start + before + _EXCERPT)], before)


def excerpt_at(source: Source, line: int, column: int) -> Excerpt:
    """The same of a line and a column, counted from 1; empty if there is no such line."""
    start = source.line_start(line)
    offset = min((start or 0) + column - 1, len(source.text))
    return Excerpt("") if start is None else excerpt(source, SourcePosition(line, column, line, column, offset, offset))


_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


@lru_cache(4096)
def path_text(path: FieldPath) -> str:
    """A path as Kubernetes writes it: ``spec.devices.requests[0].name``."""
    out: list[str] = []
    for part in path:
        if isinstance(part, int) or not _PLAIN.match(part):
            out.append(f"[{part}]")
        else:
            out.append(f".{part}" if out else part)
    return "".join(out)


def plain(rule: type[Rule], file: str, message: str) -> LocatedFinding:
    """A finding about a file of which no text is known."""
    return LocatedFinding(rule.code, rule.severity, file, 1, 1, 1, 1, 0, 0, "", "", message)


def pointed(rule: type[Rule], source: Source, message: str, line: int, column: int) -> LocatedFinding:
    """A finding about a text, at a position without an extent."""
    offset = min((source.line_start(line) or 0) + column - 1, len(source.text))
    at = SourcePosition(line, column, line, column, offset, offset)
    shown, before = excerpt_at(source, line, column)
    place = (rule.code, rule.severity, source.name, *at)
    return LocatedFinding(*place, "", "", message, excerpt=shown, excerpt_start=before)


def spanned(rule: type[Rule], file: str, message: str, at: SourcePosition, shown: Excerpt) -> LocatedFinding:
    """A finding about a span of a file's text; ``shown`` is what to show of its line."""
    place = (rule.code, rule.severity, file, *at)
    return LocatedFinding(*place, "", "", message, excerpt=shown.text, excerpt_start=shown.start, lines=(at.line,))


# Keeps some documents in memory to locate findings later, and rereads the others.

MOST_KEPT: Final = 6_000_000
"""Limit in characters for texts whose documents are kept: their nodes take up to a hundred times as many bytes."""


class Texts:
    """Documents by file name and index."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[int, Document]] = {}
        self._left = MOST_KEPT

    def keep(self, document: Document) -> None:
        """Keep a document if there is room for its text."""
        mine = self._kept.get(document.name)
        if mine is None:
            size = len(document.source.text)
            if size > self._left:
                return
            self._left -= size
            mine = self._kept[document.name] = {}
        mine[document.index] = document

    def documents(self, file: Input, digest: int, indices: Collection[int]) -> dict[int, Document]:
        """The documents with these indices, if the file has them and is unchanged."""
        kept = self._kept.get(file.name)
        if kept is not None:
            return kept
        try:
            data = read(file)
            if hash(data) != digest:
                return {}
            documents = each_document(decode(data, file.name))
            return {
                document.index: document
                for document in documents
                if not isinstance(document, Skipped) and document.index in indices
            }
        except InputError:
            return {}
