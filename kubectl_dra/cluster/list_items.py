"""Items of a List as JSON text: of which type they are, and as objects."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from msgspec import MsgspecError, Struct, ValidationError, json

from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.errors import InputError


class _Head(Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""


_head: Final = json.Decoder(_Head)
_BEGINNING: Final = re.compile(rb'\{\s*"apiVersion"\s*:\s*"([\w./-]+)"\s*,\s*"kind"\s*:\s*"(\w+)"')
"""Beginning of an object as the server and kubectl write it: reading all of it for its kind takes as long again."""


@lru_cache(1_000)
def _name(text: bytes) -> str:
    return text.decode()


def type_of(data: Any, api_version: str, kind: str) -> tuple[str, str]:
    """The apiVersion and kind of an item, or these where it has none of its own; no kind if they are no text."""
    if begins := _BEGINNING.match(memoryview(data)):
        return _name(begins[1]), _name(begins[2])
    try:
        head = _head.decode(data)
    except ValidationError:
        return api_version, ""
    return head.api_version or api_version, head.kind or kind


def item_of(data: Any, place: Place) -> dict[str, Any]:
    """An item of a List. Raises InputError: a number that no field can have, such as 1e999, or text that is no JSON."""
    try:
        raw: dict[str, Any] = json.decode(data)
    except MsgspecError as error:
        raise InputError(f"{place}: cannot be read: {error}") from None
    return raw
