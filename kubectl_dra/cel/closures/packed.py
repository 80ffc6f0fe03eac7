"""Bytes of protobuf messages, as an Any packs them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.values import Uint, Value

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


def unpacked(name: str, data: bytes) -> dict[str, Value]:
    """The fields that are set in a message of ``google.protobuf``, in order. Raises EvaluationError."""
    known = _FIELDS.get(name, {})
    fields: dict[str, Value] = {}
    for number, wire, raw in _entries(data):
        found = known.get(number)
        if found is None or found[1] != wire:
            continue
        field, _, value_of = found
        fields.pop(field, None) if name == "Value" else None
        value = value_of(raw)
        if name == "ListValue":
            fields.setdefault(field, []).append(value)
        elif name == "Struct":
            fields.setdefault(field, {}).update(value)
        else:
            fields[field] = value
    return fields


def _entries(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, kind and raw value of each field."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        raw: Any
        if not number:
            raise _malformed()
        if wire == _VARINT:
            raw, at = _varint(data, at)
        else:
            if wire == _LENGTH:
                size, at = _varint(data, at)
            elif wire in (_EIGHT_BYTES, _FOUR_BYTES):
                size = 8 if wire == _EIGHT_BYTES else 4
            else:
                raise _malformed()
            if at + size > len(data):
                raise _malformed()
            raw, at = data[at : at + size], at + size
        yield number, wire, raw


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise _malformed()
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 1 << 64:
                raise _malformed()
            return value, at
    raise _malformed()


def _malformed() -> EvaluationError:
    return EvaluationError("proto: cannot parse invalid wire-format data")


def _signed(bits: int) -> Callable[[int], int]:
    def value(raw: int) -> int:
        raw &= (1 << bits) - 1
        return raw - (1 << bits) if raw >> bits - 1 else raw

    return value


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise EvaluationError("proto: field contains invalid UTF-8") from None


def _double(raw: bytes) -> float:
    return float(struct.unpack("<d", raw)[0])


def _float(raw: bytes) -> float:
    return float(struct.unpack("<f", raw)[0])


def _value(raw: bytes) -> Value:
    fields = list(unpacked("Value", raw).items())
    return None if not fields or fields[-1][0] == "null_value" else fields[-1][1]


def _list(raw: bytes) -> Value:
    return unpacked("ListValue", raw).get("values", [])


def _object(raw: bytes) -> Value:
    return unpacked("Struct", raw).get("fields", {})


def _entry(raw: bytes) -> dict[str, Value]:
    fields = unpacked("Struct.FieldsEntry", raw)
    return {fields.get("key", ""): fields.get("value")}


_SPAN = {1: ("seconds", _VARINT, _signed(64)), 2: ("nanos", _VARINT, _signed(32))}
_FIELDS: Mapping[str, Mapping[int, tuple[str, int, Callable[[Any], Value]]]] = MappingProxyType(
    {
        "BoolValue": {1: ("value", _VARINT, bool)},
        "BytesValue": {1: ("value", _LENGTH, bytes)},
        "DoubleValue": {1: ("value", _EIGHT_BYTES, _double)},
        "FloatValue": {1: ("value", _FOUR_BYTES, _float)},
        "Int32Value": {1: ("value", _VARINT, _signed(32))},
        "Int64Value": {1: ("value", _VARINT, _signed(64))},
        "StringValue": {1: ("value", _LENGTH, _text)},
        "UInt32Value": {1: ("value", _VARINT, lambda raw: Uint(raw & 0xFFFFFFFF))},
        "UInt64Value": {1: ("value", _VARINT, Uint)},
        "Duration": _SPAN,
        "Timestamp": _SPAN,
        "ListValue": {1: ("values", _LENGTH, _value)},
        "Struct": {1: ("fields", _LENGTH, _entry)},
        "Struct.FieldsEntry": {1: ("key", _LENGTH, _text), 2: ("value", _LENGTH, _value)},
        "Value": {
            1: ("null_value", _VARINT, int),
            2: ("number_value", _EIGHT_BYTES, _double),
            3: ("string_value", _LENGTH, _text),
            4: ("bool_value", _VARINT, bool),
            5: ("struct_value", _LENGTH, _object),
            6: ("list_value", _LENGTH, _list),
        },
    }
)
"""By message and number: the name of the field, how it is packed, and its value."""
