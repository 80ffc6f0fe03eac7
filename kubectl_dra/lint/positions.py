"""Where a finding is in a text: from v1's paths to the manifest's own, from paths and CEL ranges to offsets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_dra.manifests.changes import Path, below, value_at
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.scalar_offsets import source_offsets
from kubectl_dra.manifests.source import SourcePosition
from kubectl_dra.manifests.values import Node

_LINE_END: Final = re.compile(r"[\r\n]")
_FLAT: Final = ("v1beta1", "v1alpha3")
_TOKEN: Final = re.compile(
    r"[A-Za-z_]\w*|\d[\w.]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|&&|\|\||[=!<>]=|.", re.DOTALL
)


def written_path(raw: Mapping[str, Any], path: Path) -> Path:
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
    document: Document, path: Path, cel: tuple[int, int] | None = None, on_key: bool = False
) -> SourcePosition:
    """The exact span of what a path leads to.

    For a scalar its value (with ``cel`` a range of its characters); for a mapping or list its key, or the
    first line without one; for a missing value, its nearest parent likewise.
    """
    pair, length = document.nearest(path)
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
    found = _LINE_END.search(text, whole.offset, whole.end_offset)
    line = text[whole.offset : whole.end_offset if found is None else found.start()]
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
        behind = offsets[-1][1]
        return document.source.span(behind, behind)
    last = max(end - 1, start)
    return document.source.span(offsets[start][0], offsets[last][1])


def token_range(expression: str, offset: int) -> tuple[int, int]:
    """The range of the token at an offset of an expression."""
    if offset >= len(expression):
        return len(expression), len(expression)
    found = _TOKEN.match(expression, offset)
    return (offset, offset + 1) if found is None else found.span()


def enclosing_lines(document: Document, path: Path) -> Iterator[tuple[int, int]]:
    """(line, depth) where each part of the path begins, from the root (depth 0) inward."""
    for depth in range(len(path) + 1):
        if document.nodes(path[:depth]) is None:
            return
        yield document.key_position(path[:depth]).line, depth
