"""The value of an expression as an attribute of a device: what derived attributes are (alpha in 1.37)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.semver import Semver
from kubectl_dra.cel.device import DeviceInput, device_value
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.program import Program
from kubectl_dra.cel.values import Duration, OptionalValue, Timestamp, Uint, Value

Attribute = Mapping[str, Any]
"""The API's one-of, such as ``{"string": "A100"}`` or ``{"ints": [0, 1]}``."""

_KINDS: Final[Mapping[type, tuple[str, str]]] = {
    bool: ("bool", "bool"),
    int: ("int", "int"),
    str: ("string", "string"),
    Semver: ("version", "semver"),
}
"""By type: the field of an attribute, and the name that errors use."""
_GO_NAMES: Final[Mapping[type, str]] = {
    bool: "bool",
    int: "int64",
    str: "string",
    Semver: "semver.Version",
    Uint: "uint64",
    float: "float64",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
    Duration: "time.Duration",
    Timestamp: "time.Time",
    Quantity: "*resource.Quantity",
    list: "[]ref.Val",
    tuple: "[]ref.Val",
    dict: "map[ref.Val]ref.Val",
}


def derived_attribute(program: Program, device: DeviceInput) -> Attribute:
    """The attribute that a program compiled as ``derived`` gives for a device.

    Raises:
        EvaluationError: the expression fails, or its value is of a kind that attributes do not have.
    """
    value = program.evaluate_raw(device_value(device, program.environment.converts_lists()))
    plain = _unwrapped(value)
    kind = _KINDS.get(plain.__class__)
    if kind is not None:
        return {kind[0]: str(plain) if plain.__class__ is Semver else plain}
    if value.__class__ is not OptionalValue and isinstance(value, (list, tuple)):
        return _of_list(value)
    raise EvaluationError(f"unsupported CEL return type: {_go_name(value)}")


def _of_list(values: list[Value] | tuple[Value, ...]) -> Attribute:
    if not values:
        return {"strings": []}
    first = _unwrapped(values[0])
    kind = _KINDS.get(first.__class__)
    if kind is None:
        raise EvaluationError(f"unsupported list element type: {_go_name(values[0])}")
    plain_values = []
    for index, element in enumerate(values):
        plain = _unwrapped(element)
        if plain.__class__ is not first.__class__:
            raise EvaluationError(f"expected list element at index {index} to be {kind[1]}, got {_go_name(element)}")
        plain_values.append(str(plain) if kind[0] == "version" else plain)
    return {f"{kind[0]}s": plain_values}


def _unwrapped(value: Value) -> Value:
    """The content of an optional, which Kubernetes unwraps; other values as they are."""
    return value.value if value.__class__ is OptionalValue and value.has_value else value


def _go_name(value: Value) -> str:
    if value.__class__ is OptionalValue and not value.has_value:
        return "<nil>"
    plain = _unwrapped(value)
    return _GO_NAMES.get(plain.__class__, plain.__class__.__name__)
