"""The protobuf messages that an expression can construct, such as ``google.protobuf.Int64Value{value: 1}``.

cel-go knows the messages of its dependencies: the wrappers of the scalar types, Duration, Timestamp, the JSON
messages, Any and Empty. Selectors have no use for them, but expressions that contain one compile and have a
value.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kubectl_dra.cel import types
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.types import CelType, list_of, map_of, wrapper_of
from kubectl_dra.cel.values import Message, Value, type_name

_PACKAGE = "google.protobuf."
NULL_VALUE = _PACKAGE + "NullValue.NULL_VALUE"
"""The only value of the only enumeration; an int, 0."""
_JSON_LIST = list_of(types.DYN)
_JSON_OBJECT = map_of(types.STRING, types.DYN)
_JSON = "*structpb.Value"


class ProtoField(NamedTuple):
    """A field of a message: its type in CEL and in Go, and its number in the bytes of the message."""

    type: CelType
    go_type: str
    number: int = 1


_SPAN = {"seconds": ProtoField(types.INT, "int64"), "nanos": ProtoField(types.INT, "int32", 2)}
_WRAPPED = {
    "BoolValue": ProtoField(types.BOOL, "bool"),
    "BytesValue": ProtoField(types.BYTES, "[]uint8"),
    "DoubleValue": ProtoField(types.DOUBLE, "float64"),
    "FloatValue": ProtoField(types.DOUBLE, "float32"),
    "Int32Value": ProtoField(types.INT, "int32"),
    "Int64Value": ProtoField(types.INT, "int64"),
    "StringValue": ProtoField(types.STRING, "string"),
    "UInt32Value": ProtoField(types.UINT, "uint32"),
    "UInt64Value": ProtoField(types.UINT, "uint64"),
}
PROTO_FIELDS: Mapping[str, Mapping[str, ProtoField]] = {
    **{name: {"value": field} for name, field in _WRAPPED.items()},
    "Any": {"type_url": ProtoField(types.STRING, "string"), "value": ProtoField(types.BYTES, "[]uint8", 2)},
    "Duration": _SPAN,
    "Empty": {},
    "ListValue": {"values": ProtoField(_JSON_LIST, _JSON)},
    "Struct": {"fields": ProtoField(_JSON_OBJECT, "map[string]*structpb.Value")},
    "Struct.FieldsEntry": {"key": ProtoField(types.STRING, "string"), "value": ProtoField(types.DYN, _JSON, 2)},
    "Timestamp": _SPAN,
    "Value": {
        "null_value": ProtoField(types.INT, "protoreflect.EnumNumber"),
        "number_value": ProtoField(types.DOUBLE, "float64", 2),
        "string_value": ProtoField(types.STRING, "string", 3),
        "bool_value": ProtoField(types.BOOL, "bool", 4),
        "struct_value": ProtoField(_JSON_OBJECT, "*structpb.Struct", 5),
        "list_value": ProtoField(_JSON_LIST, "*structpb.ListValue", 6),
    },
}
"""The fields of each message, by the name of the message without its package."""
_TYPES = {
    **{name: wrapper_of(field.type) for name, field in _WRAPPED.items()},
    "Any": types.ANY,
    "Duration": types.DURATION,
    "Empty": CelType("struct", _PACKAGE + "Empty"),
    "ListValue": _JSON_LIST,
    "Struct": _JSON_OBJECT,
    "Struct.FieldsEntry": CelType("struct", _PACKAGE + "Struct.FieldsEntry"),
    "Timestamp": types.TIMESTAMP,
    "Value": types.DYN,
}
MESSAGES: Mapping[str, CelType] = MappingProxyType({_PACKAGE + name: message for name, message in _TYPES.items()})
"""By full name: the type of the constructed value."""
FIELDS: Mapping[str, Mapping[str, CelType]] = MappingProxyType(
    {
        _PACKAGE + name: MappingProxyType({key: field.type for key, field in fields.items()})
        for name, fields in PROTO_FIELDS.items()
    }
)
"""By full name: the types of the fields by name."""
NAMES_AS_VALUES = frozenset(_PACKAGE + name for name in ("Duration", "Empty", "Struct.FieldsEntry", "Timestamp"))
"""The messages whose name also represents a type at run time, as in ``type(x) == google.protobuf.Empty``."""


# Which CEL values convert to which native Go types, and Kubernetes' errors for those that do not.
#
# Kubernetes converts the result of a selector to ``bool``, and fields of protobuf messages to their Go types.

_REFUSALS = {
    "bool": "type conversion error from bool to '{}'",
    "bytes": "type conversion error from Bytes to '{}'",
    "double": "type conversion error from Double to '{}'",
    "int": "unsupported type conversion from 'int' to {}",
    "list": "type conversion error from list to '{}'",
    "map": "type conversion error from map to '{}'",
    "null_type": "type conversion error from 'null_type' to '{}'",
    "string": "unsupported native conversion from string to '{}'",
    "type": "type conversion not supported for 'type'",
    "uint": "unsupported type conversion from 'uint' to {}",
}
_NATIVE: dict[str, frozenset[str]] = {
    "bool": frozenset({"bool"}),
    "bytes": frozenset({"[]uint8"}),
    "double": frozenset({"float32", "float64"}),
    "int": frozenset({"int32", "int64", "protoreflect.EnumNumber"}),
    "string": frozenset({"string"}),
    "uint": frozenset({"uint32", "uint64"}),
}


def converts(value: Value, go_type: str) -> bool:
    """Whether values of a scalar's CEL type convert to a Go type. The value may still be too large for it."""
    return go_type in _NATIVE.get(type_name(value), ())


def refusal(value: Value, go_type: str) -> EvaluationError:
    """The error for a value that does not convert to a Go type."""
    name = type_name(value)
    shown = "*dynamicpb.Message" if value.__class__ is Message else name.rpartition(".")[2]
    return EvaluationError(_REFUSALS.get(name, f"type conversion error from '{shown}' to '{{}}'").format(go_type))
