"""Large JSON Lists item by item, so that nobody has to hold all of their raw objects at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from kubectl_dra.manifests.source import Source

LARGE: Final = 8_000_000
"""Characters from which on reading item by item is worth it."""

_BLANK = re.compile(r"[ \t\r\n]*")


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
