"""Takes comments about a request along to the claim that takes its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kubectl_dra.manifests.changes import Change, Delete, Path, value_at
from kubectl_dra.manifests.comments import comment_spans
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.edits import Edit
from kubectl_dra.manifests.places import Places

_REQUESTS: Final = ("limits", "requests")
_LABELS: Final = "nodeSelector"
# An entry that someone switched off belongs where it stands.
_SWITCHED_OFF: Final = re.compile(r"#\s*(?:-\s+)?[\"']?[\w./-]+[\"']?:(?:\s+\S+)?\s*")


class Explained(NamedTuple):
    """A key that goes, and the list of claims that says the same from now on."""

    key: Path
    claims: Path


class Comments:
    """The comments of a text before and after a change, by which each one is found again."""

    def __init__(self, before: Sequence[Document], after: Sequence[Document]) -> None:
        old, new = before[0].source.text, after[0].source.text
        spans = comment_spans(old, [document.root for document in before])
        now = comment_spans(new, [document.root for document in after])
        alike = [old[a:b] for a, b in spans] == [new[a:b] for a, b in now]
        self.now: Final = {start: there for (start, _), there in zip(spans, now, strict=True)} if alike else {}
        """Where a comment is now, by where it began; empty if their order has changed."""


def moved_comments(before: Document, after: Document, changes: Sequence[Change], comments: Comments) -> list[Edit]:
    """The edits of the text after ``changes`` that take comments of requests and labels to the new claims.

    What stands where it cannot be moved stays.
    """
    text = after.source.text
    places, now = Places(before), Places(after)
    edits: list[Edit] = []
    seen: set[int] = set()
    for pair in sorted(_explained(before.object, changes), key=lambda pair: before.key_position(pair.key).offset):
        there = value_at(before.object, pair.claims)
        target = after.nodes((*pair.claims, len(there)) if there else pair.claims)
        if target is None:
            continue
        at = now.line_start((target.key or target.value).start_mark.index)
        indent = text[at:][: len(text[at:]) - len(text[at:].lstrip(" "))]
        lines = []
        for start in _about(places, pair.key):
            begin, end = comments.now.get(start, (-1, -1))
            # Only what has a line of its own now can be taken away without a trace.
            if start not in seen and begin >= 0 and now.begins_line(begin):
                seen.add(start)
                lines.append(f"{indent}{text[begin:end]}{now.style.newline}")
                edits.append(Edit(now.line_start(begin), now.next_line(begin), ""))
        if lines:
            edits.append(Edit(at, at, "".join(lines)))
    return edits


def _explained(raw: object, changes: Sequence[Change]) -> Iterator[Explained]:
    """The keys that go, each with the list that has a claim instead."""
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
        yield from (Explained(key, claims) for key in keys)


def _about(places: Places, path: Path) -> Iterator[int]:
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
        found = places.comments_in(line, places.line_end(line))
        if not found or not places.begins_line(found[0][0]) or places.column(found[0][0]) != places.column(start):
            break
        if _SWITCHED_OFF.fullmatch(places.text[slice(*found[0])]):
            break
        above.insert(0, found[0][0])
    yield from above
    end = places.line_end(max(places.end(pair.value), pair.key.end_mark.index))
    yield from (begin for begin, _ in places.comments_in(start, end))
    if len(parent.value.value) == 1:
        below = places.behind_comments(end, places.column(start))
        yield from (begin for begin, _ in places.comments_in(end, below))
