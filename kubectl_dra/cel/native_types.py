"""Which CEL values convert to which native Go types, and Kubernetes' errors for those that do not.

Kubernetes converts the result of a selector to ``bool``, and fields of protobuf messages to their Go types.
"""

from __future__ import annotations

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.values import Message, Value, type_name

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
