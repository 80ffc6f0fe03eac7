"""What an estimate knows about the nodes it has walked: the paths to their values, and how large those can
be.

Sizes follow *paths* (``device.attributes.@values.model``), not types. A variable of a macro or of
``cel.bind`` continues the path of the value that it stands for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from kubectl_dra.api.limits import MAX_ATTRIBUTE_VALUE, MAX_DEVICE_ENTRIES, MAX_DOMAIN, MAX_DRIVER, MAX_IDENTIFIER
from kubectl_dra.cel.ast import Comprehension, Expression, Identifier, ListLiteral, Literal, MapLiteral
from kubectl_dra.cel.types import DYN, CelType

# Cost units, size ranges and the shapes of per-function cost hooks.
#
# Kubernetes bounds a device selector twice: the API server estimates the worst case before it stores an
# expression, and the scheduler counts the real cost while it evaluates one. Both limits are 1,000,000
# (``CELSelectorExpressionMaxCost`` in resource.k8s.io). Both use unsigned 64-bit integers that saturate instead
# of wrapping around, so "unknown" survives every further addition and multiplication.
#
# A function that does not simply cost 1 unit has a ``Cost`` in its overload.

UINT64_MAX = 2**64 - 1
STRING_TRAVERSAL_FACTOR = 0.1
REGEX_LENGTH_FACTOR = 0.25
LIST_CREATE_COST = 10
MAP_CREATE_COST = 30
STRUCT_CREATE_COST = 40


def saturating_add(x: int, y: int) -> int:
    """x + y, at most the largest unsigned 64-bit integer."""
    return min(x + y, UINT64_MAX)


def saturating_multiply(x: int, y: int) -> int:
    """x * y, at most the largest unsigned 64-bit integer."""
    return min(x * y, UINT64_MAX)


def scale(x: int, factor: float) -> int:
    """x * factor in double precision, rounded up, at most the largest unsigned 64-bit integer."""
    product = float(x) * factor
    if product >= 2.0**64:
        return UINT64_MAX
    return math.ceil(product)


class CostRange(NamedTuple):
    """Smallest and largest possible cost or size, as unsigned 64-bit integers."""

    min: int
    max: int

    def plus(self, other: CostRange) -> CostRange:
        return CostRange(saturating_add(self.min, other.min), saturating_add(self.max, other.max))

    def times(self, other: CostRange) -> CostRange:
        return CostRange(saturating_multiply(self.min, other.min), saturating_multiply(self.max, other.max))

    def scaled(self, factor: float) -> CostRange:
        """Both ends multiplied by factor (cost per element or character), rounded up."""
        return CostRange(scale(self.min, factor), scale(self.max, factor))

    def union(self, other: CostRange) -> CostRange:
        """The smallest range that holds both."""
        return CostRange(min(self.min, other.min), max(self.max, other.max))


Size = CostRange
"""Characters of a string, bytes of a byte string, elements of a list, entries of a map."""
ZERO = CostRange(0, 0)
ONE = CostRange(1, 1)
UNKNOWN_SIZE = Size(0, UINT64_MAX)


def fixed(n: int) -> CostRange:
    return CostRange(n, n)


class CallEstimate(NamedTuple):
    """Worst case of one call, without its operands.

    ``result_size`` is set only for results that have a size (string, bytes, list, map).
    """

    cost: CostRange
    result_size: Size | None = None


class CostNode(NamedTuple):
    """What a cost hook knows about an operand.

    ``path`` leads from a variable to the value (``("device", "attributes", "@values", "model")``); it is
    empty when the value does not come straight from a variable. ``literal`` is the CEL value of a literal,
    else None. ``computed_size`` is None when nothing bounds the size.
    """

    type: CelType
    path: tuple[str, ...] = ()
    literal: Any = None
    computed_size: Size | None = None


class Operands(NamedTuple):
    """The operands of a call as an estimate sees them, the receiver first."""

    nodes: tuple[CostNode, ...]

    def size(self, index: int) -> Size:
        """The size of an operand, from 0 to 2**64 - 1 if nothing bounds it."""
        return self.nodes[index].computed_size or UNKNOWN_SIZE

    def element(self, index: int) -> tuple[CelType, Size] | None:
        """Type and size of the elements of a list (any type with a first parameter), None for other types."""
        node = self.nodes[index]
        if not node.type.parameters:
            return None
        path = (*node.path, "@items") if node.path else ()
        return node.type.parameters[0], device_sizes(path) or UNKNOWN_SIZE


class Cost(NamedTuple):
    """What a call costs, without the cost of computing its operands; one unit unless told otherwise.

    ``estimate`` tells the worst case from the sizes of the operands, ``actual`` the cost of a completed call from its
    values and result. Of a call with several possible overloads the first with an ``actual`` is charged, but for those
    that are charged only if ``certain``: where no other overload was possible.
    """

    estimate: Callable[[Operands], CallEstimate] = lambda operands: CallEstimate(ONE)
    actual: Callable[[Sequence[Any], Any], int] | None = None
    certain: bool = False


GENERIC = Cost()

ValuePath = tuple[str, ...]
"""The path to a value, such as ``("device", "attributes", "@values", "model")``."""


def device_sizes(path: ValuePath) -> Size | None:
    """Largest size of the value at ``path``, starting from ``device``; None where Kubernetes assumes nothing.

    A capacity selected by field (``device.capacity[d].memory``) is unbounded, although one selected by index
    in the same map (``["memory"]``) is not.
    """
    size = _ASSUMED.get(path)
    is_attribute = len(path) == 4 and path[:2] == ("device", "attributes") and path[2] in ("@items", "@values")
    return Size(0, MAX_ATTRIBUTE_VALUE) if size is None and is_attribute else size


_ENTRIES = Size(0, MAX_DEVICE_ENTRIES)
_ASSUMED: dict[ValuePath, Size] = {
    ("device",): fixed(0),
    ("device", "driver"): Size(0, MAX_DRIVER),
    ("device", "allowMultipleAllocations"): Size(0, 1),
    **{("device", field): _ENTRIES for field in ("attributes", "capacity")},
    **{("device", field, "@keys"): Size(0, MAX_DOMAIN) for field in ("attributes", "capacity")},
    **{
        ("device", field, step, *below): size
        for field in ("attributes", "capacity")
        for step in ("@items", "@values")
        for below, size in (((), _ENTRIES), (("@keys",), Size(0, MAX_IDENTIFIER)))
    },
    **{("device", "capacity", *steps): fixed(0) for steps in product(("@items", "@values"), repeat=2)},
}
_SCALAR_KINDS = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_ACCUMULATORS = frozenset({"__result__", "@result"})


class Trail:
    """A path as cel-go stores it, in a Go slice.

    Two extensions of the same path may share memory, and then the later one overwrites the last step of the
    earlier one: after ``m.all(k, v, ...)`` the path of the key can be that of the value. Costs depend on it.
    """

    __slots__ = ("_length", "_memory")

    def __init__(self, memory: list[str], length: int) -> None:
        self._memory = memory
        self._length = length

    def extended(self, step: str) -> Trail:
        memory, length = self._memory, self._length
        if length == len(memory):
            memory = [*memory, *[""] * max(length, 1)]
        memory[length] = step
        return Trail(memory, length + 1)

    def steps(self) -> ValuePath:
        return tuple(self._memory[: self._length])


_NOWHERE = Trail([], 0)


class EntrySize(NamedTuple):
    """Sizes of the keys (or indices) and values of a list or map."""

    is_list: bool
    key: Size
    value: Size

    def union(self, other: EntrySize | None) -> EntrySize | None:
        if other is None:
            return None
        return EntrySize(self.is_list, self.key.union(other.key), self.value.union(other.value))


class _Variable(NamedTuple):
    path: Trail
    size: Size | None
    entry_size: EntrySize | None


class KnownSizes:
    """Paths and sizes by node, and the variables in scope."""

    def __init__(self, node_types: Mapping[int, CelType]) -> None:
        self._types = node_types
        self.paths: dict[int, Trail] = {}
        self._sizes: dict[int, Size] = {}
        self._entry_sizes: dict[int, EntrySize] = {}
        self._variables: dict[str, list[_Variable]] = {}

    def bind_value(self, name: str, node: Expression) -> None:
        """Declare a variable that stands for a node's value."""
        entry_size = self.entry_size(node)
        self._bind(name, _Variable(self.path(node), self.size(node), entry_size))

    def bind_iteration(self, node: Comprehension) -> None:
        """Declare the loop variables: list element, map key, or (with two) key and value."""
        entry_size = self.entry_size(node.iter_range)
        is_list = self.type(node.iter_range).kind == "list" if entry_size is None else entry_size.is_list
        key_size = None if entry_size is None else entry_size.key
        value_size = None if entry_size is None else entry_size.value
        path = self.path(node.iter_range)
        if node.iter_var2:
            keys, values = ("@indices", "@items") if is_list else ("@keys", "@values")
            self._bind(node.iter_var, _Variable(path.extended(keys), key_size, None))
            self._bind(node.iter_var2, _Variable(path.extended(values), value_size, None))
        elif is_list:
            self._bind(node.iter_var, _Variable(path.extended("@items"), value_size, None))
        else:
            self._bind(node.iter_var, _Variable(path.extended("@keys"), key_size, None))

    def _bind(self, name: str, variable: _Variable) -> None:
        self._variables.setdefault(name, []).append(variable)

    def variable(self, name: str) -> _Variable | None:
        """The innermost variable of that name."""
        stack = self._variables.get(name)
        return stack[-1] if stack else None

    def type(self, node: Expression) -> CelType:
        """The deduced type, or dyn if none was deduced."""
        return self._types.get(node.id, DYN)

    def path(self, node: Expression) -> Trail:
        """The path to the value; empty if it does not come from a variable."""
        if isinstance(node, Identifier):
            variable = self.variable(node.name)
            if variable is not None:
                return variable.path
        return self.paths.get(node.id, _NOWHERE)

    def describe(self, node: Expression) -> CostNode:
        """A node as cost hooks see it."""
        path = self.path(node).steps()
        if path and path[0] in _ACCUMULATORS:
            path = ()
        literal = node.value if isinstance(node, Literal) else None
        return CostNode(self.type(node), path, literal, self.size(node))

    def size(self, node: Expression) -> Size | None:
        """The known size of a node that has been walked."""
        known = self._sizes.get(node.id)
        if known is None:
            known = _written_size(node)
        if known is not None:
            return known
        assumed = device_sizes(self.path(node).steps())
        if assumed is not None:
            self._sizes[node.id] = assumed
            return assumed
        if _is_scalar(self.type(node)):
            return ONE
        if isinstance(node, Identifier):
            variable = self.variable(node.name)
            if variable is not None:
                return variable.size
        return None

    def set_size(self, node: Expression, size: Size | None) -> None:
        if size is not None:
            self._sizes[node.id] = size

    def entry_size(self, node: Expression) -> EntrySize | None:
        """The known sizes of keys and values."""
        known = self._entry_sizes.get(node.id)
        if known is None and isinstance(node, Identifier):
            variable = self.variable(node.name)
            if variable is not None:
                return variable.entry_size
        return known

    def set_entry_size(self, node: Expression, entry_size: EntrySize | None) -> None:
        if entry_size is not None:
            self._entry_sizes[node.id] = entry_size

    def copy(self, to: Expression, source: Expression) -> None:
        """Give one node the sizes of another."""
        self.set_size(to, self.size(source))
        self.set_entry_size(to, self.entry_size(source))

    def unbind(self, name: str) -> None:
        """Leave the scope of a variable."""
        self._variables[name].pop()


def _written_size(node: Expression) -> Size | None:
    if isinstance(node, Literal):
        return fixed(len(node.value)) if isinstance(node.value, (str, bytes)) else ONE
    if isinstance(node, ListLiteral):
        return fixed(len(node.elements))
    if isinstance(node, MapLiteral):
        return fixed(len(node.entries))
    return None


def _is_scalar(of: CelType) -> bool:
    if of.is_optional:
        return _is_scalar(of.parameters[0])
    return of.kind in _SCALAR_KINDS
