"""Whether the API server finds two parts of objects equal, after decoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_dra.api.fields import Field, fields
from kubectl_dra.api.quantity import Quantity


def same(first: Any, second: Any, struct: str) -> bool:
    """Whether two structs of v1 are equal: fields that are missing, null or empty are, and equal quantities."""
    first, second = first or {}, second or {}
    struct = "ObjectMeta" if struct == "ClaimMetadata" else struct
    return all(_same(first.get(name), second.get(name), field) for name, field in fields(struct).items())


def same_field(first: Mapping[str, Any], second: Mapping[str, Any], struct: str, name: str) -> bool:
    """Whether a field of two structs of v1 is equal."""
    return _same(first.get(name), second.get(name), fields(struct)[name])


def _same(first: Any, second: Any, field: Field) -> bool:
    if field.container:
        first, second = first or (), second or ()
        if len(first) != len(second):
            return False
        if field.container == "list":
            return all(_same_item(one, other, field) for one, other in zip(first, second, strict=True))
        return all(key in second and _same_item(first[key], second[key], field) for key in first)
    if field.pointer and (first is None or second is None):
        return first is second
    return _same_item(first, second, field)


def _same_item(first: Any, second: Any, field: Field) -> bool:
    if not field.scalar:
        return same(first, second, field.type)
    if field.type == "quantity":
        return bool(Quantity.from_json(first or 0) == Quantity.from_json(second or 0))
    if field.pointer or field.type == "any":
        return bool(first == second)
    return (first or None) == (second or None)
