"""Protobuf messages built by an expression, and the plain values that they turn into at once.

cel-go converts every field to the message's native Go type, and the whole message back to a CEL value. Only
Empty and the entry of a Struct remain messages.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kubectl_dra.cel import ast, protobuf
from kubectl_dra.cel.closures.chains import NOTHING, content, optional_part
from kubectl_dra.cel.errors import EvaluationError, located
from kubectl_dra.cel.library.numbers import duration_text, timestamp_text
from kubectl_dra.cel.protobuf import converts, refusal
from kubectl_dra.cel.values import (
    INT_MAX,
    INT_MIN,
    Duration,
    Message,
    OptionalValue,
    Timestamp,
    Uint,
    Value,
    is_list,
    type_name,
    type_of,
)

if TYPE_CHECKING:
    from kubectl_dra.cel.closures.calls import Closure, Frame


# Bytes of protobuf messages, as an Any packs them.

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


def unpacked(name: str, data: bytes) -> dict[str, Value]:
    """The fields that are set in a message of ``google.protobuf``, in order. Raises EvaluationError."""
    known = _wire_fields(name)
    fields: dict[str, Value] = {}
    for number, wire, raw in _entries(data):
        field, packed = known.get(number, ("", None))
        if packed is None or packed.wire != wire:
            continue
        fields.pop(field, None) if name == "Value" else None
        value = packed.value_of(raw)
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


def _signed(raw: int, bits: int) -> int:
    raw &= (1 << bits) - 1
    return raw - (1 << bits) if raw >> bits - 1 else raw


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise EvaluationError("proto: field contains invalid UTF-8") from None


def _packed_value(raw: bytes) -> Value:
    fields = list(unpacked("Value", raw).items())
    return None if not fields or fields[-1][0] == "null_value" else fields[-1][1]


def _entry(raw: bytes) -> dict[str, Value]:
    fields = unpacked("Struct.FieldsEntry", raw)
    return {fields.get("key", ""): fields.get("value")}


class _Packed(NamedTuple):
    """Packing of values of a Go type, the reading of them, and the value of a field that is not set."""

    wire: int
    value_of: Callable[[Any], Value]
    zero: Value = None


_JSON = "*structpb.Value"
_PACKED = {
    "bool": _Packed(_VARINT, bool, False),
    "[]uint8": _Packed(_LENGTH, bytes, b""),
    "float64": _Packed(_EIGHT_BYTES, lambda raw: float(struct.unpack("<d", raw)[0]), 0.0),
    "float32": _Packed(_FOUR_BYTES, lambda raw: float(struct.unpack("<f", raw)[0]), 0.0),
    "int32": _Packed(_VARINT, lambda raw: _signed(raw, 32), 0),
    "int64": _Packed(_VARINT, lambda raw: _signed(raw, 64), 0),
    "string": _Packed(_LENGTH, _text, ""),
    "uint32": _Packed(_VARINT, lambda raw: Uint(raw & 0xFFFFFFFF), Uint(0)),
    "uint64": _Packed(_VARINT, Uint, Uint(0)),
    "protoreflect.EnumNumber": _Packed(_VARINT, int),
    _JSON: _Packed(_LENGTH, _packed_value),
    "*structpb.Struct": _Packed(_LENGTH, lambda raw: unpacked("Struct", raw).get("fields", {})),
    "*structpb.ListValue": _Packed(_LENGTH, lambda raw: unpacked("ListValue", raw).get("values", [])),
    "map[string]*structpb.Value": _Packed(_LENGTH, _entry),
}


@cache
def _wire_fields(message: str) -> Mapping[int, tuple[str, _Packed]]:
    """The fields of a message by their numbers."""
    fields = protobuf.PROTO_FIELDS.get(message, {})
    return {field.number: (name, _PACKED[field.go_type]) for name, field in fields.items()}


_SECOND = 10**9
_EXACT = (1 << 53) - 1
"""The largest integer that JSON numbers represent exactly; larger ones become strings."""
_TEXTUAL = frozenset({"kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL", "net.CIDR", "net.IP"})


def struct_of(closures: Sequence[Closure], node: ast.StructLiteral) -> Closure:
    """A message with the given field values; empty optional fields are left out."""
    entries = list(zip(node.fields, closures, strict=True))

    def build(frame: Frame) -> Value:
        fields: dict[str, Value] = {}
        for field, closure in entries:
            value = closure(frame)
            if field.optional:
                value = optional_part(value, f"entry '{field.name}'", node)
                if value is NOTHING:
                    fields.pop(field.name, None)
                    continue
            fields[field.name] = value
        try:
            return _message(node.type_name, fields)
        except EvaluationError as error:
            raise located(error, node)  # noqa: B904

    return build


def _message(name: str, given: Mapping[str, Value]) -> Value:
    """The value of a message with these fields. Raises EvaluationError."""
    if name not in protobuf.MESSAGES:
        raise EvaluationError(f"unknown type '{name}'")
    short = name.removeprefix("google.protobuf.")
    return _built(name, short, {field: _field(short, field, value) for field, value in given.items()})


def _built(name: str, short: str, fields: Mapping[str, Value]) -> Value:
    if short in _WELL_KNOWN:
        return _WELL_KNOWN[short](fields)
    if short.endswith("Value"):
        return fields.get("value", _PACKED[protobuf.PROTO_FIELDS[short]["value"].go_type].zero)
    return Message(protobuf.MESSAGES[name], fields)


def _field(message: str, field: str, value: Value) -> Value:
    """The value of a field, narrowed to its Go type."""
    full_name = f"google.protobuf.{message}.{field}"
    if (message == "ListValue" and not is_list(value)) or (message == "Struct" and not isinstance(value, dict)):
        raise EvaluationError(f"unsupported field type for {full_name}: {type_of(value).declared_name()}")
    try:
        if message == "ListValue":
            return _json_list(value)
        if message == "Struct":
            return _json_object(value)
        return _converted(value, protobuf.PROTO_FIELDS[message][field].go_type)
    except EvaluationError as error:
        raise EvaluationError(f"field type conversion error for {full_name} value type: {error.message}") from None


def _converted(value: Value, go_type: str) -> Value:
    """The value after a conversion to a Go type. Raises EvaluationError."""
    if value.__class__ is OptionalValue:
        if not value.has_value:
            raise EvaluationError("optional.none() dereference")
        return _converted(content(value), go_type)
    if go_type == _JSON:
        return _json(value)
    name = type_name(value)
    if converts(value, go_type):
        return _narrowed(value, go_type)
    if name in _TEXTUAL and go_type == "string":
        return str(value)
    if go_type == "*structpb.Struct" and name == "map":
        return _json_object(value)
    if go_type == "*structpb.ListValue" and (name == "list" or value == {}):
        return _json_list(value)
    if go_type == "[]uint8" and name == "list":
        # Nothing converts to a single byte.
        return b"".join(_converted(element, "uint8") for element in value)
    raise refusal(value, go_type)


def _narrowed(value: Value, go_type: str) -> Value:
    if go_type in ("int32", "protoreflect.EnumNumber") and not -(1 << 31) <= value < 1 << 31:
        raise EvaluationError("integer overflow")
    if go_type == "uint32" and value >= 1 << 32:
        raise EvaluationError("unsigned integer overflow")
    if go_type == "float32":
        try:
            return float(struct.unpack("<f", struct.pack("<f", value))[0])
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return value


def _json(value: Value) -> Value:
    """The value after a round trip through JSON. Raises EvaluationError."""
    kind = value.__class__
    if value is None or kind in (bool, float, str):
        return value
    if kind is int or kind is Uint:
        return float(value) if abs(value) <= _EXACT else str(int(value))
    if kind is bytes:
        return b64encode(value).decode()
    if kind is Duration:
        return duration_text(value)
    if kind is Timestamp:
        return timestamp_text(value)
    if kind is Message:
        return {key: _json(field) for key, field in value.fields.items()}
    if isinstance(value, dict):
        return _json_object(value)
    if is_list(value):
        return _json_list(value)
    if kind is OptionalValue:
        return _converted(value, _JSON)
    raise refusal(value, _JSON)


def _json_list(values: Sequence[Value]) -> Value:
    return [_json(value) for value in values]


def _json_object(values: Mapping[Value, Value]) -> Value:
    return {_converted(key, "string"): _json(value) for key, value in values.items()}


def _duration(fields: Mapping[str, Value]) -> Value:
    """A duration; too many seconds give the longest possible one."""
    seconds = fields.get("seconds", 0)
    whole = seconds * _SECOND
    total = whole + fields.get("nanos", 0)
    if not INT_MIN <= whole <= INT_MAX or not INT_MIN <= total <= INT_MAX:
        return Duration(INT_MIN if seconds < 0 else INT_MAX)
    return Duration(total)


def _timestamp(fields: Mapping[str, Value]) -> Value:
    return Timestamp(fields.get("seconds", 0) * _SECOND + fields.get("nanos", 0))


def _value(fields: Mapping[str, Value]) -> Value:
    """The alternative that was set last. ``null_value`` is null, whatever its number."""
    if not fields:
        return None
    name, value = list(fields.items())[-1]
    return None if name == "null_value" else value


def _any(fields: Mapping[str, Value]) -> Value:
    """The message packed into an Any. Only messages that an expression can name."""
    packed = fields.get("type_url", "").rpartition("/")[2]
    if packed in protobuf.MESSAGES and packed != "google.protobuf.Any":
        short = packed.removeprefix("google.protobuf.")
        return _built(packed, short, unpacked(short, fields.get("value", b"")))
    raise EvaluationError("unsupported conversion to ref.Val: (*dynamicpb.Message)")


_WELL_KNOWN: dict[str, Callable[[Mapping[str, Value]], Value]] = {
    "Any": _any,
    "Duration": _duration,
    "ListValue": lambda fields: fields.get("values", []),
    "Struct": lambda fields: fields.get("fields", {}),
    "Timestamp": _timestamp,
    "Value": _value,
}
