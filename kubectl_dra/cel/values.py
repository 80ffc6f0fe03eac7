"""Run-time values and the operations every part of the engine needs on them.

============ =====================================================
CEL          Python
============ =====================================================
null         None
bool         bool
int          int within int64
uint         Uint (an int within uint64)
double       float
string       str
bytes        bytes
list         list or tuple
map          dict (keys bool, int, Uint, float or str)
timestamp    Timestamp
duration     Duration
type         TypeValue
optional     OptionalValue
Quantity ... the classes of api.quantity, api.semver and cel.library
============ =====================================================

A class outside this module takes part by two attributes: ``cel_type`` (a CelType) and
``cel_equals(other) -> bool`` (which may raise EvaluationError).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.semver import Semver
from kubectl_dra.cel import types
from kubectl_dra.cel.errors import EvaluationError, InternalError, no_such_overload
from kubectl_dra.cel.types import CelType

# A device's quantity that changes during an evaluation as it does in Kubernetes.
#
# Kubernetes holds a quantity such as 1.5Ti as a pointer to a big decimal, and ``add`` and ``sub`` write into
# the decimal of their receiver, until 1.37. So ``m.isGreaterThan(m.sub(5))`` compares ``m`` with itself. Comparing a
# plain quantity with such a decimal also turns the plain one into a decimal, after which ``asInteger`` fails.

SENSITIVE_OVERLOADS = frozenset(
    f"quantity_{name}" for name in ("add", "add_int", "sub", "sub_int", "get_int", "is_integer")
)
"""Only expressions with one of these can tell a shared quantity from an ordinary one."""


class SharedQuantity(Quantity):
    """A quantity that ``add`` and ``sub`` change in place."""

    __slots__ = ("_aliases",)

    def __init__(self, quantity: Quantity, aliases: list[SharedQuantity] | None = None) -> None:
        super().__init__(quantity.unscaled, quantity.exponent, quantity.format, wide=quantity.wide)
        self._aliases = [] if aliases is None else aliases
        self._aliases.append(self)

    def add(self, other: Quantity) -> Quantity:
        return self._became(super().add(other))

    def sub(self, other: Quantity) -> Quantity:
        return self._became(super().sub(other))

    def compare(self, other: Quantity) -> int:
        self._meet(other)
        return super().compare(other)

    def _meet(self, other: Quantity) -> None:
        if other.wide and not self.wide:
            self._set(self, wide=True)

    def _set(self, value: Quantity, wide: bool) -> None:
        Quantity.__init__(self, value.unscaled, value.exponent, self.format, wide=wide, computed=self.computed)

    def _became(self, outcome: Quantity) -> Quantity:
        if self.wide:
            for alias in self._aliases:
                alias._set(outcome, wide=True)
            result = SharedQuantity(outcome, self._aliases)
        else:
            result = SharedQuantity(outcome)
        Quantity.__init__(result, outcome.unscaled, outcome.exponent, outcome.format, wide=outcome.wide, computed=True)
        return result


def detached(quantity: Quantity) -> Quantity:
    """A copy that changes alone: since 1.37, ``add`` and ``sub`` leave their receiver as it is."""
    if not isinstance(quantity, SharedQuantity):
        return quantity
    copied = SharedQuantity(quantity)
    Quantity.__init__(
        copied, quantity.unscaled, quantity.exponent, quantity.format, wide=quantity.wide, computed=quantity.computed
    )
    return copied


def with_shared_quantities(device: Mapping[str, Any]) -> dict[str, Any]:
    """The device value with fresh shared quantities, for one evaluation."""
    copied = dict(device)
    capacity = copied["capacity"]
    copied["capacity"] = capacity.__class__(
        {
            domain: {name: SharedQuantity(quantity) for name, quantity in quantities.items()}
            for domain, quantities in capacity.items()
        }
    )
    return copied


Value: TypeAlias = Any
INT_MIN = -(1 << 63)
INT_MAX = (1 << 63) - 1
UINT_MAX = (1 << 64) - 1


class Uint(int):
    """An unsigned 64-bit integer. Arithmetic on it gives a plain int: wrap the result."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


class Timestamp(NamedTuple):
    """``nanoseconds`` since the Unix epoch. ``offset`` (seconds east of UTC) is used only for printing."""

    nanoseconds: int
    offset: int = 0


class Duration(NamedTuple):
    """A span of time in ``nanoseconds``, within int64."""

    nanoseconds: int


class TypeValue(NamedTuple):
    """The value of ``type(x)``: the run-time type ``name``, without parameters."""

    name: str


class Message:
    """A protobuf message without a plain equivalent: Empty, or an entry of a Struct. ``fields`` are those set."""

    __slots__ = ("cel_type", "fields")

    def __init__(self, of: CelType, fields: Mapping[str, Value]) -> None:
        self.cel_type = of
        self.fields = fields

    def cel_equals(self, other: Value) -> bool:
        """Whether the other is a message of the same type with equal fields."""
        if other.__class__ is not Message:
            return False
        return bool(self.cel_type == other.cel_type and self.fields == other.fields)


class OptionalValue(Struct, eq=False):
    """An optional. ``value`` is meaningful only if ``has_value``."""

    value: Value
    has_value: bool = True

    def __repr__(self) -> str:
        return f"optional.of({self.value!r})" if self.has_value else "optional.none()"


OPTIONAL_NONE = OptionalValue(None, has_value=False)
_TYPES: dict[type, CelType] = {
    type(None): types.NULL,
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    list: types.LIST,
    tuple: types.LIST,
    dict: types.MAP,
    Timestamp: types.TIMESTAMP,
    Duration: types.DURATION,
    TypeValue: types.TYPE,
    OptionalValue: types.OPTIONAL,
    Quantity: types.QUANTITY,
    SharedQuantity: types.QUANTITY,
    Semver: types.SEMVER,
}


def type_of(value: Value) -> CelType:
    """The run-time type of a value, with dyn for type parameters."""
    known = _TYPES.get(value.__class__)
    if known is not None:
        return known
    declared: CelType | None = getattr(value, "cel_type", None)
    if declared is not None:
        return declared
    if isinstance(value, dict):
        return types.MAP
    if isinstance(value, (list, tuple)):
        return types.LIST
    raise TypeError(f"not a CEL value: {value!r}")


def type_name(value: Value) -> str:
    """The run-time type name, as in ``type(value)`` and in error messages."""
    return type_of(value).name


_UNHASHABLE = {"bytes": "types.Bytes", "kubernetes.NamedFormat": "cel.Format", "kubernetes.Semver": "cel.Semver"}


def go_name(value: Value) -> str:
    """The Go type of a value, which some of Kubernetes' messages show instead of the CEL name."""
    name = type_name(value)
    return _UNHASHABLE.get(name, name)


def unhashable(value: Value) -> InternalError | None:
    """Kubernetes' panic for a value that cannot be looked up in a Go map; None if it can."""
    name = _UNHASHABLE.get(type_name(value))
    return None if name is None else InternalError(f"internal error: runtime error: hash of unhashable type {name}")


_NUMBERS = frozenset({int, Uint, float})


def equals(left: Value, right: Value) -> bool:
    """CEL equality. Raises EvaluationError where Kubernetes has no overload for the two values.

    Values of different types are unequal, with two exceptions: int, uint and double compare as numbers, and a
    Quantity, Semver, IP, CIDR or URL on the left rejects other types.
    """
    if left is None or right is None:
        return left is right
    kind = left.__class__
    other = right.__class__
    if kind in _NUMBERS:
        if other not in _NUMBERS:
            return False
        # A double compares with an integer as two doubles do, so large integers lose their last digits.
        return bool(float(left) == float(right) if float in (kind, other) else left == right)
    if kind is other and (kind is str or kind is bool or kind is bytes):
        return bool(left == right)
    if kind is str or kind is bool or kind is bytes:
        return False
    if isinstance(left, dict):
        return isinstance(right, dict) and _maps_equal(left, right)
    if kind is Timestamp:
        return other is Timestamp and left.nanoseconds == right.nanoseconds
    if kind is Duration or kind is TypeValue:
        return kind is other and bool(left == right)
    if is_list(left):
        return is_list(right) and _lists_equal(left, right)
    if kind is OptionalValue:
        if other is not OptionalValue or left.has_value != right.has_value:
            return False
        return not left.has_value or equals_inside_optional(left.value, right.value)
    if kind is Quantity or kind is SharedQuantity:
        return _quantities_equal(left, right)
    if kind is Semver:
        if other is not Semver:
            raise no_such_overload()
        return bool(left == right)
    return bool(left.cel_equals(right))


def unequal(left: Value, right: Value) -> bool:
    """``!=``; true if the comparison for equality is an error."""
    try:
        return not equals(left, right)
    except EvaluationError as error:
        if error.fatal:
            raise
        return True


def is_list(value: Value) -> bool:
    """Whether a value is a CEL list; the named tuples of this module are not."""
    kind = value.__class__
    return kind is list or kind is tuple or kind is MutableList or kind is ListKey


def equals_inside_optional(left: Value, right: Value) -> bool:
    """Equality of the values inside two optionals. Null gets no special treatment."""
    for side in (left, right):
        if side.__class__ is EvaluationError:
            raise side
    if left is not None and right is None and isinstance(left, (Quantity, Semver)):
        raise no_such_overload()
    return equals(left, right)


def _quantities_equal(left: Quantity, right: Value) -> bool:
    if not isinstance(right, Quantity) or right.computed:
        raise no_such_overload()
    return bool(left == right)


def _not_unequal(left: Value, right: Value) -> bool:
    """Equality of elements, where cel-go treats an error as "not unequal"."""
    try:
        return equals(left, right)
    except EvaluationError:
        return True


def _lists_equal(left: Sequence[Value], right: Sequence[Value]) -> bool:
    if len(left) != len(right):
        return False
    return all(_not_unequal(a, b) for a, b in zip(left, right, strict=True))


def _maps_equal(left: Mapping[Value, Value], right: Mapping[Value, Value]) -> bool:
    if len(left) != len(right):
        return False
    for key, value in left.items():
        exists, other = find(right, key)
        if not exists or not _not_unequal(value, other):
            return False
    return True


class DefaultMap(dict[Any, Any]):
    """The attributes or capacities of a device. An unknown key finds an empty map.

    Membership tests and iteration see only the real keys.
    """

    __slots__ = ()


class ValueMap(dict[Any, Any]):
    """A map built by an expression. Looking up bytes or a Semver in it makes Kubernetes panic."""

    __slots__ = ()


class MutableList(list[Any]):
    """The list that a loop is collecting. As in cel-go, ``+`` appends in place."""

    __slots__ = ()


class MutableMap(ValueMap):
    """The map that a loop is collecting. As in cel-go, inserting changes it in place."""

    __slots__ = ()


class _ByIdentity:
    """A key of a map that Go compares by where it is, not by its content: it is found under no other key."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


class ListKey(_ByIdentity, list[Any]):  # type: ignore[misc]
    """A list as a key of a map."""

    __slots__ = ()


class MapKey(_ByIdentity, ValueMap):  # type: ignore[misc]
    """A map as a key of a map."""

    __slots__ = ()


_TYPES[MapKey] = types.MAP
_TYPES[ListKey] = types.LIST
_TYPES[DefaultMap] = _TYPES[ValueMap] = _TYPES[MutableMap] = types.MAP
_TYPES[MutableList] = types.LIST


def find(mapping: Mapping[Value, Value], key: Value) -> tuple[bool, Value]:
    """Look up a key: (found, value). In a DefaultMap every key is found."""
    exists = contains(mapping, key)
    if exists:
        return True, mapping[key]
    if mapping.__class__ is DefaultMap:
        return True, {}
    return False, None


def contains(mapping: Mapping[Value, Value], key: Value) -> bool:
    """Whether a key is really in a map.

    Numeric keys match across int, uint and double; a bool never matches a number.
    """
    kind = key.__class__
    if kind is str:
        return key in mapping
    if kind is bool or kind in _NUMBERS:
        if key not in mapping:
            return False
        if key not in (0, 1):
            return True
        # Python takes False for 0 and True for 1: look at the keys themselves.
        return any(stored == key and (stored.__class__ is bool) == (kind is bool) for stored in mapping)
    if kind is Timestamp or kind is Duration or kind is TypeValue or key is None:
        return any(stored.__class__ is kind and stored == key for stored in mapping)
    if mapping and isinstance(mapping, ValueMap) and (panic := unhashable(key)) is not None:
        raise panic
    return False
