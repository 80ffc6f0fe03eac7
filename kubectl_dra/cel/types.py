"""CEL types, for the checker, the function table and the cost estimate.

The set and the printed names follow cel-go's ``common/types`` package and the types that Kubernetes adds
(``kubernetes.Quantity``, ``net.IP`` ...).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CelType:
    """One CEL type.

    ``kind`` is one of: dyn, any, bool, bytes, double, duration, error, int, list, map, null, opaque, string,
    struct, timestamp, type, param, uint. ``name`` is the run-time type name (as shown by ``type(x)``) or, for
    kind param, the name of the type parameter. ``nullable`` marks a wrapper such as
    ``google.protobuf.Int64Value``: it equals the type that it wraps, and also accepts null.
    """

    kind: str
    name: str
    parameters: tuple[CelType, ...] = ()
    nullable: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        """The name used in compiler messages, for example ``map(string, any)``."""
        if self.nullable:
            return f"wrapper({self.name})"
        short = _MESSAGE_NAMES.get(self.kind)
        if short is not None:
            return short
        if self.kind == "opaque" and self.name == "function":
            arguments = ", ".join(str(p) for p in self.parameters[1:])
            return f"({arguments}) -> {self.parameters[0]}"
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(str(p) for p in self.parameters)})"

    def declared_name(self) -> str:
        """The long form used for result types, for example ``google.protobuf.Any``."""
        if self.kind == "param":
            return f"<{self.name}>"
        if self.nullable:
            return f"wrapper({self.name})"
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(p.declared_name() for p in self.parameters)})"

    @property
    def is_dynamic(self) -> bool:
        """Whether the type of values is known only at run time (dyn and any)."""
        return self.kind == "dyn" or self.kind == "any"

    @property
    def is_optional(self) -> bool:
        return self.kind == "opaque" and self.name == "optional_type"


_MESSAGE_NAMES = {
    "any": "any",
    "duration": "duration",
    "error": "!error!",
    "null": "null",
    "timestamp": "timestamp",
}

BOOL = CelType("bool", "bool")
INT = CelType("int", "int")
UINT = CelType("uint", "uint")
DOUBLE = CelType("double", "double")
STRING = CelType("string", "string")
BYTES = CelType("bytes", "bytes")
NULL = CelType("null", "null_type")
DYN = CelType("dyn", "dyn")
ANY = CelType("any", "google.protobuf.Any")
ERROR = CelType("error", "error")
TIMESTAMP = CelType("timestamp", "google.protobuf.Timestamp")
DURATION = CelType("duration", "google.protobuf.Duration")
TYPE = CelType("type", "type")
QUANTITY = CelType("struct", "kubernetes.Quantity")
SEMVER = CelType("struct", "kubernetes.Semver")
IP = CelType("opaque", "net.IP")
CIDR = CelType("opaque", "net.CIDR")
URL = CelType("struct", "kubernetes.URL")
FORMAT = CelType("opaque", "kubernetes.NamedFormat")
DEVICE = CelType("struct", "kubernetes.DRADevice")


def list_of(element: CelType) -> CelType:
    return CelType("list", "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType("map", "map", (key, value))


def optional_of(value: CelType) -> CelType:
    return CelType("opaque", "optional_type", (value,))


def wrapper_of(value: CelType) -> CelType:
    """The type of the protobuf message that wraps a scalar type."""
    return CelType(value.kind, value.name, nullable=True)


def type_of_type(value: CelType) -> CelType:
    """The type of the type identifier ``value``, for example ``type(int)``."""
    return CelType("type", "type", (value,))


def type_param(name: str) -> CelType:
    """A type parameter of a polymorphic overload."""
    return CelType("param", name)


A = type_param("A")
B = type_param("B")
K = type_param("K")
V = type_param("V")
LIST_OF_A = list_of(A)
MAP_OF_A_B = map_of(A, B)
LIST = list_of(DYN)
MAP = map_of(DYN, DYN)
OPTIONAL = optional_of(DYN)
