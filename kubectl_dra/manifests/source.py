"""The text of one input: decoded once, with line numbers by offset."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.errors import FileError
from kubectl_dra.manifests import nodes
from kubectl_dra.manifests.values import Node, ValueProblem, distinct_nodes

_LINE_END = re.compile(r"\r\n|\n|\r")
_LINE_FEED = re.compile(r"\n")
_BOMS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
# Of the control characters YAML and JSON texts hold only tab, line feed, carriage return and next line.
_BINARY = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class SourcePosition(NamedTuple):
    """A span of the text. Lines and columns count from 1, in characters; offsets count from 0.

    ``end_line`` and ``end_column`` are the position just after the last character, as is ``end_offset``.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    offset: int
    end_offset: int


class Source:
    """A named text. Offsets are into ``text``, which excludes ``bom``; line ends are unchanged."""

    __slots__ = ("_line_starts", "bom", "encoding", "name", "text")

    def __init__(self, name: str, text: str, encoding: str = "utf-8", bom: bytes = b"") -> None:
        self.name: Final = name
        self.text: Final = text
        self.encoding: Final = encoding
        self.bom: Final = bom
        self._line_starts: list[int] | None = None

    def with_text(self, text: str, name: str = "") -> Source:
        """The source with another text, under its name or another."""
        return Source(name or self.name, text, self.encoding, self.bom)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        starts = self._line_starts or self._lines()
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line_start(self, line: int) -> int | None:
        """The offset where a line, counted from 1, begins; None if there is no such line."""
        starts = self._line_starts or self._lines()
        return starts[line - 1] if 0 < line <= len(starts) else None

    def _lines(self) -> list[int]:
        ends = _LINE_END if "\r" in self.text else _LINE_FEED
        self._line_starts = starts = [0, *[match.end() for match in ends.finditer(self.text)]]
        return starts

    def span(self, start: int, end: int) -> SourcePosition:
        """The position of ``text[start:end]``."""
        return SourcePosition(*self.place(start), *self.place(end), start, end)

    def encode(self, text: str) -> bytes:
        """The bytes of a text in this input's encoding, with its byte order mark."""
        return self.bom + text.encode(self.encoding)


def decode(data: bytes | str, name: str) -> Source:
    """Decode UTF-8, or UTF-16 or UTF-32 identified by a byte order mark or by their zero bytes.

    Raises:
        FileError: the bytes are not text.
    """
    if isinstance(data, str):
        marked = data.startswith("\ufeff")
        return Source(name, data[marked:], bom="\ufeff".encode() if marked else b"")
    bom, encoding = next((mark for mark in _BOMS if data.startswith(mark[0])), (b"", _guessed(data)))
    try:
        text = data.decode(encoding) if not bom else data[len(bom) :].decode(encoding)
    except UnicodeDecodeError as error:
        raise FileError(f"not a text file: byte {error.start + len(bom)} is not {encoding.upper()}", name) from None
    return Source(name, text, encoding, bom)


def _guessed(data: bytes) -> str:
    if len(data) >= 2 and data[0] and not data[1]:
        return "utf-16-le"
    if len(data) >= 2 and not data[0] and data[1]:
        return "utf-16-be"
    return "utf-8"


def check_text(source: Source) -> None:
    """Raise FileError if the text has a control character, which occurs in binary data but not in YAML."""
    match = _BINARY.search(source.text)
    if match is not None:
        line, column = source.place(match.start())
        raise FileError(
            f"not a text file: it holds the control character U+{ord(match.group()):04X}", source.name, line, column
        )


# Finds the comments of a text, and distinguishes them from look-alikes in quoted and block scalars.

_COMMENT: Final = re.compile(r"(?:^|(?<=[\s\ufeff]))#[^\r\n]*", re.MULTILINE)
_LINE: Final = re.compile(r"\r|\n|\Z")


def comment_spans(text: str, roots: Iterable[Any]) -> list[tuple[int, int]]:
    """Start and end of each comment, in order; ``roots`` are the nodes of all documents of the text."""
    return comments_between(text, sorted(scalar_spans(text, roots)), 0, len(text)) if "#" in text else []


def comments_between(text: str, inside: Sequence[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int]]:
    """Start and end of each comment in whole lines of a text. ``inside`` are its ``scalar_spans``, sorted."""
    out = []
    for match in _COMMENT.finditer(text, begin, end):
        index = bisect_right(inside, (match.start(), len(text))) - 1
        if index < 0 or match.start() >= inside[index][1]:
            out.append((match.start(), match.start() + len(match.group().rstrip())))
    return out


def comments_of(text: str, roots: Iterable[Any]) -> list[str]:
    """The comments of a text, in order."""
    return [text[start:end] for start, end in comment_spans(text, roots)]


def scalar_spans(text: str, roots: Iterable[Any]) -> set[tuple[int, int]]:
    """The spans of quoted and block scalars, in which ``#`` starts no comment; ``roots`` as for ``comment_spans``."""
    out: set[tuple[int, int]] = set()
    for node in distinct_nodes(roots):
        if node.id == "scalar" and node.style:
            start, end = node.start_mark.index, node.end_mark.index
            if node.style in "|>":
                # A comment behind the indicator of a block is one, and so are those that follow its lines.
                match = _LINE.search(text, start)
                start = end if match is None else match.start()
            out.add((start, end))
    return out


# Why a text cannot be read, in one sentence: where the error is, and what to do.

# What only a template's author writes unquoted; workflow engines put other {{…}} into finished manifests.
HELM_ACTION: Final = re.compile(
    r"\{\{-?\s*(\.(Values|Release|Chart|Capabilities|Files|Template)\b|include\b|template\b)"
)
ACTION: Final = re.compile(r"\{\{|\{%")
_JSON: Final = re.compile(r'(?:---)?\s*(?P<object>\{\s*["}])')
_REFUSED: Final = re.compile(r"^(?:%|---[ \t]+[^ \t\r\n#])", re.MULTILINE)


class TemplateError(FileError):
    """The text is a template that must be rendered first."""


def is_template(source: Source, start: int, end: int) -> bool:
    """Whether a part of the text contains something like a template action."""
    return ACTION.search(source.text, start, end) is not None


def helm_action(source: Source, root: Node) -> TemplateError | None:
    """The error for a document that is valid YAML although it contains a Helm action outside of quotes."""
    for match in HELM_ACTION.finditer(source.text, root.start_mark.index, root.end_mark.index):
        if nodes.is_plain(root, match.start()):
            return template_error(source, source.place(match.start())[0])
    return None


def refused(source: Source, behind: int, start: int) -> FileError | None:
    """The error for text before ``start`` and after the previous document, which kubectl does not accept.

    Before it reads YAML, kubectl splits a stream at the lines that begin with ``---``
    (k8s.io/apimachinery/pkg/util/yaml).
    """
    match = _REFUSED.search(source.text, behind, start + 1)
    if match is None:
        return None
    line, column = source.place(match.start())
    if match[0] == "%":
        return FileError("kubectl does not read YAML directives; remove the line", source.name, line, column)
    words = "kubectl accepts only a comment after ---; begin the document on the next line"
    return FileError(words, source.name, line, column)


def template_error(source: Source, line: int) -> TemplateError:
    """The error for a template, at a line."""
    problem = "this is a template; render it first, for example: helm template CHART > rendered.yaml"
    return TemplateError(problem, source.name, line)


def _template_at(source: Source, span: tuple[int, int]) -> TemplateError | None:
    """The error to give if a syntax error in the span most likely means that the text is a template."""
    match = ACTION.search(source.text, *span) or HELM_ACTION.search(source.text)
    return None if match is None else template_error(source, source.place(match.start())[0])


def value_error(source: Source, problem: ValueProblem, root: Node) -> FileError:
    """The error for a value or key that Kubernetes' JSON cannot hold."""
    node = problem.node
    if type(node.value) is not str:
        template = _template_at(source, (root.start_mark.index, root.end_mark.index))
        if template is not None:
            return template
    line, column = source.place(node.start_mark.index)
    return FileError(str(problem), source.name, line, column)


def too_deep(source: Source) -> FileError:
    """The error for a text that is nested too deeply."""
    return FileError(f"nested more than {nodes.DEEPEST} levels deep", source.name)


_IN_QUOTES: Final = "while scanning a quoted scalar"


def syntax_error(source: Source, error: Exception, base: int, span: tuple[int, int]) -> FileError:
    """The error for a syntax error in a document with that span. The parser's offsets count from ``base``."""
    template = _template_at(source, span)
    if template is not None:
        return template
    if (broken := _json_error(source, span)) is not None:
        return broken
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    offset = getattr(error, "position", None) if mark is None else mark.index
    if not isinstance(offset, int):
        return FileError(f"not valid YAML: {problem}", source.name)
    offset = min(base + offset, len(source.text))
    line, column = source.place(offset)
    begin = getattr(error, "context_mark", None)
    if begin is not None and getattr(error, "context", None) == _IN_QUOTES and "unexpected" in str(problem):
        # It goes on up to the next marker of a document, or to the end of the text.
        line, column = source.place(min(base + begin.index, len(source.text)))
        problem = f"the text in quotes that begins here does not end{_cut_off(source, offset)}"
        return FileError(f"not valid YAML: {problem}", source.name, line, column)
    if mark is not None and source.text[offset : offset + 1] == "\t":
        problem = "a tab cannot indent here; use spaces"
    context = getattr(error, "context", None)
    if context and "\t" not in str(problem) and not str(problem).startswith("a tab"):
        problem = f"{problem} ({context})"
    return FileError(f"not valid YAML: {problem}{_cut_off(source, offset)}", source.name, line, column)


def _json_error(source: Source, span: tuple[int, int]) -> FileError | None:
    """The error for what was meant to be JSON: it begins like that, and its name does not say YAML."""
    if source.name.lower().endswith((".yaml", ".yml")) or not (match := _JSON.match(source.text, span[0])):
        return None
    from json import JSONDecodeError, JSONDecoder

    try:
        JSONDecoder().raw_decode(source.text, match.start("object"))
    except JSONDecodeError as error:
        # A string that does not end is told by where it begins.
        open_string = error.msg.startswith("Unterminated string")
        words = "a string does not end" if open_string else error.msg[:1].lower() + error.msg[1:]
        ends = _cut_off(source, len(source.text) if open_string else error.pos)
        line, column = source.place(min(error.pos, len(source.text)))
        return FileError(f"not valid JSON: {words}{ends}", source.name, line, column)
    except RecursionError:
        return None
    return None


def _cut_off(source: Source, offset: int) -> str:
    """What to add where nothing comes behind a mistake."""
    return "" if source.text[offset:].strip() else "; the text ends here and may be truncated"
