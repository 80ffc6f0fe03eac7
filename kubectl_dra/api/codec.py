"""Decoding of a raw object by the API server: the values it rejects for their type, and the rest as it reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.quantity import BLANKS, Quantity, QuantityError
from kubectl_dra.api.schema import Field, FieldPath, change_items, items, path_text


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
    mismatch = struct_mismatch(raw.get("metadata"), "ObjectMeta", "v1", ("metadata",))
    return mismatch or struct_mismatch(raw, kind, version, ())


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
        mismatch = _value_mismatch(value, field, version, (*path, name))
        if mismatch is not None:
            return mismatch
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
        elif value is not None:
            out[name] = change_items(value, field, _decoded_item, field, version)
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
    if field.container:
        kind, wanted = (list, "a list") if field.container == "list" else (dict, "an object")
        if not isinstance(value, kind):
            return Mismatch(path, wanted, _type_name(value))
    for key, item in items(value, field):
        mismatch = _item_mismatch(item, field, version, (*path, *key))
        if mismatch is not None:
            return mismatch
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


# A raw object as the API server prints it: which empty fields stay, and how quantities and times are written.


def canonical(raw: Mapping[str, Any], version: str = "v1") -> dict[str, Any]:
    """The object as the API server prints it: empty fields left out, quantities and times normalised.

    ``metadata`` is unchanged, an empty ``status`` is left out, unknown fields are kept. The object must have
    the right types (see ``mismatch``) and one of ``KINDS``. The input is not changed.
    """
    head = {key: raw[key] for key in ("apiVersion", "kind", "metadata") if key in raw}
    body = _printed_struct({key: raw[key] for key in raw if key not in head}, raw["kind"], version)
    if not body.get("status"):
        body.pop("status", None)
    return {**head, **body}


def canonical_time(text: str) -> str:
    """An RFC 3339 time in UTC with whole seconds, as the API prints it; other text is returned unchanged."""
    if len(text) == 20 and text[19] == "Z":
        return text
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    if moment.tzinfo is None:
        return text
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _printed_struct(raw: Mapping[str, Any], struct: str, version: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    table = fields(struct, version)
    for name, field in table.items():
        value = raw.get(name)
        if value is None or (field.container and not value):
            if not field.omit_empty:
                out[name] = None if field.pointer or field.container else _zero(field, version)
        elif field.pointer or field.container or not field.omit_empty or value not in ("", 0, False):
            out[name] = change_items(value, field, _printed, field, version)
            if field.container == "map":
                # The server prints maps with sorted keys.
                out[name] = dict(sorted(out[name].items()))
    for name in raw:
        if name not in table:
            out[name] = raw[name]
    return out


def _printed(value: Any, field: Field, version: str) -> Any:
    if value is None:
        return _zero(field, version)
    if not field.scalar:
        return _printed_struct(value, field.type, version)
    if field.type == "quantity":
        return str(Quantity.from_json(value))
    if field.type == "time":
        return canonical_time(value)
    if field.type == "int":
        return int(value)
    return value


def _zero(field: Field, version: str) -> Any:
    if not field.scalar:
        return _printed_struct({}, field.type, version)
    return _EMPTY.get(field.type)


# Text forms shared by Kubernetes' error messages.

_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quoted(text: str) -> str:
    """`text` in double quotes with Go's escapes, as `%q` prints it in messages of the API server."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    simple = _ESCAPES.get(character)
    if simple is not None:
        return simple
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"
