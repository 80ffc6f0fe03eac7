"""The abstract syntax tree.

Operators are calls with cel-go's internal names (``_&&_``, ``_[_]``, ``@in`` ...), and macros are
expanded exactly as cel-go expands them, because costs are defined on the expanded tree.
Offsets count code points from the start of the expression.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct


class SyntaxNode(Struct, eq=False):
    """The fields that all nodes share.

    ``id`` is unique within one expression. ``position`` is where Kubernetes reports an error of this node: at
    the operator of a binary operation, at the opening parenthesis of a call. ``start`` and ``end`` delimit
    the source text of the node. Nodes are immutable.
    """

    id: int
    position: int
    start: int
    end: int


class Literal(SyntaxNode, eq=False):
    """A constant: null, bool, int, Uint, float, str or bytes."""

    value: Any


class Identifier(SyntaxNode, eq=False):
    name: str


class Select(SyntaxNode, eq=False):
    """``operand.field``, or with ``test_only`` what ``has(operand.field)`` becomes."""

    operand: Expression
    field: str
    test_only: bool = False


class Call(SyntaxNode, eq=False):
    """A function call; ``target`` is the receiver of a member call."""

    function: str
    target: Expression | None
    arguments: tuple[Expression, ...]


class ListLiteral(SyntaxNode, eq=False):
    """``optional_indices`` names the elements written with ``?``."""

    elements: tuple[Expression, ...]
    optional_indices: tuple[int, ...] = ()


class MapEntry(Struct, eq=False):
    """One entry of a map literal; ``optional`` ones are written with ``?``."""

    id: int
    position: int
    key: Expression
    value: Expression
    optional: bool = False


class MapLiteral(SyntaxNode, eq=False):
    entries: tuple[MapEntry, ...]


class FieldEntry(Struct, eq=False):
    """One field of a struct literal."""

    id: int
    position: int
    name: str
    value: Expression
    optional: bool = False


class StructLiteral(SyntaxNode, eq=False):
    """``type_name{field: value}``; `protobuf` lists the messages that exist."""

    type_name: str
    fields: tuple[FieldEntry, ...]


class Comprehension(SyntaxNode, eq=False):
    """A loop over ``iter_range`` folding into ``accu_var``.

    ``iter_var2`` is empty for loops with one variable. For lists, two variables are index and
    element; for maps, key and value.
    """

    iter_range: Expression
    iter_var: str
    iter_var2: str
    accu_var: str
    accu_init: Expression
    loop_condition: Expression
    loop_step: Expression
    result: Expression


Expression: TypeAlias = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | StructLiteral | Comprehension


class Ast(Struct, eq=False):
    """A parsed expression.

    ``macro_calls`` maps the id of an expanded node to the call as written; its arguments are the
    parsed arguments (which may contain expanded macros themselves).
    """

    expression: Expression
    source: str
    macro_calls: Mapping[int, Call]


def children(node: Expression) -> tuple[Expression, ...]:
    """The direct sub-expressions, in the order in which cel-go evaluates them."""
    if isinstance(node, Select):
        return (node.operand,)
    if isinstance(node, Call):
        return node.arguments if node.target is None else (node.target, *node.arguments)
    if isinstance(node, ListLiteral):
        return node.elements
    if isinstance(node, MapLiteral):
        return tuple(part for entry in node.entries for part in (entry.key, entry.value))
    if isinstance(node, StructLiteral):
        return tuple(field.value for field in node.fields)
    if isinstance(node, Comprehension):
        return (node.iter_range, node.accu_init, node.loop_condition, node.loop_step, node.result)
    return ()


def walk(node: Expression) -> Iterator[Expression]:
    """All nodes, parents before children. Uses no recursion."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(children(current)))


def qualified_name(node: Expression) -> str | None:
    """The text ``a.b.c``, or None if the node is not a chain of names."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Identifier):
        return None
    names.append(node.name)
    names.reverse()
    return ".".join(names)
