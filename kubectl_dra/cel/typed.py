"""What fails in an expression because of the types that some of its parts are known to have.

The checker does not know the type of an attribute, so it takes ``"A100" in device.attributes["d"].name``. Where the
type is known from elsewhere, the same checks say which calls have no overload for it: evaluating those is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_dra.cel import ast, types
from kubectl_dra.cel.checker import Checker
from kubectl_dra.cel.types import DYN, CelType

if TYPE_CHECKING:
    from kubectl_dra.cel.environment import Environment
    from kubectl_dra.cel.program import Program

_ANY_TYPES: Final = ("_==_", "_!=_", "_?_:_", "orValue", "or")
"""Functions that take any values, whatever their types, once the expression runs."""


_LOGICAL: Final = ("_&&_", "_||_", "!_")


class Mistyped(NamedTuple):
    """A part that fails, and the operand, or one of them, whose known type it does not take."""

    node: ast.Expression
    operand: ast.Expression


def mistyped(program: Program, known: Mapping[int, CelType], about: Collection[int]) -> tuple[Mistyped, ...]:
    """The parts of a program that fail because of the ``known`` types, by node id, of others.

    Only those are told that have one of the parts ``about`` which it is asked as an operand.
    """
    checker = _Typed(program.environment, known, about)
    checker.check(program.ast.expression)
    return tuple(checker.failing)


class _Typed(Checker):
    """A checker that knows some types, and goes on where one does not fit."""

    def __init__(self, environment: Environment, known: Mapping[int, CelType], about: Collection[int]) -> None:
        super().__init__(environment)
        self._known = known
        self._about = about
        self.failing: list[Mistyped] = []

    def check(self, node: ast.Expression) -> ast.Expression:
        before = len(self.issues)
        out = super().check(node)
        if len(self.issues) > before:
            # What is inside has taken its own issues away.
            del self.issues[before:]
            self.node_types[node.id] = DYN
            self._failed(node)
        known = self._known.get(node.id)
        if known is not None:
            self.node_types[node.id] = known
        return out

    def _failed(self, node: ast.Expression) -> None:
        if isinstance(node, ast.Call):
            operands = node.arguments if node.target is None else (node.target, *node.arguments)
            if node.function in _ANY_TYPES or (node.function == "@in" and self._is_list(operands[1])):
                return
        elif isinstance(node, ast.Select):
            operands = (node.operand,)
        elif isinstance(node, ast.Comprehension):
            operands = (node.iter_range,)
        else:
            return
        # A logical operator says of each operand what it takes.
        asked = [part for part in operands if part.id in self._about]
        logical = isinstance(node, ast.Call) and node.function in _LOGICAL
        operand = next((part for part in asked if not logical or self.node_types[part.id] != types.BOOL), None)
        if operand is not None:
            self.failing.append(Mistyped(node, operand))

    def _is_list(self, node: ast.Expression) -> bool:
        return self.bindings.substitute(self.node_types.get(node.id, types.ERROR), True).kind == "list"
