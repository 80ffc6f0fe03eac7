"""API objects as msgspec structs in the shape of the wire, reduced to the fields that matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

import msgspec

T = TypeVar("T")

Amount = str | int | float
"""A quantity as written: text, or a bare number."""


class Wire(msgspec.Struct, frozen=True, kw_only=False, rename="camel", omit_defaults=True, gc=False):
    """Base of all structs decoded from API objects. Fields not named in a subclass are skipped.

    Trees of data have no cycles, so the garbage collector need not know them.
    """

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """This struct from a decoded JSON object. Raises msgspec.ValidationError like ``convert``."""
        return convert(raw, cls)


def convert(raw: Any, kind: type[T]) -> T:
    """A decoded JSON value as ``kind``. As in the API server, null counts as absent.

    Raises:
        msgspec.ValidationError: a value of the wrong type; the message names its path.
    """
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(raw), kind)


def without_nulls(raw: Any) -> Any:
    """The value without null members, at any depth."""
    if isinstance(raw, dict):
        return {key: without_nulls(value) for key, value in raw.items() if value is not None}
    if isinstance(raw, list):
        return [without_nulls(value) for value in raw if value is not None]
    return raw


def builtins(value: Wire) -> dict[str, Any]:
    """The object in the shape of the API, without fields that have their default."""
    out: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return out
