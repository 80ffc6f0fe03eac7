"""Turns findings in objects into findings in files: line, column, field path and the text of the line."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from kubectl_dra.lint.context import Item
from kubectl_dra.lint.finding import LintFinding
from kubectl_dra.lint.positions import enclosing_lines, position_of, written_path
from kubectl_dra.lint.result import LocatedFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Change, Path
from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.source import Source, SourcePosition

_EXCERPT: Final = 400
_LINE_END: Final = re.compile(r"[\r\n]")


def locate(found: LintFinding, item: Item, document: Document, with_lines: bool) -> LocatedFinding:
    """A finding in an item of a document, with its place. ``with_lines``: comments may silence it."""
    path = item.place.written(written_path(item.raw, found.path))
    at = position_of(document, path, found.cel, found.on_key)
    lines: tuple[int, ...] = ()
    if with_lines:
        lines = tuple(dict.fromkeys((at.line, *(line for line, _ in enclosing_lines(document, path)))))
    owner = item if item.owner is None else item.owner
    field = found.field or path_text(path[len(owner.place.path) :])
    if item.owner is not None and found.field:
        field = f"{path_text(item.place.path[len(owner.place.path) :])}.{found.field}"
    fix = found.fix
    changes = () if fix is None else _changes(fix.changes, item)
    return LocatedFinding(
        found.code,
        found.severity,
        document.name,
        *at,
        item.title,
        field,
        found.message,
        "" if fix is None else fix.title,
        "none" if fix is None or not changes else fix.safety,
        found.detail,
        excerpt(document.source, at),
        document.index,
        path,
        item.place.path,
        changes,
        lines,
    )


def _changes(changes: tuple[Change, ...], item: Item) -> tuple[Change, ...]:
    """The changes with paths of the document; none if something to change is not written there."""
    if item.place.bare and any(change.path[:1] != ("spec",) for change in changes):
        return ()
    return tuple(replace(change, path=item.place.written(written_path(item.raw, change.path))) for change in changes)


def excerpt(source: Source, at: SourcePosition) -> str:
    """The line of the text where the position begins; at most a few hundred characters."""
    start = at.offset - at.column + 1
    found = _LINE_END.search(source.text, at.offset, start + _EXCERPT)
    return source.text[start : start + _EXCERPT if found is None else found.start()]


def excerpt_of_line(source: Source, line: int) -> str:
    """The text of a line, counted from 1; empty if there is none."""
    start = source.line_start(line)
    return "" if start is None else excerpt(source, SourcePosition(line, 1, line, 1, start, start))


_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


@lru_cache(4096)
def path_text(path: Path) -> str:
    """A path as Kubernetes writes it: ``spec.devices.requests[0].name``."""
    out: list[str] = []
    for part in path:
        if isinstance(part, int) or not _PLAIN.match(part):
            out.append(f"[{part}]")
        else:
            out.append(f".{part}" if out else part)
    return "".join(out)


def plain(rule: type[Rule], file: str, message: str, at: tuple[int, int] = (1, 1), line: str = "") -> LocatedFinding:
    """A finding about a file, at a position without an extent."""
    return LocatedFinding(rule.code, rule.severity, file, *at, *at, 0, 0, "", "", message, excerpt=line)


def spanned(rule: type[Rule], file: str, message: str, at: SourcePosition, line: str) -> LocatedFinding:
    """A finding about a span of a file's text; ``line`` is the text of its line."""
    return LocatedFinding(rule.code, rule.severity, file, *at, "", "", message, excerpt=line, lines=(at.line,))
