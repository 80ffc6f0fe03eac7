"""CEL types, for the checker, the function table and the cost estimate.

The set and the printed names follow cel-go's ``common/types`` package and the types that Kubernetes adds
(``kubernetes.Quantity``, ``net.IP`` ...).
"""

from __future__ import annotations

from collections.abc import Sequence
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


_MESSAGE_NAMES = {"any": "any", "duration": "duration", "error": "!error!", "null": "null", "timestamp": "timestamp"}
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


# Type assignability and type parameters: whether a value of one type may stand for another.
#
# The rules are those of cel-go's checker: dyn and any fit everywhere, null fits every object and wrapper type,
# and a type parameter is bound at its first use and later widened to more general types.
#
# The loops are written out because a generator in all() would recurse through C code, which deep types must
# not.

_SCALARS = frozenset({"bool", "bytes", "double", "int", "string", "uint", "duration", "timestamp", "struct"})
_NULLABLE = frozenset({"opaque", "struct", "any", "duration", "timestamp"})
_PARAMETERIZED = frozenset({"opaque", "list", "map"})
_WILD = frozenset({"dyn", "any", "error"})


def has_parameter(candidate: CelType) -> bool:
    """Whether a type parameter occurs in the type."""
    if candidate.kind == "param":
        return True
    for parameter in candidate.parameters:  # noqa: SIM110
        if has_parameter(parameter):
            return True
    return False


def parameter_names(candidates: Sequence[CelType]) -> list[str]:
    """The names of all type parameters, in order of appearance."""
    names: list[str] = []
    pending = list(reversed(candidates))
    while pending:
        current = pending.pop()
        if current.kind == "param":
            if current.name not in names:
                names.append(current.name)
        else:
            pending.extend(reversed(current.parameters))
    return names


def equal_or_less_specific(left: CelType, right: CelType) -> bool:
    """Whether ``left`` equals ``right`` or is more general by containing dyn."""
    if left.is_dynamic or left.kind == "param":
        return True
    if right.is_dynamic or right.kind == "param":
        return False
    if left.kind != right.kind:
        return False
    if left.kind in _PARAMETERIZED:
        if left.name != right.name or len(left.parameters) != len(right.parameters):
            return False
        for a, b in zip(left.parameters, right.parameters, strict=True):  # noqa: SIM110
            if not equal_or_less_specific(a, b):
                return False
        return True
    return left.kind == "type" or left == right


class Bindings:
    """The types bound to type parameters. Failed attempts leave no trace."""

    __slots__ = ("_bound", "_trail")

    def __init__(self) -> None:
        self._bound: dict[str, CelType] = {}
        self._trail: list[tuple[str, CelType | None]] = []

    def bind(self, name: str, bound: CelType) -> None:
        self._trail.append((name, self._bound.get(name)))
        self._bound[name] = bound

    def _rollback(self) -> None:
        for name, before in reversed(self._trail):
            if before is None:
                del self._bound[name]
            else:
                self._bound[name] = before

    def assign(self, left: CelType, right: CelType) -> bool:
        """Whether ``left`` is assignable to ``right``. If so, parameters are bound."""
        if left is right and left.kind in _SCALARS:
            return True
        self._trail = []
        if self._assignable(left, right):
            return True
        self._rollback()
        return False

    def assign_all(self, left: Sequence[CelType], right: Sequence[CelType]) -> bool:
        """Like ``assign`` for two lists: all elements or none."""
        if len(left) != len(right):
            return False
        self._trail = []
        for a, b in zip(left, right, strict=True):
            if not self._assignable(a, b):
                self._rollback()
                return False
        return True

    def _assignable(self, left: CelType, right: CelType) -> bool:
        kind, other = left.kind, right.kind
        if other == "param":
            valid, has_binding = self._valid_substitution(left, right)
            if valid:
                return True
            if has_binding:
                return False
        if kind == "param":
            return self._valid_substitution(right, left)[0]
        if kind in _WILD or other in _WILD:
            return True
        if kind == "null":
            return other == "null" or right.nullable or other in _NULLABLE
        if other == "null":
            return left.nullable or kind in _NULLABLE
        if kind in _SCALARS:
            return kind == other and left.name == right.name
        if kind == "type":
            return other == "type"
        if kind in _PARAMETERIZED:
            if kind != other or left.name != right.name or len(left.parameters) != len(right.parameters):
                return False
            for a, b in zip(left.parameters, right.parameters, strict=True):  # noqa: SIM110
                if not self._assignable(a, b):
                    return False
            return True
        return False

    def _valid_substitution(self, wanted: CelType, parameter: CelType) -> tuple[bool, bool]:
        """Whether ``parameter`` may stand for ``wanted``, and whether it was already bound."""
        if wanted.kind == "param" and wanted.name == parameter.name:
            return True, True
        bound = self._bound.get(parameter.name)
        if bound is not None:
            if wanted == bound:
                return True, True
            if self._assignable(wanted, bound):
                general = wanted if equal_or_less_specific(wanted, bound) else bound
                if self._not_inside(parameter, general):
                    self.bind(parameter.name, general)
                return True, True
            return False, True
        if self._not_inside(parameter, wanted):
            self.bind(parameter.name, wanted)
            return True, False
        return False, False

    def _not_inside(self, parameter: CelType, within: CelType) -> bool:
        """The occurs check: a parameter must not be bound to a type that contains it."""
        if within.kind == "param":
            if within.name == parameter.name:
                return False
            bound = self._bound.get(within.name)
            return bound is None or self._not_inside(parameter, bound)
        for part in within.parameters:  # noqa: SIM110
            if not self._not_inside(parameter, part):
                return False
        return True

    def substitute(self, candidate: CelType, unbound_to_dyn: bool) -> CelType:
        """The type with bound parameters replaced, and unbound ones replaced by dyn if requested."""
        if candidate.kind == "param":
            bound = self._bound.get(candidate.name)
            if bound is not None:
                return self.substitute(bound, unbound_to_dyn)
            return DYN if unbound_to_dyn else candidate
        if not candidate.parameters or not has_parameter(candidate):
            return candidate
        parts = [self.substitute(part, unbound_to_dyn) for part in candidate.parameters]
        return CelType(candidate.kind, candidate.name, tuple(parts))


def instantiate(candidate: CelType, names: dict[str, CelType]) -> CelType:
    """The type with the named parameters replaced by fresh ones."""
    if candidate.kind == "param":
        return names.get(candidate.name, candidate)
    if not candidate.parameters:
        return candidate
    parts = [instantiate(part, names) for part in candidate.parameters]
    return CelType(candidate.kind, candidate.name, tuple(parts))
