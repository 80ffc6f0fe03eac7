"""The protobuf messages that an expression can construct, such as ``google.protobuf.Int64Value{value: 1}``.

cel-go knows the messages of its dependencies: the wrappers of the scalar types, Duration, Timestamp, the JSON
messages, Any and Empty. Selectors have no use for them, but expressions that contain one compile and have a
value.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kubectl_dra.cel import types
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.types import CelType, list_of, map_of, wrapper_of
from kubectl_dra.cel.values import Message, Value, type_name

_PACKAGE = "google.protobuf."
NULL_VALUE = _PACKAGE + "NullValue.NULL_VALUE"
"""The only value of the only enumeration; an int, 0."""
_JSON_LIST = list_of(types.DYN)
_JSON_OBJECT = map_of(types.STRING, types.DYN)
_WRAPPED = {
    "BoolValue": types.BOOL,
    "BytesValue": types.BYTES,
    "DoubleValue": types.DOUBLE,
    "FloatValue": types.DOUBLE,
    "Int32Value": types.INT,
    "Int64Value": types.INT,
    "StringValue": types.STRING,
    "UInt32Value": types.UINT,
    "UInt64Value": types.UINT,
}
_TYPES = {
    **{name: wrapper_of(wrapped) for name, wrapped in _WRAPPED.items()},
    "Any": types.ANY,
    "Duration": types.DURATION,
    "Empty": CelType("struct", _PACKAGE + "Empty"),
    "ListValue": _JSON_LIST,
    "Struct": _JSON_OBJECT,
    "Struct.FieldsEntry": CelType("struct", _PACKAGE + "Struct.FieldsEntry"),
    "Timestamp": types.TIMESTAMP,
    "Value": types.DYN,
}
_FIELDS: dict[str, dict[str, CelType]] = {
    **{name: {"value": wrapped} for name, wrapped in _WRAPPED.items()},
    "Any": {"type_url": types.STRING, "value": types.BYTES},
    "Duration": {"seconds": types.INT, "nanos": types.INT},
    "Empty": {},
    "ListValue": {"values": _JSON_LIST},
    "Struct": {"fields": _JSON_OBJECT},
    "Struct.FieldsEntry": {"key": types.STRING, "value": types.DYN},
    "Timestamp": {"seconds": types.INT, "nanos": types.INT},
    "Value": {
        "null_value": types.INT,
        "number_value": types.DOUBLE,
        "string_value": types.STRING,
        "bool_value": types.BOOL,
        "struct_value": _JSON_OBJECT,
        "list_value": _JSON_LIST,
    },
}
MESSAGES: Mapping[str, CelType] = MappingProxyType({_PACKAGE + name: found for name, found in _TYPES.items()})
"""By full name: the type of the constructed value."""
FIELDS: Mapping[str, Mapping[str, CelType]] = MappingProxyType(
    {_PACKAGE + name: MappingProxyType(fields) for name, fields in _FIELDS.items()}
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
