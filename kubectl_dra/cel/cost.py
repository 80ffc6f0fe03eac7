"""Worst-case cost of a checked expression, as the API server computes it before it stores a selector.

The walk follows the cost rules of cel-go 0.26 (used by Kubernetes 1.34 to 1.36) on the expanded tree, with
the sizes that Kubernetes assumes for everything reachable from ``device``. Three rules decide most results:

* An unbounded size counts as the largest unsigned 64-bit integer, so comparing two unbounded values already
  exceeds every limit.
* Sizes follow *paths* (``device.attributes.@values.model``), not types. A variable of a macro or of
  ``cel.bind`` continues the path of the value that it stands for.
* A call whose overload is known only at run time costs from the cheapest to the dearest candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.cel import ast
from kubectl_dra.cel.ast import Expression
from kubectl_dra.cel.known_sizes import (
    LIST_CREATE_COST,
    MAP_CREATE_COST,
    ONE,
    STRUCT_CREATE_COST,
    UINT64_MAX,
    UNKNOWN_SIZE,
    ZERO,
    CallEstimate,
    CostRange,
    EntrySize,
    KnownSizes,
    Operands,
    Size,
    Trail,
    fixed,
)
from kubectl_dra.cel.lexer import with_room
from kubectl_dra.cel.types import CelType

if TYPE_CHECKING:
    from kubectl_dra.cel.functions import Overload

_SELECT_HAS_COST = frozenset({"map", "struct", "param"})


def estimate_cost(
    expression: Expression, node_types: Mapping[int, CelType], overloads: Mapping[int, Sequence[Overload]]
) -> CostRange:
    """Smallest and largest cost of evaluating a checked expression once.

    ``node_types`` maps node ids to deduced types, ``overloads`` maps ids of calls to the overloads that the
    checker considers possible. The API server compares the upper end with ``limits.MAX_EXPRESSION_COST``.
    """
    return with_room(lambda: _Walk(node_types, overloads).cost(expression))


class _Walk:
    """One pass over one expression."""

    def __init__(self, node_types: Mapping[int, CelType], overloads: Mapping[int, Sequence[Overload]]) -> None:
        self._overloads = overloads
        self._known = KnownSizes(node_types)

    def cost(self, node: Expression) -> CostRange:
        if isinstance(node, ast.Literal):
            return ZERO
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Select):
            return self._select(node)
        if isinstance(node, ast.Identifier):
            variable = self._known.variable(node.name)
            self._known.paths[node.id] = Trail([node.name], 1) if variable is None else variable.path
            return ONE
        if isinstance(node, ast.ListLiteral):
            return self._list(node)
        if isinstance(node, ast.MapLiteral):
            return self._map(node)
        if isinstance(node, ast.StructLiteral):
            return _total(self.cost(field.value) for field in node.fields).plus(fixed(STRUCT_CREATE_COST))
        return self._bind(node) if _is_bind(node) else self._comprehension(node)

    def _select(self, node: ast.Select) -> CostRange:
        cost = self.cost(node.operand)
        # Kubernetes made has() free for compatibility; it leaves no path behind either.
        if node.test_only:
            return cost
        if self._known.type(node.operand).kind in _SELECT_HAS_COST:
            cost = cost.plus(ONE)
        self._known.paths[node.id] = self._known.path(node.operand).extended(node.field)
        return cost

    def _call(self, node: ast.Call) -> CostRange:
        if node.function == "dyn":
            argument = node.arguments[0]
            cost = self.cost(argument)
            self._known.copy(node, argument)
            return cost.plus(ONE)
        costs = []
        arguments = []
        for argument in node.arguments:
            costs.append(self.cost(argument))
            arguments.append(self._known.describe(argument))
        if node.function == "_?._":
            self._known.set_size(node, self._known.size(node))
            return _total(costs).plus(ONE)
        candidates = self._overloads.get(node.id, ())
        if not candidates:
            return ZERO
        cost = ZERO
        if node.target is not None:
            cost = self.cost(node.target)
            arguments.insert(0, self._known.describe(node.target))
        operands = Operands(tuple(arguments))
        function_cost = CostRange(UINT64_MAX, 0)
        result_size: Size | None = None
        for overload in candidates:
            call = self._function(node, overload, operands, costs)
            function_cost = function_cost.union(call.cost)
            if call.result_size is not None:
                result_size = call.result_size if result_size is None else result_size.union(call.result_size)
            if overload.id in ("index_list", "index_map"):
                container = node.arguments[0]
                entry_size = self._known.entry_size(container)
                result_size = None if entry_size is None else entry_size.value
                step = "@items" if overload.id == "index_list" else "@values"
                self._known.paths[node.id] = self._known.path(container).extended(step)
            if result_size is None:
                result_size = self._known.size(node)
        self._known.set_size(node, result_size)
        return cost.plus(function_cost)

    def _function(
        self, node: ast.Call, overload: Overload, operands: Operands, costs: Sequence[CostRange]
    ) -> CallEstimate:
        """Cost of one candidate overload, including the costs of its arguments but not of its target."""
        if overload.id in ("logical_or", "logical_and"):
            return CallEstimate(CostRange(costs[0].min, costs[0].plus(costs[1]).max))
        if overload.id == "conditional":
            self._unite_entries(node, *node.arguments[1:])
            return CallEstimate(costs[0].plus(costs[1].union(costs[2])), operands.size(1).union(operands.size(2)))
        if overload.id == "add_list":
            self._unite_entries(node, *node.arguments)
        call = overload.cost.estimate(operands)
        return CallEstimate(call.cost.plus(_total(costs)), call.result_size)

    def _unite_entries(self, node: ast.Call, first: Expression, second: Expression) -> None:
        """The entries of a call's result are those of one of two operands, or of both."""
        entries = self._known.entry_size(first)
        if entries is not None:
            self._known.set_entry_size(node, entries.union(self._known.entry_size(second)))

    def _list(self, node: ast.ListLiteral) -> CostRange:
        cost = ZERO
        item = _nothing(len(node.elements))
        for element in node.elements:
            cost = cost.plus(self.cost(element))
            item = item.union(self._known.size(element) or UNKNOWN_SIZE)
        self._known.set_entry_size(node, EntrySize(True, ONE, item))
        return cost.plus(fixed(LIST_CREATE_COST))

    def _map(self, node: ast.MapLiteral) -> CostRange:
        cost = ZERO
        key = value = _nothing(len(node.entries))
        for entry in node.entries:
            cost = cost.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            key = key.union(self._known.size(entry.key) or UNKNOWN_SIZE)
            value = value.union(self._known.size(entry.value) or UNKNOWN_SIZE)
        self._known.set_entry_size(node, EntrySize(False, key, value))
        return cost.plus(fixed(MAP_CREATE_COST))

    def _bind(self, node: ast.Comprehension) -> CostRange:
        cost = self.cost(node.iter_range).plus(self.cost(node.accu_init))
        self._known.bind_value(node.accu_var, node.accu_init)
        cost = cost.plus(self.cost(node.result))
        self._known.unbind(node.accu_var)
        self._known.copy(node, node.result)
        return cost

    def _comprehension(self, node: ast.Comprehension) -> CostRange:
        cost = self.cost(node.iter_range).plus(self.cost(node.accu_init))
        self._known.bind_value(node.accu_var, node.accu_init)
        self._known.bind_iteration(node)
        per_element = self.cost(node.loop_condition)
        per_element = self.cost(node.loop_step).plus(per_element)
        self._known.unbind(node.iter_var)
        if node.iter_var2:
            self._known.unbind(node.iter_var2)
        cost = cost.plus(self.cost(node.result))
        self._known.unbind(node.accu_var)
        count = self._known.size(node.iter_range) or UNKNOWN_SIZE
        if isinstance(node.accu_init, ast.Literal):
            self._known.set_size(node, self._known.size(node.accu_init))
        elif isinstance(node.accu_init, (ast.ListLiteral, ast.MapLiteral)):
            self._known.set_size(node, count)
            self._known.set_entry_size(node, self._known.entry_size(node.loop_step))
        return cost.plus(count.times(per_element))


def _total(costs: Iterable[CostRange]) -> CostRange:
    total = ZERO
    for cost in costs:
        total = total.plus(cost)
    return total


def _nothing(count: int) -> Size:
    """The neutral start of a union over ``count`` sizes."""
    return CostRange(UINT64_MAX, 0) if count else ZERO


def _is_bind(node: ast.Comprehension) -> bool:
    """Whether this is ``cel.bind`` (or optMap, optFlatMap): a comprehension over an empty range."""
    return (
        isinstance(node.iter_range, ast.ListLiteral)
        and not node.iter_range.elements
        and isinstance(node.loop_condition, ast.Literal)
        and node.loop_condition.value is False
        and node.accu_var != "__result__"
    )
