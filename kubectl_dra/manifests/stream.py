"""Reads large YAML Lists item by item, so that the raw objects are never all in memory at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubectl_dra.manifests.source import Source

_YAML_ITEMS = re.compile(r"^items:[ \t]*\n(?=- )", re.MULTILINE)
# What ends a block sequence at the beginning of a line: anything but blanks, another item, or a comment.
_YAML_KEY = re.compile(r"^(?!- |-\n)[^ \n#]", re.MULTILINE)


class NotAList(Exception):
    """The text is not a single YAML List in block style. Nothing has been yielded yet, or the List broke off."""


def yaml_list(source: Source) -> tuple[dict[str, Any], Iterator[tuple[int, Any]]]:
    """The fields around the items of a YAML List in block style, and index and value of each item.

    ``kubectl get -o yaml`` and ``kubectl dra snapshot`` write such lists: in a block, only entries of
    ``items`` can begin with a dash at the start of a line. Items of a ``PodList`` get its apiVersion and
    kind.

    Raises:
        NotAList: not such a list, possibly found only after some items. The caller then rereads the whole text.
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
