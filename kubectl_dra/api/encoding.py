"""A raw object as the API server prints it: which empty fields stay, and how quantities and times are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_dra.api.fields import Field, fields
from kubectl_dra.api.quantity import Quantity


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
        if field.container:
            printed = _printed_items(value, field, version)
            if printed is not None or not field.omit_empty:
                out[name] = printed
        elif value is None:
            if not field.omit_empty:
                out[name] = None if field.pointer else _zero(field, version)
        elif field.pointer or not field.omit_empty or value not in ("", 0, False):
            out[name] = _printed(value, field, version)
    for name in raw:
        if name not in table:
            out[name] = raw[name]
    return out


def _printed_items(value: Any, field: Field, version: str) -> list[Any] | dict[str, Any] | None:
    if not value:
        return None
    if field.container == "list":
        return [_zero(field, version) if v is None else _printed(v, field, version) for v in value]
    # The server prints maps with sorted keys.
    return {
        key: _zero(field, version) if value[key] is None else _printed(value[key], field, version)
        for key in sorted(value)
    }


def _printed(value: Any, field: Field, version: str) -> Any:
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
    return {"string": "", "int": 0, "bool": False, "quantity": "0"}.get(field.type)
