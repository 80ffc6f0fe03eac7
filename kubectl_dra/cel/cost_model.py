"""Cost units, size ranges and the shapes of per-function cost hooks.

Kubernetes bounds a device selector twice: the API server estimates the worst case before it stores an
expression, and the scheduler counts the real cost while it evaluates one. Both limits are 1,000,000
(``CELSelectorExpressionMaxCost`` in resource.k8s.io). Both use unsigned 64-bit integers that saturate instead
of wrapping around, so "unknown" survives every further addition and multiplication.

A function that does not simply cost 1 unit has up to two hooks in its overload:

* ``estimate(estimator, target, arguments) -> CallEstimate | None``: worst case from the sizes of the
  operands, *without* the cost of computing the operands themselves. ``target`` is None for a global function.
  The result None means: use the generic rule of the overload.
* ``actual(values, result) -> int | None``: cost of one completed call. ``values`` holds the receiver
  first. The result None means the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from kubectl_dra.cel.types import CelType

UINT64_MAX = 2**64 - 1
"""Largest estimated or actual cost of one selector (CELSelectorExpressionMaxCost)."""

STRING_TRAVERSAL_FACTOR = 0.1
REGEX_LENGTH_FACTOR = 0.25
LIST_CREATE_COST = 10
MAP_CREATE_COST = 30
STRUCT_CREATE_COST = 40

COMPARES_TEXT = frozenset(
    f"{relation}_{kind}"
    for relation in ("less", "less_equals", "greater", "greater_equals")
    for kind in ("string", "bytes")
) | {"equals", "not_equals"}
"""Overloads that scan both texts up to the length of the shorter one."""


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


class Estimator(Protocol):
    """What an ``estimate`` hook can ask."""

    def size(self, node: CostNode) -> Size:
        """The computed size, else the size assumed for its path, else unknown (0 to 2**64 - 1)."""
        ...

    def element(self, node: CostNode) -> CostNode | None:
        """A node for the elements of a list (any type with a first parameter), None for other types."""
        ...


Estimate = Callable[[Estimator, CostNode | None, Sequence[CostNode]], CallEstimate | None]
Actual = Callable[[Sequence[Any], Any], int | None]
