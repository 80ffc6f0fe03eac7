"""What a macro expander is, and the nodes that it builds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kubectl_dra.cel import ast

MacroKey: TypeAlias = tuple[str, int, bool]
"""Name, number of arguments without the receiver, whether called on a receiver."""

Expander: TypeAlias = Callable[
    ["MacroContext", "ast.Expression | None", "tuple[ast.Expression, ...]"], "ast.Expression | None"
]
"""Builds a macro's expression from its receiver and arguments; None if it is an ordinary call."""


class MacroError(Exception):
    """A macro was called with invalid arguments; reported at ``offset``."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class MacroContext:
    """Builds nodes for an expander, with fresh ids and the position of the macro call."""

    __slots__ = ("_next_id", "end", "position", "start")

    def __init__(self, next_id: Callable[[], int], position: int, start: int, end: int) -> None:
        self._next_id = next_id
        self.position = position
        self.start = start
        self.end = end

    def _common(self) -> tuple[int, int, int, int]:
        return (self._next_id(), self.position, self.start, self.end)

    def literal(self, value: Any) -> ast.Literal:
        return ast.Literal(*self._common(), value)

    def identifier(self, name: str) -> ast.Identifier:
        return ast.Identifier(*self._common(), name)

    def call(self, function: str, *arguments: ast.Expression) -> ast.Call:
        return ast.Call(*self._common(), function, None, arguments)

    def member_call(self, function: str, target: ast.Expression, *arguments: ast.Expression) -> ast.Call:
        return ast.Call(*self._common(), function, target, arguments)

    def list(self, *elements: ast.Expression) -> ast.ListLiteral:
        return ast.ListLiteral(*self._common(), elements)

    def empty_map(self) -> ast.MapLiteral:
        return ast.MapLiteral(*self._common(), ())

    def presence_test(self, operand: ast.Expression, field: str) -> ast.Select:
        return ast.Select(*self._common(), operand, field, True)

    def comprehension(
        self,
        iter_range: ast.Expression,
        iter_vars: tuple[str, str],
        accu_var: str,
        accu_init: ast.Expression,
        condition: ast.Expression,
        step: ast.Expression,
        result: ast.Expression,
    ) -> ast.Comprehension:
        return ast.Comprehension(
            *self._common(), iter_range, iter_vars[0], iter_vars[1], accu_var, accu_init, condition, step, result
        )

    def copy(self, node: ast.Expression) -> ast.Expression:
        """The same tree with fresh ids; positions stay."""
        return _copy(node, self._next_id)


def _copy(node: ast.Expression, next_id: Callable[[], int]) -> ast.Expression:
    common = (next_id(), node.position, node.start, node.end)
    if isinstance(node, ast.Literal):
        return ast.Literal(*common, node.value)
    if isinstance(node, ast.Identifier):
        return ast.Identifier(*common, node.name)
    if isinstance(node, ast.Select):
        return ast.Select(*common, _copy(node.operand, next_id), node.field, node.test_only)
    if isinstance(node, ast.Call):
        arguments = [_copy(argument, next_id) for argument in node.arguments]
        target = None if node.target is None else _copy(node.target, next_id)
        return ast.Call(*common, node.function, target, tuple(arguments))
    if isinstance(node, ast.ListLiteral):
        elements = [_copy(element, next_id) for element in node.elements]
        return ast.ListLiteral(*common, tuple(elements), node.optional_indices)
    if isinstance(node, ast.MapLiteral):
        entries = []
        for entry in node.entries:
            entry_id, key, value = next_id(), _copy(entry.key, next_id), _copy(entry.value, next_id)
            entries.append(ast.MapEntry(entry_id, entry.position, key, value, entry.optional))
        return ast.MapLiteral(*common, tuple(entries))
    if isinstance(node, ast.StructLiteral):
        fields = []
        for field in node.fields:
            field_id, value = next_id(), _copy(field.value, next_id)
            fields.append(ast.FieldEntry(field_id, field.position, field.name, value, field.optional))
        return ast.StructLiteral(*common, node.type_name, tuple(fields))
    return ast.Comprehension(
        *common,
        _copy(node.iter_range, next_id),
        node.iter_var,
        node.iter_var2,
        node.accu_var,
        _copy(node.accu_init, next_id),
        _copy(node.loop_condition, next_id),
        _copy(node.loop_step, next_id),
        _copy(node.result, next_id),
    )
