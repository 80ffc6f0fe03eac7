"""Large Lists item by item, so that nobody has to hold all of their raw objects at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from kubectl_dra.manifests.source import Source

LARGE: Final = 1_000_000
"""Characters from which on reading item by item is worth it."""

_Decode = Callable[[str, int], tuple[Any, int]]
_FIRST_KEY = re.compile(r'\{"\w+":')
_SEPARATOR = re.compile(r",[ \t\r]*")
_BLANK = re.compile(r"[ \t\r\n]*")
_YAML_ITEMS = re.compile(r"^items:[ \t]*\n(?=- )", re.MULTILINE)
# What ends a block sequence at the beginning of a line: anything but blanks, another item, or a comment.
_YAML_KEY = re.compile(r"^(?!- |-\n)[^ \n#]", re.MULTILINE)


class NotAList(Exception):
    """The text is not one JSON object with ``items``; nothing has been yielded yet, or it broke off."""


def list_items(source: Source) -> Iterator[tuple[int, Any]]:
    """Index and value of each item of a JSON List; a ``PodList``'s items get its apiVersion and kind.

    Raises:
        NotAList: at the first item or later. Whoever reads then has to begin again with the whole text.
    """
    text = source.text
    decode = json.JSONDecoder(parse_constant=_no_constant).raw_decode
    head: dict[str, Any] = {}
    waiting: list[tuple[int, Any]] = []
    try:
        offset = _expect(text, 0, "{")
        while True:
            key, offset = decode(text, _blank(text, offset))
            offset = _expect(text, offset, ":")
            if key == "items" and text.startswith("[", _blank(text, offset)) and not waiting:
                offset = _expect(text, offset, "[")
                index = 0
                for item, behind in _first_items(text, offset, decode):
                    offset = behind
                    if isinstance(item, dict) and "kind" in item:
                        yield index, item
                    else:
                        waiting.append((index, item))
                    index += 1
                while not text.startswith("]", _blank(text, offset)):
                    if index:
                        offset = _expect(text, offset, ",")
                    item, offset = decode(text, _blank(text, offset))
                    if isinstance(item, dict) and "kind" in item:
                        yield index, item
                    else:
                        # The List's own kind may be written behind its items.
                        waiting.append((index, item))
                    index += 1
                offset = _expect(text, offset, "]")
                head["items"] = index
            else:
                head[key], offset = decode(text, _blank(text, offset))
            if text.startswith("}", _blank(text, offset)):
                break
            offset = _expect(text, offset, ",")
    except (ValueError, RecursionError, TypeError):
        raise NotAList from None
    kind = head.get("kind")
    whole = _blank(text, _expect(text, offset, "}")) == len(text)
    if not whole or not isinstance(head.get("items"), int) or not isinstance(kind, str) or not kind.endswith("List"):
        raise NotAList
    common = {"apiVersion": head.get("apiVersion"), "kind": kind.removesuffix("List")}
    for index, item in waiting:
        yield index, {**common, **item} if isinstance(item, dict) else item


def yaml_list(source: Source) -> tuple[dict[str, Any], Iterator[tuple[int, Any]]]:
    """The fields around the items of a YAML List in block style, and index and value of each item.

    ``kubectl get -o yaml`` and ``kubectl dra snapshot`` write such lists: in a block, only the items of ``items``
    can begin with a dash at the beginning of a line. A ``PodList``'s items get its apiVersion and kind.

    Raises:
        NotAList: it is not that; also while the items are read, as ``list_items`` does.
    """
    text = source.text
    begin = None if "\r" in text else _YAML_ITEMS.search(text)
    if begin is None:
        raise NotAList
    start = begin.end()
    behind = _YAML_KEY.search(text, start)
    end = len(text) if behind is None else behind.start()
    head = _yaml_object(Source(source.name, text[: begin.start()] + text[end:]))
    kind = head.get("kind")
    if "items" in head or not isinstance(kind, str) or not kind.endswith("List"):
        raise NotAList
    common = {"apiVersion": head.get("apiVersion"), "kind": kind.removesuffix("List")}
    return head, _yaml_items(source, start, end, common)


def _yaml_items(source: Source, start: int, end: int, common: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    text, index = source.text, 0
    while start < end:
        following = text.find("\n- ", start + 1, end) + 1 or end
        # With a blank in place of the dash the item is a document of its own.
        item = _yaml_object(Source(source.name, " " + text[start + 1 : following]))
        yield index, item if "kind" in item else {**common, **item}
        index, start = index + 1, following


def _yaml_object(source: Source) -> dict[str, Any]:
    from kubectl_dra.manifests.documents import Skipped, each

    found = list(each(source))
    if len(found) != 1 or isinstance(found[0], Skipped):
        raise NotAList
    return found[0].object


def _first_items(text: str, offset: int, decode: _Decode) -> Iterator[tuple[Any, int]]:
    """The items that can be told apart before they are decoded, each with the offset behind it; maybe none.

    Raises:
        ValueError: an item is not JSON.
    """
    start = _blank(text, offset)
    edge = text[text.rfind("\n", offset, start) : start + 1]
    if edge.startswith("\n") and edge.endswith("{"):
        return _line_items(text, start, edge)
    return _flat_items(text, start, decode)


def _flat_items(text: str, start: int, decode: _Decode) -> Iterator[tuple[Any, int]]:
    """Items that follow each other on one line and begin with the same key, as programs write them.

    A text from the beginning of an item to where another one may begin is the item if it is one JSON value.
    """
    from orjson import loads

    key = _FIRST_KEY.match(text, start)
    if key is None:
        return
    item, behind = decode(text, start)
    yield item, behind
    separator = _SEPARATOR.match(text, behind)
    if separator is None:
        return
    following = separator.group() + key.group()
    while text.startswith(following, behind):
        start = behind + len(separator.group())
        behind = text.find("}" + following, start) + 1
        if not behind:
            return
        try:
            item = loads(text[start:behind])
        except ValueError:
            item, behind = decode(text, start)
        yield item, behind


def _line_items(text: str, start: int, edge: str) -> Iterator[tuple[Any, int]]:
    """The items but the last one, where each begins on a line of its own, with ``edge``.

    ``kubectl get -o json`` and ``kubectl dra snapshot`` write such lists. A line can only break between values, so
    a text between two lines that begin alike with ``{`` is an item if it is one JSON value.

    Raises:
        ValueError: it is not.
    """
    from orjson import loads

    while (end := text.find(edge, start + 1)) >= 0:
        chunk = text[start:end].rstrip(" \t\r\n")
        if not chunk.endswith(","):
            raise ValueError(chunk[-1:])
        yield loads(chunk[:-1]), start + len(chunk) - 1
        start = end + len(edge) - 1


def _blank(text: str, offset: int) -> int:
    found = _BLANK.match(text, offset)
    return offset if found is None else found.end()


def _expect(text: str, offset: int, character: str) -> int:
    offset = _blank(text, offset)
    if not text.startswith(character, offset):
        raise ValueError(character)
    return offset + 1


def _no_constant(text: str) -> Any:
    raise ValueError(text)
