"""What stands at a place of a manifest: the object, the path to the field, the word, or the place in a selector.

A text that is being typed is rarely valid YAML. Where the document cannot be read, or the cursor is on an empty
line, the indentation of the lines above tells the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kubectl_dra.manifests.documents import Document, Skipped, each_document
from kubectl_dra.manifests.nodes import written_key
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.values import Node, is_merge

Keys = tuple[str, ...]
"""The keys from an object's root; indices of lists are left out."""
SELECTOR: Final = ("cel", "expression")
"""End of the paths of selectors."""
_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_LINE: Final = re.compile(
    r"(?P<indent> *)(?P<dashes>(?:- +|-$)*)(?:(?P<quote>['\"]?)(?P<key>[\w./$-]+)(?P=quote)(?P<colon> *:(?=\s|$)))?"
)
_BLOCK: Final = re.compile(r":\s+[|>][-+0-9]*\s*(?:#.*)?$")
_STATED: Final = {
    name: re.compile(rf"^ *\"?{name}\"? *: *[\"']?([\w./-]+)", re.MULTILINE) for name in ("kind", "apiVersion")
}


class Span(NamedTuple):
    """Offsets of a part of the text: where it begins, and behind its end."""

    start: int
    end: int


class Cursor(NamedTuple):
    """What stands at an offset.

    ``path`` leads to the value, or to the key at which the cursor stands (``on_key``); ``word`` is the span of the
    key or of the scalar. ``keys`` are the keys that the mapping has already, as far as they were seen. In a
    selector, ``selector`` is the span of its text.
    """

    kind: str
    api_version: str
    path: Keys
    on_key: bool
    word: Span
    keys: frozenset[str] = frozenset()
    selector: Span | None = None

    @property
    def version(self) -> str:
        """The version in the API group, such as v1beta1."""
        return self.api_version.rpartition("/")[2]


def cursor_at(text: str, offset: int) -> Cursor:
    """What stands at an offset of a text."""
    start, end = _document(text, offset)
    begin = text.rfind("\n", 0, offset) + 1
    cursor = _read(text, offset) if _line(text, begin).text.strip() else None
    if cursor is not None and not _may_become_key(text, cursor):
        return cursor
    kind, api_version = (_stated(text[start:end], name) for name in ("kind", "apiVersion"))
    return _by_indentation(text, start, offset)._replace(kind=kind, api_version=api_version)


def _may_become_key(text: str, cursor: Cursor) -> bool:
    """Whether a plain scalar stands where a key could: at the beginning of its line."""
    start = cursor.word.start
    line = _line(text, text.rfind("\n", 0, start) + 1)
    return not cursor.on_key and line.value is None and start == line.start + line.column and text[start] not in "'\"|>"


def _document(text: str, offset: int) -> Span:
    marks = [match.start() for match in _SEPARATOR.finditer(text)]
    start = max((mark for mark in marks if mark <= offset), default=0)
    return Span(start, min((mark for mark in marks if mark > offset), default=len(text)))


def _stated(text: str, name: str) -> str:
    match = _STATED[name].search(text)
    return match[1] if match is not None else ""


def _read(text: str, offset: int) -> Cursor | None:
    """The key or scalar at the offset, if the document around it can be read."""
    for document in each_document(Source("", text)):
        if not isinstance(document, Skipped):
            root = document.root
            if root.start_mark.index <= offset <= root.end_mark.index:
                cursor = _inside(root, offset, ())
                return None if cursor is None else _named(document, text, cursor)
    return None


def _named(document: Document, text: str, cursor: Cursor) -> Cursor:
    is_selector = cursor.path[-2:] == SELECTOR and not cursor.on_key
    selector = _content(text, cursor.word) if is_selector else None
    kind, api_version = (str(document.object.get(name) or "") for name in ("kind", "apiVersion"))
    return cursor._replace(kind=kind, api_version=api_version, selector=selector)


def _content(text: str, span: Span) -> Span:
    """A scalar without its quotes, or without the header of a block."""
    start, end = span
    if text[start : start + 1] in ("|", ">"):
        behind = text.find("\n", start, end)
        return Span(end if behind < 0 else behind + 1, end)
    if text[start : start + 1] in ("'", '"') and text[end - 1 : end] == text[start] and end - start > 1:
        return Span(start + 1, end - 1)
    return span


def _inside(node: Node, offset: int, path: Keys) -> Cursor | None:
    if node.id == "scalar":
        return Cursor("", "", path, False, Span(node.start_mark.index, node.end_mark.index))
    if node.id == "sequence":
        for item in node.value:
            if item.start_mark.index <= offset <= item.end_mark.index:
                return _inside(item, offset, path)
        return None
    keys = frozenset(written_key(key) for key, _ in node.value if key.id == "scalar" and not is_merge(key))
    for key, value in node.value:
        if key.id != "scalar":
            continue
        below = (*path, written_key(key))
        if key.start_mark.index <= offset <= key.end_mark.index:
            return Cursor("", "", below, True, Span(key.start_mark.index, key.end_mark.index), keys)
        # An empty value and an alias have marks of elsewhere.
        if key.end_mark.index < value.start_mark.index <= offset <= value.end_mark.index:
            return _inside(value, offset, below)
    return None


class _Line(NamedTuple):
    """A line: where it begins, the columns of its dashes, of its key, and where its value begins, if it has them."""

    start: int
    text: str
    dashes: tuple[int, ...]
    column: int
    key: str
    value: int | None

    @property
    def is_blank(self) -> bool:
        return not self.text.strip() or self.text.lstrip().startswith("#")


def _line(text: str, start: int) -> _Line:
    end = text.find("\n", start)
    line = text[start : len(text) if end < 0 else end].rstrip("\r")
    line_match = _LINE.match(line)
    assert line_match is not None
    dashes = tuple(line_match.end("indent") + match.start() for match in re.finditer("-", line_match["dashes"]))
    value = None
    if line_match["key"] is not None:
        behind = line_match.end("colon")
        value = behind + len(line[behind:]) - len(line[behind:].lstrip())
    return _Line(start, line, dashes, line_match.end("dashes"), line_match["key"] or "", value)


def _above(text: str, first: int, start: int) -> Iterator[_Line]:
    """The lines above one, nearest first, down to the beginning of the document."""
    while start > first:
        start = text.rfind("\n", 0, start - 1) + 1
        if start < first:
            return
        yield _line(text, start)


def _by_indentation(text: str, first: int, offset: int) -> Cursor:
    start = text.rfind("\n", 0, offset) + 1
    line = _line(text, start)
    header = _header(text, first, line)
    if header is not None:
        path = (*_path(text, first, header), header.key)
        begin = text.find("\n", header.start) + 1
        if path[-2:] == SELECTOR:
            return Cursor("", "", path, False, Span(begin, offset), selector=Span(begin, _end(text, header, start)))
        return Cursor("", "", path, False, Span(begin, offset))
    above = _path(text, first, line, column=offset - start if not line.text.strip() else None)
    if line.value is not None and offset > start + line.text.index(":", line.column):
        path = (*above, line.key)
        span = _content(text, Span(start + line.value, start + len(line.text)))
        span = span if span.start <= offset else Span(offset, offset)
        if text[span.start : span.start + 1] in ("'", '"'):
            # A quote that nobody has closed yet.
            span = Span(span.start + 1, span.end)
        return Cursor("", "", path, False, span, selector=span if path[-2:] == SELECTOR else None)
    word = Span(start + line.column, start + line.column + len(line.key)) if line.key else _typed(text, start, offset)
    return Cursor("", "", (*above, text[word.start : word.end]), True, word, _siblings(text, first, line, offset))


def _typed(text: str, start: int, offset: int) -> Span:
    match = re.search(r"[\w./-]*\Z", text[start:offset])
    assert match is not None
    return Span(start + match.start(), offset)


def _header(text: str, first: int, line: _Line) -> _Line | None:
    """The line that opens the block of text in which a line stands."""
    least = len(line.text) - len(line.text.lstrip()) if line.text.strip() else len(line.text)
    for above in _above(text, first, line.start):
        if not above.text.strip():
            continue
        indent = len(above.text) - len(above.text.lstrip())
        if _BLOCK.search(above.text) and above.key:
            return above if indent < least else None
        least = min(least, indent)
        if least == 0:
            return None
    return None


def _end(text: str, header: _Line, start: int) -> int:
    """Where the block of text that a header opens ends, from the line at ``start`` on."""
    indent = len(header.text) - len(header.text.lstrip())
    end = start
    while end < len(text):
        line = _line(text, end)
        if line.text.strip() and len(line.text) - len(line.text.lstrip()) <= indent:
            break
        behind = text.find("\n", end)
        end = len(text) if behind < 0 else behind + 1
    return end


def _path(text: str, first: int, line: _Line, column: int | None = None) -> Keys:
    """The keys of the mappings around a line; ``column`` is where a key would stand on an empty one."""
    out: list[str] = []
    bound = line.column if column is None else column
    dashes = list(line.dashes)
    for above in _above(text, first, line.start):
        if above.is_blank:
            continue
        if dashes:
            # A list's items may stand as far left as the key that holds it.
            bound = dashes[0]
            if above.key and not (above.dashes and above.dashes[0] >= bound) and above.column <= bound:
                out.append(above.key)
                bound, dashes = above.column, list(above.dashes)
        elif above.column < bound:
            if above.key:
                out.append(above.key)
                bound, dashes = above.column, list(above.dashes)
        elif above.column == bound and above.dashes:
            dashes = list(above.dashes)
    return tuple(reversed(out))


def _siblings(text: str, first: int, line: _Line, offset: int) -> frozenset[str]:
    """The keys above a line in its own mapping."""
    bound = line.column if line.text.strip() else offset - line.start
    if line.dashes:
        return frozenset()
    out = set()
    for above in _above(text, first, line.start):
        if above.is_blank or above.column > bound:
            continue
        if above.column < bound:
            break
        out.add(above.key)
        if above.dashes:
            break
    return frozenset(out)


# The words of a selector around a place in it, found without parsing: while it is typed, it cannot be parsed.

QUOTE: Final = r"\\?[\"']"
_MEMBER: Final = re.compile(
    rf"device\.(?P<map>attributes|capacity)\[{QUOTE}(?P<domain>[^\"'\\]*)(?:{QUOTE}\](?:\.\??(?P<name>\w+))?)?"
)
_WORD: Final = re.compile(r"\w+")
_PARTS: Final = (
    ("domain", re.compile(rf"device\.(attributes|capacity)\[{QUOTE}([\w./-]*)\Z")),
    ("name", re.compile(rf"device\.(attributes|capacity)\[{QUOTE}([\w./-]+){QUOTE}\]\.\??(\w*)\Z")),
    (
        "value",
        re.compile(
            rf"device\.(attributes)\[{QUOTE}([\w./-]+){QUOTE}\]\.(\w+)\s*(?:[=!]=\s*|in\s*\[[^\]]*){QUOTE}([^\"'\\]*)\Z"
        ),
    ),
    ("driver", re.compile(rf"device\.driver\s*[=!]=\s*{QUOTE}([\w.-]*)\Z")),
    ("field", re.compile(r"\bdevice\.(\w*)\Z")),
    ("method", re.compile(r"[\w)\]\"']\.(\w*)\Z")),
    ("quoted", re.compile(rf"{QUOTE}[^\"'\\]*\Z")),
    ("word", re.compile(r"(\w*)\Z")),
)


class Member(NamedTuple):
    """An attribute or capacity that is named in a selector; ``name`` is empty if only the domain is written."""

    map: str
    domain: str
    name: str
    start: int
    end: int


class Typed(NamedTuple):
    """What is being typed: ``what`` is domain, name, value, driver, field, method, quoted or word.

    ``prefix`` is the part that is there already. ``map``, ``domain`` and ``name`` say of which attribute or
    capacity, as far as ``what`` is about one.
    """

    what: str
    prefix: str
    map: str = ""
    domain: str = ""
    name: str = ""


def member_at(text: str, offset: int) -> Member | None:
    """The attribute or capacity whose name or domain is at an offset."""
    for match in _MEMBER.finditer(text):
        if match.start() <= offset <= match.end():
            return Member(match["map"], match["domain"], match["name"] or "", match.start(), match.end())
    return None


def word_at(text: str, offset: int) -> str:
    """The identifier at an offset, empty if there is none."""
    return next((match[0] for match in _WORD.finditer(text) if match.start() <= offset <= match.end()), "")


def typed(before: str) -> Typed:
    """What is being typed at the end of a selector's text."""
    if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
        return _selector_words_typed(before, ("name", "field", "method", "word"))
    return _selector_words_typed(before, ("domain", "value", "driver", "quoted"))


def _selector_words_typed(before: str, among: tuple[str, ...]) -> Typed:
    for what, pattern in _PARTS:
        match = pattern.search(before) if what in among else None
        if match is None:
            continue
        groups = match.groups()
        if what in ("domain", "name", "value"):
            given = dict(zip(("map", "domain", "name"), groups[:-1], strict=False))
            return Typed(what, groups[-1], **given)
        return Typed(what, groups[0] if groups else "")
    return Typed("quoted", "")
