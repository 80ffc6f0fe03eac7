"""Texts to documents: each an object with the position of everything in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.source import Position, Source, check_text, decode
from kubectl_dra.manifests.values import Builder, Node, ValueProblem, is_merge, key_text, scalar

Path = tuple[str | int, ...]
"""Keys and list indices from the document's root."""

_JSON_START = re.compile(r"\s*\{")
# What only a template's author writes unquoted; workflow engines put other {{…}} into finished manifests.
_HELM = re.compile(r"\{\{-?\s*(\.(Values|Release|Chart|Capabilities|Files|Template)\b|include\b|template\b)")
_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_LONG_LINE = re.compile(r"[^\n]{800}")
_DEEPEST: Final = 400
_LARGE: Final = 8_000_000


class TemplateError(InputError):
    """The text is a template that has to be rendered first."""


class NotAnObject(InputError):
    """The text is YAML or JSON, but a list or a scalar, or has nothing in it."""


class NodePair(NamedTuple):
    """The node of a value, and of its key where it has one."""

    key: Node | None
    value: Node


class Document:
    """One YAML or JSON document. ``index`` counts from 0, ``line`` from 1."""

    __slots__ = ("_root", "index", "line", "object", "source")

    def __init__(
        self, source: Source, index: int, line: int, object: dict[str, Any], root: Node | tuple[int, int]
    ) -> None:
        self.source: Final = source
        self.index: Final = index
        self.line: Final = line
        self.object: Final = object
        # For JSON the offsets of the document, until someone asks for a position.
        self._root = root

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

    def nodes(self, path: Path) -> NodePair | None:
        """The nodes at a path, or None if the document has nothing there. Merge keys are followed."""
        pair = NodePair(None, self.root)
        for part in path:
            found = _child(pair.value, part)
            if found is None:
                return None
            pair = found
        return pair

    def position(self, path: Path = ()) -> Position:
        """Where the value at the path is; where it is missing, its nearest parent that exists."""
        return self._span(self._nearest(path).value)

    def key_position(self, path: Path) -> Position:
        """Where the key of the value is; for a list item, and where the path is missing, as ``position``."""
        pair = self._nearest(path)
        return self._span(pair.value if pair.key is None else pair.key)

    def place(self, path: Path = ()) -> str:
        """``FILE:LINE:COLUMN`` of the key at the path."""
        position = self.key_position(path)
        return f"{self.name}:{position.line}:{position.column}"

    def _nearest(self, path: Path) -> NodePair:
        pair = NodePair(None, self.root)
        for part in path:
            found = _child(pair.value, part)
            if found is None:
                break
            pair = found
        return pair

    def _span(self, node: Node) -> Position:
        start, end = node.start_mark.index, _end(node)
        text = self.source.text
        # A block scalar's last line end and the blanks after a block are not part of the value.
        while end > start and text[end - 1] in " \t\r\n":
            end -= 1
        return self.source.span(start, end)


def read_documents(data: str | bytes, source: str, *, strict: bool = False) -> tuple[Document, ...]:
    """As ``parse``, for the text or bytes of an input that is called ``source`` in messages."""
    return parse(decode(data, source), strict=strict)


def parse(source: Source, *, strict: bool = False) -> tuple[Document, ...]:
    """Reads the YAML or JSON documents of one input.

    Documents without content are left out. With ``strict`` a duplicate key is an error; else the last wins.

    Raises:
        TemplateError: a Helm, Jinja or similar template.
        NotAnObject: nothing in it, or a document that is not a mapping.
        InputError: not text, not YAML, or without a JSON value.
    """
    documents: tuple[Document, ...] | None = None
    if _JSON_START.match(source.text):
        documents = _json_documents(source, strict)
    if documents is None:
        check_text(source)
        documents = tuple(_yaml_documents(source, strict))
    if not documents:
        raise NotAnObject(f"{source.name}: there is nothing in it")
    return documents


def _json_documents(source: Source, strict: bool) -> tuple[Document, ...] | None:
    """The documents of a JSON stream; None if it is not JSON (then it may be YAML in flow style)."""
    import json

    text = source.text
    decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_unique_keys if strict else None)
    documents: list[Document] = []
    offset = _blanks(text, 0)
    try:
        while offset < len(text):
            value, end = decoder.raw_decode(text, offset)
            line = 1 if offset == 0 else source.place(offset)[0]
            if not isinstance(value, dict):
                return None
            documents.append(Document(source, len(documents), line, value, (offset, end)))
            offset = _blanks(text, end)
    except _DuplicateKey as error:
        raise InputError(f'{source.name}: the key "{error}" is there twice in one object') from None
    except RecursionError:
        raise InputError(f"{source.name}: nested too deeply") from None
    except ValueError as error:
        # As YAML a text of this size would take minutes, to find the same mistake.
        if len(text) < _LARGE:
            return None
        line, column = source.place(min(getattr(error, "pos", 0), len(text)))
        problem = str(getattr(error, "msg", error))
        raise InputError(f"{source.name}:{line}:{column}: not valid JSON: {problem}") from None
    return tuple(documents)


class _DuplicateKey(Exception):
    pass


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise _DuplicateKey(key)
        out[key] = value
    return out


def _no_constant(text: str) -> Any:
    raise ValueError(text)


_BLANK = re.compile(r"[ \t\r\n]*")


def _blanks(text: str, offset: int) -> int:
    found = _BLANK.match(text, offset)
    return offset if found is None else found.end()


def _yaml_documents(source: Source, strict: bool) -> Iterator[Document]:
    import yaml

    text = source.text
    _check_depth(source)
    aliases = "*" in text and "&" in text
    loader = _loader()(text)
    index = 0
    try:
        while loader.check_node():
            root = loader.get_node()
            try:
                value = Builder(strict, aliases).build(root)
            except ValueProblem as problem:
                raise _value_error(source, problem) from None
            if value is not None:
                yield _yaml_document(source, index, value, root)
            index += 1
    except yaml.YAMLError as error:
        raise _syntax_error(source, error) from None
    except RecursionError:
        raise InputError(f"{source.name}: nested too deeply") from None
    finally:
        loader.dispose()


def _yaml_document(source: Source, index: int, value: Any, root: Node) -> Document:
    line, column = source.place(root.start_mark.index)
    if not isinstance(value, dict):
        if "{{" in source.text or "{%" in source.text:
            raise _template_error(source, line)
        found = "a list" if isinstance(value, list) else "a scalar"
        raise NotAnObject(f"{source.name}:{line}:{column}: a manifest is a mapping, this is {found}")
    template = _HELM.search(source.text)
    if template is not None and _is_plain(root, template.start()):
        raise _template_error(source, source.place(template.start())[0])
    return Document(source, index, line, value, root)


def _is_plain(root: Node, offset: int) -> bool:
    """Whether the offset is inside a plain scalar or flow collection of the document, not a quoted text."""
    node = root
    while True:
        parts = node.value
        if type(parts) is str:
            return node.start_mark.index <= offset < node.end_mark.index and not node.style
        inner = parts if node.id == "sequence" else [part for pair in parts for part in pair]
        for part in inner:
            if part.start_mark.index <= offset < part.end_mark.index:
                node = part
                break
        else:
            return False


_Loader: type[Any] | None = None


def _loader() -> type[Any]:
    """A PyYAML loader that leaves untagged nodes to ``values``, with the C parser if there is one."""
    global _Loader
    if _Loader is not None:
        return _Loader
    import yaml

    class Untyped:
        def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
            if kind is yaml.ScalarNode and not implicit[0]:
                return "tag:yaml.org,2002:str"
            return "?"

        def descend_resolver(self, current_node: Any, current_index: Any) -> None:
            pass

        def ascend_resolver(self) -> None:
            pass

    if yaml.__with_libyaml__:
        from yaml._yaml import CParser

        class FastLoader(Untyped, CParser):
            pass

        _Loader = FastLoader
    else:
        from yaml.composer import Composer
        from yaml.parser import Parser
        from yaml.reader import Reader
        from yaml.scanner import Scanner

        class SlowLoader(Untyped, Reader, Scanner, Parser, Composer):
            def __init__(self, stream: Any) -> None:
                Reader.__init__(self, stream)
                Scanner.__init__(self)
                Parser.__init__(self)
                Composer.__init__(self)

        _Loader = SlowLoader
    return _Loader


def _check_depth(source: Source) -> None:
    """Refuses texts so deeply nested that composing them would exhaust the stack of the C parser."""
    text = source.text
    if text.count("[") + text.count("{") < 800 and not _LONG_LINE.search(text):
        return
    import yaml

    depth = 0
    loader = _loader()(text)
    try:
        while loader.check_event():
            event: Any = loader.get_event()
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _DEEPEST:
                    raise InputError(f"{source.name}: nested more than {_DEEPEST} levels deep")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError as error:
        raise _syntax_error(source, error) from None
    finally:
        loader.dispose()


def _json_root(source: Source, start: int, end: int) -> Node:
    """The node graph of the JSON document at the offsets, which stay offsets into the whole text."""
    # The YAML parser refuses pairs of surrogate escapes; other escapes of the same length keep positions,
    # as blanks do instead of what is before the document.
    safe = " " * start + _SURROGATES.sub(r"\\u003f\\u003f", source.text[start:end])
    loader = _loader()(safe)
    try:
        loader.check_node()
        return loader.get_node()
    finally:
        loader.dispose()


def _child(node: Node, part: str | int) -> NodePair | None:
    if node.id == "sequence":
        if isinstance(part, int) and 0 <= part < len(node.value):
            return NodePair(None, node.value[part])
        return None
    if node.id != "mapping":
        return None
    found: NodePair | None = None
    for key, value in node.value:
        if is_merge(key):
            for merged in value.value if value.id == "sequence" else (value,):
                below = _child(merged, part)
                if below is not None:
                    found = below
                    break
        elif type(key.value) is str and _key(key) == part:
            found = NodePair(key, value)
    return found


def _key(node: Node) -> str:
    return key_text(scalar(node.value), node) if node.tag == "?" else str(node.value)


def _end(node: Node) -> int:
    """The end of a node's own text: PyYAML ends a block collection only where the next token begins."""
    while node.id != "scalar" and not node.flow_style and node.value:
        last = node.value[-1] if node.id == "sequence" else node.value[-1][1]
        if last.end_mark.index <= last.start_mark.index or last.start_mark.index < node.start_mark.index:
            # An empty value ends at its key; an alias has the marks of its anchor.
            if node.id == "mapping":
                node = node.value[-1][0]
            else:
                return int(node.end_mark.index)
        else:
            node = last
    return int(node.end_mark.index)


def _template_error(source: Source, line: int) -> TemplateError:
    return TemplateError(
        f"{source.name}:{line}: this is a template; render it first, for example: helm template CHART > rendered.yaml"
    )


def _template_line(source: Source) -> int | None:
    found = re.search(r"\{\{|\{%", source.text)
    return None if found is None else source.place(found.start())[0]


def _value_error(source: Source, problem: ValueProblem) -> InputError:
    offset = problem.node.start_mark.index
    if type(problem.node.value) is not str and (template := _template_line(source)) is not None:
        return _template_error(source, template)
    line, column = source.place(offset)
    return InputError(f"{source.name}:{line}:{column}: {problem}")


def _syntax_error(source: Source, error: Exception) -> InputError:
    template = _template_line(source)
    if template is not None:
        return _template_error(source, template)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    if mark is None:
        position = getattr(error, "position", None)
        if not isinstance(position, int):
            return InputError(f"{source.name}: not valid YAML: {problem}")
        line, column = source.place(min(position, len(source.text)))
    else:
        offset = min(mark.index, len(source.text))
        line, column = source.place(offset)
        if source.text[offset : offset + 1] == "\t":
            problem = "a tab cannot indent here; use spaces"
    context = getattr(error, "context", None)
    if context and "\t" not in str(problem) and not str(problem).startswith("a tab"):
        problem = f"{problem} ({context})"
    return InputError(f"{source.name}:{line}:{column}: not valid YAML: {problem}")
