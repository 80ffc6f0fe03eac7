"""PyYAML's node graphs: the loader that builds them, and navigation in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from operator import is_
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.manifests.values import PLAIN, Node, is_merge, key_text, scalar

DEEPEST: Final = 400
"""Texts nested more deeply than this are refused."""


class NodePair(Struct, frozen=True):
    """The node of a value, and of its key if it has one."""

    key: Node | None
    value: Node


class TooDeep(Exception):
    """The text is nested more than ``DEEPEST`` levels deep."""


_ANCHOR: Final = re.compile(r"(?<![^\s,\[{])&([^\s,\[\]{}]+)")


@cache
def loader() -> type[Any]:
    """A PyYAML loader that leaves untagged nodes to ``values``; uses the C parser if available."""
    import yaml

    if not yaml.__with_libyaml__:
        return _slow_loader()
    from yaml._yaml import CParser

    class FastLoader(_untyped(), CParser):  # type: ignore[misc]
        pass

    return FastLoader


@cache
def loader_of_json() -> type[Any]:
    """A slower loader that accepts all JSON keys: longer than 1,024 characters, or on a line before their colon."""

    class LoaderOfJson(_slow_loader()):  # type: ignore[misc]
        def stale_possible_simple_keys(self) -> None:
            """Do not discard possible keys."""

    return LoaderOfJson


@cache
def _loader_of_repeated() -> type[Any]:
    """A slower loader that takes an anchor defined twice, of which an alias means the nearest above, as YAML 1.2 says
    and kubectl does; PyYAML's composers refuse it.
    """
    import yaml

    class LoaderOfRepeated(_untyped(), yaml.composer.Composer, _parser()):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            _parser().__init__(self, stream)
            yaml.composer.Composer.__init__(self)

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.peek_event()
            if not isinstance(event, yaml.AliasEvent):
                self.anchors.pop(event.anchor, None)
            return super().compose_node(parent, index)

    return LoaderOfRepeated


@cache
def _parser() -> type[Any]:
    """PyYAML's parser of events: the one in C if available."""
    import yaml

    if yaml.__with_libyaml__:
        from yaml._yaml import CParser

        return cast("type[Any]", CParser)
    return _slow_loader()


def _has_repeated_anchors(text: str) -> bool:
    anchors = _ANCHOR.findall(text) if "&" in text and "*" in text else []
    return len(anchors) > len(set(anchors))


def _slow_loader() -> type[Any]:
    from yaml.composer import Composer
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class SlowLoader(_untyped(), Reader, Scanner, Parser, Composer):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            Reader.__init__(self, stream)
            Scanner.__init__(self)
            Parser.__init__(self)
            Composer.__init__(self)

    return SlowLoader


def _untyped() -> type[Any]:
    from yaml import ScalarNode

    class Untyped:
        def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
            if kind is ScalarNode and not implicit[0]:
                return "tag:yaml.org,2002:str"
            return PLAIN

        # Called before and after every node; functions written in C cost least there.
        descend_resolver = staticmethod(is_)
        ascend_resolver = staticmethod(int)

    return Untyped


def roots(text: str) -> Iterator[Node]:
    """The root node of each document of a YAML text, one after another.

    Raises:
        TooDeep: before anything else, if composing the text would exhaust the C parser's stack.
        yaml.YAMLError: the text is not YAML from there on.
    """
    _check_depth(text)
    stream = (_loader_of_repeated() if _has_repeated_anchors(text) else loader())(text)
    try:
        while stream.check_node():
            yield stream.get_node()
    finally:
        stream.dispose()


def _check_depth(text: str) -> None:
    if max(map(len, text.split("\n"))) < 2 * DEEPEST and not _has_many_brackets(text):
        return
    import yaml

    depth = 0
    stream = loader()(text)
    try:
        while stream.check_event():
            event: Any = stream.get_event()
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEEPEST:
                    raise TooDeep
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    finally:
        stream.dispose()


def _has_many_brackets(text: str) -> bool:
    """Whether any document has enough brackets to nest that deeply. Each is examined by itself."""
    start = 0
    while start < len(text):
        end = text.find("\n---", start + 1)
        end = len(text) if end < 0 else end
        if text.count("[", start, end) + text.count("{", start, end) >= 2 * DEEPEST:
            return True
        start = end
    return False


def is_plain(root: Node, offset: int) -> bool:
    """Whether the offset is inside a plain scalar or flow collection below the root, and not in quoted text."""
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


def end(node: Node) -> int:
    """The end of a node's own text. PyYAML ends a block collection only at the next token."""
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


class Crossing(NamedTuple):
    """The first step of a path, ``path[-1]``, whose value is not written in its place.

    ``source`` is the mapping whose key a merge key brings (``merged``), or what an alias stands for.
    """

    path: FieldPath
    source: Node
    merged: bool


class NodeFinder:
    """Finds the nodes of paths below one root, some of which are reached in several ways. The keys of each mapping are
    read once.
    """

    __slots__ = ("_aliases", "_entries", "root")

    def __init__(self, root: Node) -> None:
        self.root: Final = root
        self._entries: Final = ByIdentity[Node, dict[str | int, tuple[Node, Node, Node]]]()
        self._aliases: Final = ByIdentity[Node, list[bool]]()

    def nearest(self, path: FieldPath) -> tuple[NodePair, int]:
        """The nodes of the longest existing prefix of a path, and its length. Merge keys are followed."""
        key, node, length = None, self.root, 0
        for part in path:
            if node.id == "mapping":
                entry = self.entries(node).get(part)
                if entry is None:
                    break
                _, key, node = entry
            elif node.id == "sequence" and isinstance(part, int) and 0 <= part < len(node.value):
                key, node = None, node.value[part]
            else:
                break
            length += 1
        return NodePair(key, node), length

    def entries(self, node: Node) -> dict[str | int, tuple[Node, Node, Node]]:
        """The entries of a mapping by key, each as the mapping in whose text it is (this one, or a merged one), the
        key and the value. For a duplicate key the last one counts, as in its value.
        """
        return self._entries.of(node, self._read)

    def _read(self, node: Node) -> dict[str | int, tuple[Node, Node, Node]]:
        out: dict[str | int, tuple[Node, Node, Node]] = {}
        for key, value in node.value:
            if is_merge(key):
                for merged in reversed(value.value) if value.id == "sequence" else (value,):
                    if merged.id == "mapping":
                        out.update(self.entries(merged))
            elif type(key.value) is str:
                out[written_key(key)] = node, key, value
        return out

    def crossing(self, path: FieldPath) -> Crossing | None:
        """The first step of a path whose value is not written in its place; None if all are, or there is nothing."""
        node = self.root
        for length, part in enumerate(path, 1):
            if node.id == "mapping" and (entry := self.entries(node).get(part)) is not None:
                source, key, value = entry
                if source is not node:
                    return Crossing(path[:length], source, True)
                alias = value.start_mark.index < key.start_mark.index
            elif node.id == "sequence" and isinstance(part, int) and part < len(node.value):
                value = node.value[part]
                alias = self._aliases.of(node, _aliases_of)[part]
            else:
                return None
            if alias:
                return Crossing(path[:length], value, False)
            node = value
        return None

    def places(self) -> Iterator[tuple[FieldPath, Node]]:
        """All values with their paths, in order. Merge keys are followed."""
        stack: list[tuple[FieldPath, Node]] = [((), self.root)]
        while stack:
            path, node = stack.pop()
            yield path, node
            if node.id == "sequence":
                stack += reversed([((*path, index), item) for index, item in enumerate(node.value)])
            elif node.id == "mapping":
                stack += reversed([((*path, name), value) for name, (_, _, value) in self.entries(node).items()])


def _aliases_of(node: Node) -> list[bool]:
    """Which items of a list are aliases: these have the marks of their anchors."""
    out: list[bool] = []
    behind = node.start_mark.index
    for item in node.value:
        out.append(item.start_mark.index < behind)
        behind = max(behind, item.end_mark.index)
    return out


def written_key(node: Node) -> str:
    """The key that a scalar node stands for."""
    return key_text(scalar(node.value), node) if node.tag == PLAIN else str(node.value)
