"""Finds the comments of a text, and distinguishes them from look-alikes in quoted and block scalars."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final

_COMMENT: Final = re.compile(r"(?:^|(?<=[\s\ufeff]))#[^\r\n]*", re.MULTILINE)
_LINE: Final = re.compile(r"\r|\n|\Z")


def comment_spans(text: str, roots: Iterable[Any]) -> list[tuple[int, int]]:
    """Start and end of each comment, in order; ``roots`` are the nodes of all documents of the text."""
    if "#" not in text:
        return []
    inside = sorted(scalar_spans(text, roots))
    starts = [start for start, _ in inside]
    out = []
    for found in _COMMENT.finditer(text):
        index = bisect_right(starts, found.start()) - 1
        if index < 0 or found.start() >= inside[index][1]:
            out.append((found.start(), found.start() + len(found.group().rstrip())))
    return out


def comments_of(text: str, roots: Iterable[Any]) -> list[str]:
    """The comments of a text, in order."""
    return [text[start:end] for start, end in comment_spans(text, roots)]


def scalar_spans(text: str, roots: Iterable[Any]) -> set[tuple[int, int]]:
    """The spans of quoted and block scalars, in which ``#`` starts no comment; ``roots`` as for ``comment_spans``."""
    out: set[tuple[int, int]] = set()
    stack, seen = list(roots), set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.id == "sequence":
            stack.extend(node.value)
        elif node.id == "mapping":
            for pair in node.value:
                stack.extend(pair)
        elif node.style:
            start, end = node.start_mark.index, node.end_mark.index
            if node.style in "|>":
                # A comment behind the indicator of a block is one, and so are those that follow its lines.
                found = _LINE.search(text, start)
                start = end if found is None else found.start()
            out.add((start, end))
    return out
