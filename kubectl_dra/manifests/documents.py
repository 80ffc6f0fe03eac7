"""Parses texts into documents: objects with the position of everything in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import FileError
from kubectl_dra.manifests import nodes
from kubectl_dra.manifests.nodes import NodeFinder, NodePair
from kubectl_dra.manifests.source import (
    Source,
    SourcePosition,
    check_text,
    decode,
    helm_action,
    is_template,
    refused,
    syntax_error,
    template_error,
    too_deep,
    value_error,
)
from kubectl_dra.manifests.source import TemplateError as TemplateError
from kubectl_dra.manifests.values import Builder, Node, ValueProblem

_JSON_START = re.compile(r"\s*\{")
_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_LARGE: Final = 8_000_000


class NotAnObject(FileError):
    """The text is YAML or JSON, but is a list, a scalar or empty."""


class Document:
    """One YAML or JSON document. ``index`` counts from 0, ``line`` from 1.

    ``repeated``: some mapping has a duplicate key, of which the last counts.
    """

    __slots__ = ("_finder", "_root", "index", "line", "object", "repeated", "source")

    def __init__(
        self,
        source: Source,
        index: int,
        line: int,
        object: dict[str, Any],
        root: Node | tuple[int, int],
        repeated: bool = False,
    ) -> None:
        self.source: Final = source
        self.index: Final = index
        self.line: Final = line
        self.object: Final = object
        self.repeated: Final = repeated
        # For JSON the offsets of the document, until someone asks for a position.
        self._root = root
        self._finder: NodeFinder | None = None

    @property
    def name(self) -> str:
        """The name of the input, such as its path."""
        return self.source.name

    @property
    def root(self) -> Node:
        """PyYAML's node graph of the document; tags are as ``values`` defines them."""
        if isinstance(self._root, tuple):
            self._root = _json_root(self.source, *self._root)
        return self._root

    def nodes(self, path: FieldPath) -> NodePair | None:
        """The nodes at a path, or None if the document has none there. Merge keys are followed."""
        pair, length = self.finder.nearest(path)
        return pair if length == len(path) else None

    @property
    def finder(self) -> NodeFinder:
        """Finds the nodes of paths."""
        if self._finder is None:
            self._finder = NodeFinder(self.root)
        return self._finder

    def position(self, path: FieldPath = ()) -> SourcePosition:
        """The position of the value at the path or, if it is missing, of its nearest existing parent."""
        return self.span(self.finder.nearest(path)[0].value)

    def key_position(self, path: FieldPath) -> SourcePosition:
        """The position of the value's key; for list items and missing paths, like ``position``."""
        pair, _ = self.finder.nearest(path)
        return self.span(pair.value if pair.key is None else pair.key)

    def place(self, path: FieldPath = ()) -> str:
        """``FILE:LINE:COLUMN`` of the key at the path."""
        position = self.key_position(path)
        return f"{self.name}:{position.line}:{position.column}"

    def span(self, node: Node) -> SourcePosition:
        """The position of a node's own text."""
        start, end = node.start_mark.index, nodes.end(node)
        text = self.source.text
        # A block scalar's last line end and the blanks after a block are not part of the value.
        while end > start and text[end - 1] in " \t\r\n":
            end -= 1
        return self.source.span(start, end)


class Skipped(NamedTuple):
    """A document that cannot be read, and why. ``number`` counts like the ``index`` of documents, ``line`` from 1."""

    number: int
    line: int
    error: FileError


def read_documents(data: str | bytes, source: str, *, strict: bool = False) -> tuple[Document, ...]:
    """Like ``parse``, for the text or bytes of an input that messages call ``source``."""
    return parse(decode(data, source), strict=strict)


def parse(source: Source, *, strict: bool = False) -> tuple[Document, ...]:
    """Read the YAML or JSON documents of one input.

    Empty documents are left out. With ``strict`` a duplicate key is an error; otherwise the last one counts.

    Raises:
        TemplateError: a Helm, Jinja or similar template.
        NotAnObject: no content, or a document that is not a mapping.
        FileError: not text, not YAML, or without a JSON value.
    """
    documents: list[Document] = []
    for document in each_document(source, strict=strict):
        if isinstance(document, Skipped):
            raise document.error
        documents.append(document)
    if not documents:
        raise NotAnObject("there is nothing in it", source.name)
    return tuple(documents)


def each_document(source: Source, *, strict: bool = False) -> Iterator[Document | Skipped]:
    """The documents of one input as they are read, and the reason for each that cannot be read.

    A syntax error in one document does not hide those before it nor, in YAML, those after its end (a line
    that begins with ``---``). Only one document is in memory at a time. ``strict`` is as for ``parse``. An
    empty text yields nothing.
    """
    if _JSON_START.match(source.text):
        documents = _json_documents(source, strict)
        if documents is not None:
            yield from documents
            return
    try:
        check_text(source)
    except FileError as error:
        yield Skipped(0, 1, error)
        return
    yield from _yaml_documents(source, source.text, strict)


def _json_documents(source: Source, strict: bool) -> list[Document | Skipped] | None:
    """The documents of a JSON stream; None if it is not JSON (it may be YAML in flow style)."""
    import json

    text = source.text
    repeated = False

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        out = dict(pairs)
        if len(out) != len(pairs):
            repeated = True
            if strict:
                seen: set[str] = set()
                raise _DuplicateKey(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
        return out

    decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=unique)
    documents: list[Document | Skipped] = []
    offset = _blanks(text, 0)
    error: FileError
    try:
        while offset < len(text):
            value, end = decoder.raw_decode(text, offset)
            if not isinstance(value, dict):
                return None
            line = 1 if offset == 0 else source.place(offset)[0]
            documents.append(Document(source, len(documents), line, value, (offset, end), repeated))
            repeated = False
            offset = _blanks(text, end)
        return documents
    except _DuplicateKey as problem:
        error = FileError(f'the key "{problem}" is there twice in one object', source.name)
    except RecursionError:
        error = FileError("nested too deeply", source.name)
    except ValueError as problem:
        # As YAML a text of this size would take minutes, to find the same mistake.
        if len(text) < _LARGE and not (documents and text[offset] == "{"):
            return None
        line, column = source.place(min(getattr(problem, "pos", 0), len(text)))
        words = str(getattr(problem, "msg", problem))
        error = FileError(f"not valid JSON: {words}", source.name, line, column)
    return [*documents, Skipped(len(documents), source.place(offset)[0], error)]


class _DuplicateKey(Exception):
    pass


def _no_constant(text: str) -> Any:
    raise ValueError(text)


_BLANK = re.compile(r"[ \t\r\n]*")


def _blanks(text: str, offset: int) -> int:
    match = _BLANK.match(text, offset)
    return offset if match is None else match.end()


def _yaml_documents(
    source: Source, text: str, strict: bool, first: int = 0, recover: bool = True
) -> Iterator[Document | Skipped]:
    """The documents of ``text``: the source's text, with blanks in place of what has already been read."""
    import yaml

    builder = Builder(strict, "*" in text and "&" in text)
    templates = "{{" in text or "{%" in text
    index, behind = first, 0
    try:
        for root in nodes.roots(text):
            problem = refused(source, behind, root.start_mark.index)
            behind = root.end_mark.index
            try:
                value = builder.build(root)
                if value is not None and problem is not None:
                    raise problem
                if value is not None:
                    yield _yaml_document(source, index, value, root, templates, builder.repeated)
            except ValueProblem as wrong:
                yield Skipped(index, source.place(root.start_mark.index)[0], value_error(source, wrong, root))
            except FileError as wrong:
                yield Skipped(index, source.place(root.start_mark.index)[0], wrong)
            index += 1
        return
    except yaml.YAMLError as problem:
        following = SEPARATOR.search(text, behind + 1)
        span = (behind, len(text) if following is None else following.start())
        error = syntax_error(source, problem, 0, span)
    except nodes.TooDeep:
        error = too_deep(source)
    except RecursionError:
        error = FileError("nested too deeply", source.name)
    if recover:
        yield from _separately(source, text, strict, index, behind, error)
    else:
        yield Skipped(index, source.place(_content(text, behind))[0], error)


SEPARATOR: Final = re.compile(r"(?<![^\r\n])---(?=[ \t\r\n]|\Z)")


def _separately(
    source: Source, text: str, strict: bool, index: int, behind: int, error: FileError
) -> Iterator[Document | Skipped]:
    """The documents after the offset where the text stops being YAML, examined one by one.

    Broken ones are skipped. The others are read with blanks in place of everything else, to keep their
    positions. The time is linear in the length of the text.
    """
    cuts = [behind, *(match.start() for match in SEPARATOR.finditer(text, behind + 1)), len(text)]
    spans = list(pairwise(cuts))
    counts = [_documents_in(source, text[start:end], start) for start, end in spans]
    bad = [at for at, count in enumerate(counts) if not isinstance(count, int)]
    # What the whole text was refused for is more exact than what its part is; and some part it must be.
    counts[next(iter(bad or [at for at, span in enumerate(spans) if text[slice(*span)].strip()]), 0)] = error
    pieces = [_blanked(text[:behind])]
    number = first = index
    for (start, end), count in zip(spans, counts, strict=True):
        piece = text[start:end]
        if isinstance(count, int):
            number += count
        else:
            yield Skipped(number, source.place(_content(text, start))[0], count)
            # Behind its marker the document is then one without content; without a marker it is none.
            marked = piece.startswith("---")
            piece = f"---{_blanked(piece[3:])}" if marked else _blanked(piece)
            first += not marked
            number += 1
        pieces.append(piece)
    yield from _yaml_documents(source, "".join(pieces), strict, first, recover=False)


def _documents_in(source: Source, piece: str, start: int) -> int | FileError:
    """The number of documents in a separate piece of the text, or the first error in it."""
    import yaml

    try:
        return sum(1 for _ in nodes.roots(piece))
    except yaml.YAMLError as problem:
        return syntax_error(source, problem, start, (start, start + len(piece)))
    except nodes.TooDeep:
        return too_deep(source)
    except RecursionError:
        return FileError("nested too deeply", source.name)


_NOT_BREAK: Final = re.compile(r"[^\r\n]+")


def _blanked(text: str) -> str:
    return _NOT_BREAK.sub(lambda match: " " * len(match[0]), text)


_CONTENT: Final = re.compile(r"(?:\s+|#[^\r\n]*)*")


def _content(text: str, offset: int) -> int:
    """Where the next document after an offset begins, ignoring blanks and comments."""
    match = _CONTENT.match(text, offset)
    return offset if match is None or match.end() == len(text) else match.end()


def _yaml_document(source: Source, index: int, value: Any, root: Node, templates: bool, repeated: bool) -> Document:
    start, end = root.start_mark.index, root.end_mark.index
    line, column = source.place(start)
    if not isinstance(value, dict):
        if templates and is_template(source, start, end):
            raise template_error(source, line)
        shape = "a list" if isinstance(value, list) else "a scalar"
        raise NotAnObject(f"a manifest is a mapping, this is {shape}", source.name, line, column)
    if templates:
        helm = helm_action(source, root)
        if helm is not None:
            raise helm
    return Document(source, index, line, value, root, repeated)


def _json_root(source: Source, start: int, end: int) -> Node:
    """The node graph of the JSON document at the offsets, which remain offsets into the whole text."""
    # The YAML parser refuses pairs of surrogate escapes; other escapes of the same length keep positions,
    # as blanks do instead of what is before the document.
    safe = " " * start + _SURROGATES.sub(r"\\u003f\\u003f", source.text[start:end])
    from yaml import YAMLError

    try:
        return _only_node(nodes.loader(), safe)
    except YAMLError:
        return _only_node(nodes.loader_of_json(), safe)


def _only_node(loader: type[Any], text: str) -> Node:
    stream = loader(text)
    try:
        stream.check_node()
        return stream.get_node()
    finally:
        stream.dispose()


# Texts of which some documents are templates with bare placeholders, such as ``{{HF_TOKEN}}``. These say nothing about
# the others, unlike those with control flow, and are read as comments of the same length, so that offsets stay.

_ACTION: Final = re.compile(r"\{\{(?P<name>.*?)\}\}|\{[{%#]", re.DOTALL)
_BARE: Final = re.compile(r"\s*(?!(?:end|else|break|continue)\b)[A-Za-z_][\w-]*\s*")
# A directive or the end of a document, behind which a piece would hold another one.
_NOT_ONE: Final = re.compile(r"^(?:%|\.\.\.(?:\s|\Z))|resource\.k8s\.io", re.MULTILINE)
_TEXT_LINE: Final = re.compile(r"[^\r\n]+")
# Characters for private use, which no manifest has: one for each document.
_MARKS: Final = range(0xE000, 0xE100)


class Unfilled(NamedTuple):
    """A document that is a template: the offsets of its lines, the first of them, and its first placeholder."""

    start: int
    end: int
    line: int
    placeholder: str


class Covered(NamedTuple):
    """A text and, as ``source``, the same with the documents ``unfilled`` as comments."""

    source: Source
    whole: Source
    unfilled: tuple[Unfilled, ...]

    @property
    def templates(self) -> list[str]:
        """The documents as they are written."""
        return [self.whole.text[document.start : document.end].strip() for document in self.unfilled]

    def uncovered(self, text: str) -> str:
        """``source`` after edits, which keep comments, with these documents as they were."""
        for document in self.unfilled:
            span = slice(document.start, document.end)
            text = text.replace(self.source.text[span], self.whole.text[span])
        return text


def covered(source: Source) -> Covered | None:
    """The text with its templates as comments; None if there are none, or more than bare placeholders is in them."""
    if "{{" not in source.text or any(chr(mark) in source.text for mark in _MARKS):
        return None
    unfilled = []
    for document in each_document(source):
        if isinstance(document, Skipped):
            piece = _unfilled(source, document)
            if piece is None:
                return None
            unfilled.append(piece)
    if not 0 < len(unfilled) <= len(_MARKS):
        return None
    text, out, at = source.text, "", 0
    for mark, piece in zip(_MARKS, unfilled, strict=False):
        out += text[at : piece.start] + _as_comments(text[piece.start : piece.end], chr(mark))
        at = piece.end
    return Covered(source.with_text(out + text[at:]), source, tuple(unfilled))


def _as_comments(piece: str, mark: str) -> str:
    return _TEXT_LINE.sub(lambda line: f"#{mark * (len(line[0]) - 1)}", piece)


def _unfilled(source: Source, skipped: Skipped) -> Unfilled | None:
    if not isinstance(skipped.error, TemplateError):
        return None
    text = source.text
    begin = source.line_start(skipped.line) or 0
    markers = [match.start() for match in SEPARATOR.finditer(text)]
    start = max((at for at in markers if at <= begin), default=0)
    if text.startswith("---", start):
        behind = _TEXT_LINE.match(text, start)
        start = start + 3 if behind is None else behind.end()
    end = min((at for at in markers if at >= start), default=len(text))
    piece = text[start:end]
    # Control flow and comments have no name.
    names = [match["name"] or "" for match in _ACTION.finditer(piece)]
    if _NOT_ONE.search(piece) or not names or not all(map(_BARE.fullmatch, names)):
        return None
    return Unfilled(start, end, skipped.line, f"{{{{{names[0]}}}}}")
