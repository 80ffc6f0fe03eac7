"""The abstract syntax tree.

Operators are calls with cel-go's internal names (``_&&_``, ``_[_]``, ``@in`` ...), and macros are
expanded exactly as cel-go expands them, because costs are defined on the expanded tree.
Offsets count code points from the start of the expression.

The classes are written out, not dataclasses, because those would take most of the start-up time of the
engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias


class SyntaxNode:
    """What all nodes share.

    ``id`` is unique in one expression. ``position`` is where Kubernetes reports an error of this
    node (the operator of a binary operation, the opening parenthesis of a call).
    ``start`` and ``end`` delimit the text the node was written as. Nodes are never changed.
    """

    __slots__ = ("end", "id", "position", "start")

    def __init__(self, id: int, position: int, start: int, end: int) -> None:
        self.id = id
        self.position = position
        self.start = start
        self.end = end

    def __repr__(self) -> str:
        names = [name for name in self.__class__.__slots__ if name != "id"]
        parts = [f"{name}={getattr(self, name)!r}" for name in names]
        return f"{self.__class__.__name__}({', '.join(parts)})"


class Literal(SyntaxNode):
    """A constant: null, bool, int, Uint, float, str or bytes."""

    __slots__ = ("value",)

    def __init__(
        self,
        id: int,
        position: int,
        start: int,
        end: int,
        value: Any,
    ) -> None:
        self.id = id
        self.position = position
        self.start = start
        self.end = end
        self.value = value


class Identifier(SyntaxNode):
    __slots__ = ("name",)

    def __init__(
        self,
        id: int,
        position: int,
        start: int,
        end: int,
        name: str,
    ) -> None:
        self.id = id
        self.position = position
        self.start = start
        self.end = end
        self.name = name


class Select(SyntaxNode):
    """``operand.field``, or with ``test_only`` what ``has(operand.field)`` becomes."""

    __slots__ = ("field", "operand", "test_only")

    def __init__(
        self,
        id: int,
        position: int,
        start: int,
        end: int,
        operand: Expression,
        field: str,
        test_only: bool = False,
    ) -> None:
        self.id = id
        self.position = position
        self.start = start
        self.end = end
        self.operand = operand
        self.field = field
        self.test_only = test_only


class Call(SyntaxNode):
    """A function call; ``target`` is the receiver of a member call."""

    __slots__ = ("arguments", "function", "target")

    def __init__(
        self,
        id: int,
        position: int,
        start: int,
        end: int,
        function: str,
        target: Expression | None,
        arguments: tuple[Expression, ...],
    ) -> None:
        self.id = id
        self.position = position
        self.start = start
        self.end = end
        self.function = function
        self.target = target
        self.arguments = arguments


class ListLiteral(SyntaxNode):
    """``optional_indices`` names the elements written with ``?``."""

    __slots__ = ("elements", "optional_indices")

    def __init__(
        self,
        id: int,
        position: int,
        start: int,
        end: int,
        elements: tuple[Expression, ...],
        optional_indices: tuple[int, ...] = (),
    ) -> None:
        self.id = id
        self.position = position
        self.start = start
        self.end = end
        self.elements = elements
        self.optional_indices = optional_indices


class MapEntry:
    """One entry of a map literal; ``optional`` ones are written with ``?``."""

    __slots__ = ("id", "key", "optional", "position", "value")

    def __init__(
        self,
        id: int,
        position: int,
        key: Expression,
        value: Expression,
        optional: bool = False,
    ) -> None:
        self.id = id
        self.position = position
        self.key = key
        self.value = value
        self.optional = optional


class MapLiteral(SyntaxNode):
    __slots__ = ("entries",)

    def __init__(
        self,
        id: int,
        position: int,
        start: int,
        end: int,
        entries: tuple[MapEntry, ...],
    ) -> None:
        self.id = id
        self.position = position
        self.start = start
        self.end = end
        self.entries = entries


class FieldEntry:
    """One field of a struct literal."""

    __slots__ = ("id", "name", "optional", "position", "value")

    def __init__(
        self,
        id: int,
        position: int,
        name: str,
        value: Expression,
        optional: bool = False,
    ) -> None:
        self.id = id
        self.position = position
        self.name = name
        self.value = value
        self.optional = optional


class StructLiteral(SyntaxNode):
    """``type_name{field: value}``: see `protobuf` for the messages there are."""

    __slots__ = ("fields", "type_name")

    def __init__(
        self,
        id: int,
        position: int,
        start: int,
        end: int,
        type_name: str,
        fields: tuple[FieldEntry, ...],
    ) -> None:
        self.id = id
        self.position = position
        self.start = start
        self.end = end
        self.type_name = type_name
        self.fields = fields


class Comprehension(SyntaxNode):
    """A loop over ``iter_range`` folding into ``accu_var``.

    ``iter_var2`` is empty for loops with one variable. For lists, two variables are index and
    element; for maps, key and value.
    """

    __slots__ = (
        "accu_init",
        "accu_var",
        "iter_range",
        "iter_var",
        "iter_var2",
        "loop_condition",
        "loop_step",
        "result",
    )

    def __init__(
        self,
        id: int,
        position: int,
        start: int,
        end: int,
        iter_range: Expression,
        iter_var: str,
        iter_var2: str,
        accu_var: str,
        accu_init: Expression,
        loop_condition: Expression,
        loop_step: Expression,
        result: Expression,
    ) -> None:
        self.id = id
        self.position = position
        self.start = start
        self.end = end
        self.iter_range = iter_range
        self.iter_var = iter_var
        self.iter_var2 = iter_var2
        self.accu_var = accu_var
        self.accu_init = accu_init
        self.loop_condition = loop_condition
        self.loop_step = loop_step
        self.result = result


Expression: TypeAlias = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | StructLiteral | Comprehension


class Ast:
    """A parsed expression.

    ``macro_calls`` maps the id of an expanded node to the call as written; its arguments are the
    parsed arguments (which may contain expanded macros themselves).
    """

    __slots__ = ("expression", "macro_calls", "source")

    def __init__(self, expression: Expression, source: str, macro_calls: Mapping[int, Call]) -> None:
        self.expression = expression
        self.source = source
        self.macro_calls = macro_calls


def children(node: Expression) -> tuple[Expression, ...]:
    """The direct sub-expressions, in evaluation order of cel-go's tree."""
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
    """``a.b.c`` as a text, or None if the node is anything else."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Identifier):
        return None
    names.append(node.name)
    names.reverse()
    return ".".join(names)
