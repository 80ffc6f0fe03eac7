"""How the API server decodes a raw object: which values it rejects for their type, and what it makes of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.fields import Field, FieldPath, fields, path_text
from kubectl_dra.api.quantity import BLANKS, Quantity, QuantityError


class Mismatch(Struct, frozen=True):
    """A value of the wrong type: where it is, what the API wants there, and what was found."""

    path: FieldPath
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{path_text(self.path)} must be {self.expected}, not {self.found}"


def mismatch(raw: Any, kind: str, version: str = "v1") -> Mismatch | None:
    """The first value of a wrong type in a Pod, a Node or an object of one of ``KINDS``; else None.

    As in the API server, null is allowed everywhere. Quantities must parse.
    """
    if not isinstance(raw, dict):
        return Mismatch((), "an object", _type_name(raw))
    found = struct_mismatch(raw.get("metadata"), "ObjectMeta", "v1", ("metadata",))
    return found or struct_mismatch(raw, kind, version, ())


def struct_mismatch(raw: Any, struct: str, version: str = "v1", path: FieldPath = ()) -> Mismatch | None:
    """Like ``mismatch``, for the struct at ``path`` inside an object."""
    if raw is None:
        return None
    if not isinstance(raw, dict):
        return Mismatch(path, "an object", _type_name(raw))
    table = fields(struct, version)
    for name, value in raw.items():
        field = table.get(name)
        if field is None or value is None:
            continue
        found = _value_mismatch(value, field, version, (*path, name))
        if found is not None:
            return found
    return None


def decoded(raw: Mapping[str, Any], struct: str, version: str = "v1") -> dict[str, Any]:
    """A struct without mismatch as the API server holds it, in the shape of JSON.

    A null field is absent, a null in a list or map is the empty value of its type, a quantity has no blanks around it.
    """
    table = fields(struct, version)
    out: dict[str, Any] = {}
    for name, value in raw.items():
        field = table.get(name)
        if field is None:
            out[name] = value
        elif value is None:
            continue
        elif field.container == "list":
            out[name] = [_decoded_item(item, field, version) for item in value]
        elif field.container == "map":
            out[name] = {key: _decoded_item(item, field, version) for key, item in value.items()}
        else:
            out[name] = _decoded_item(value, field, version)
    return out


def _decoded_item(value: Any, field: Field, version: str) -> Any:
    if not field.scalar:
        return decoded(value or {}, field.type, version)
    if value is None:
        return _EMPTY.get(field.type)
    if field.type == "quantity" and isinstance(value, str):
        return value.strip(BLANKS)
    return int(value) if field.type == "int" else value


_EMPTY: Final = {"string": "", "int": 0, "bool": False, "quantity": "0", "object": {}}


def _value_mismatch(value: Any, field: Field, version: str, path: FieldPath) -> Mismatch | None:
    items: Iterator[tuple[str | int, Any]]
    if field.container == "list":
        if not isinstance(value, list):
            return Mismatch(path, "a list", _type_name(value))
        items = iter(enumerate(value))
    elif field.container == "map":
        if not isinstance(value, dict):
            return Mismatch(path, "an object", _type_name(value))
        items = iter(value.items())
    else:
        return _item_mismatch(value, field, version, path)
    for key, item in items:
        found = _item_mismatch(item, field, version, (*path, key))
        if found is not None:
            return found
    return None


def _item_mismatch(value: Any, field: Field, version: str, path: FieldPath) -> Mismatch | None:
    if not field.scalar:
        return struct_mismatch(value, field.type, version, path)
    if value is None:
        return None
    wanted = _wanted(value, field.type)
    return None if wanted is None else Mismatch(path, wanted, _type_name(value))


def _wanted(value: Any, kind: str) -> str | None:
    """The type wanted in place of the value, or None if the value is fine."""
    if kind in ("string", "time"):
        return None if isinstance(value, str) else "a string"
    if kind == "bool":
        return None if isinstance(value, bool) else "true or false"
    if kind == "int":
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return None if whole and not isinstance(value, bool) else "a whole number"
    if kind == "object":
        return None if isinstance(value, dict) else "an object"
    if kind == "quantity":
        try:
            Quantity.from_json(value)
        except QuantityError:
            return "a quantity"
    return None


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f'"{value[:37]}..."'
    if isinstance(value, int | float):
        return f"the number {value}"
    return "a list" if isinstance(value, list) else "an object"
