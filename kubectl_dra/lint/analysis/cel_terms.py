"""Comparisons with constants in an expression, and what the operands of its ``&&`` require together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import DRIVER, Column, columns_of
from kubectl_dra.cel.values import Uint

if TYPE_CHECKING:
    from kubectl_dra.cel.program import Program

_OPERATORS: Final = {"_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_TURNED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_HOLDS: Final = {"<": lt, "<=": le, ">": gt, ">=": ge}
TEXT_TESTS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "contains": lambda text, part: part in text,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
}
_CALLS: Final = {"isGreaterThan": ">", "isLessThan": "<"}


class Constant(Struct, frozen=True):
    """A constant in an expression. ``type`` is string, int, double, bool, quantity or version.

    ``value`` is the Python value, a Quantity, or a version's text; ``text`` is the constant as written.
    """

    type: str
    value: Any
    text: str


class ConstantComparison(Struct, frozen=True):
    """A column compared with constants. ``operator`` is normalized to the column on the left; of a test of a part of a
    text it is ``contains``, ``startsWith`` or ``endsWith``.

    There are several ``constants`` only for ``in``. ``called``: the comparison is a method such as
    ``isGreaterThan``. ``turned``: the constant is on the left.
    """

    column: Column
    operator: str
    constants: tuple[Constant, ...]
    node: ast.Expression
    called: bool = False
    turned: bool = False


@lru_cache(1024)
def comparisons(program: Program) -> tuple[ConstantComparison, ...]:
    """Every comparison of a column with constants, anywhere in the expression."""
    comparisons = (_comparison(node, scope) for node, scope in scoped(program.ast.expression))
    return tuple(comparison for comparison in comparisons if comparison is not None)


@lru_cache(1024)
def demands(program: Program) -> tuple[ConstantComparison, ...]:
    """The comparisons, and tests of a part of a text, that must all hold for the expression to be true."""
    parts = _conjuncts(program.ast.expression, {})
    comparisons = (_comparison(node, scope) or _text_test(node, scope) for node, scope in parts)
    return tuple(comparison for comparison in comparisons if comparison is not None)


_Scope = Mapping[str, ast.Expression]


def _conjuncts(node: ast.Expression, scope: _Scope) -> Iterator[tuple[ast.Expression, _Scope]]:
    if isinstance(node, ast.Call) and node.function == "_&&_":
        for part in node.arguments:
            yield from _conjuncts(part, scope)
    elif isinstance(node, ast.Comprehension) and node.iter_var == "#unused":
        yield from _conjuncts(node.result, {**scope, node.accu_var: node.accu_init})
    else:
        yield node, scope


def scoped(root: ast.Expression) -> Iterator[tuple[ast.Expression, _Scope]]:
    """Every part of an expression, with what ``cel.bind`` has bound there."""
    pending: list[tuple[ast.Expression, _Scope]] = [(root, {})]
    while pending:
        node, scope = pending.pop()
        yield node, scope
        below = scope
        if isinstance(node, ast.Comprehension) and node.iter_var == "#unused":
            below = {**scope, node.accu_var: node.accu_init}
        pending.extend((child, below) for child in reversed(ast.children(node)))


def _comparison(node: ast.Expression, scope: _Scope) -> ConstantComparison | None:
    if not isinstance(node, ast.Call):
        return None
    if node.function in _CALLS and node.target is not None and len(node.arguments) == 1:
        return _compared(node.target, _CALLS[node.function], node.arguments[0], node, scope, called=True)
    operator = _OPERATORS.get(node.function)
    if operator is not None:
        left, right = node.arguments
        ordered = _compare_to(left, operator, right, node, scope)
        if ordered is not None:
            return ordered
        return _compared(left, operator, right, node, scope) or _compared(
            right, _TURNED[operator], left, node, scope, turned=True
        )
    if node.function == "@in":
        column = column_of(node.arguments[0], scope)
        options = node.arguments[1]
        if column is None or not isinstance(options, ast.ListLiteral):
            return None
        constants = [constant(option) for option in options.elements]
        known = tuple(constant for constant in constants if constant is not None)
        return ConstantComparison(column, "in", known, node) if known and len(known) == len(constants) else None
    return None


def _text_test(node: ast.Expression, scope: _Scope) -> ConstantComparison | None:
    """``x.contains(c)`` and its like, with the method's name as operator."""
    if (
        not isinstance(node, ast.Call)
        or node.function not in TEXT_TESTS
        or node.target is None
        or len(node.arguments) != 1
    ):
        return None
    return _compared(node.target, node.function, node.arguments[0], node, scope, called=True)


def _compare_to(
    left: ast.Expression, operator: str, right: ast.Expression, node: ast.Expression, scope: _Scope
) -> ConstantComparison | None:
    """``x.compareTo(c) >= 0`` is ``x >= c``."""
    zero = constant(right)
    if not isinstance(left, ast.Call) or left.function != "compareTo" or left.target is None or not left.arguments:
        return None
    if zero is None or zero.type != "int" or zero.value not in (-1, 0, 1):
        return None
    meaning: Mapping[tuple[str, int], str] = {
        ("==", 1): ">",
        ("==", -1): "<",
        (">=", 1): ">",
        ("<=", -1): "<",
        (">", -1): ">=",
        ("<", 1): "<=",
    }
    plain = operator if zero.value == 0 else meaning.get((operator, zero.value))
    return None if plain is None else _compared(left.target, plain, left.arguments[0], node, scope, called=True)


def _compared(
    subject: ast.Expression,
    operator: str,
    other: ast.Expression,
    node: ast.Expression,
    scope: _Scope,
    called: bool = False,
    turned: bool = False,
) -> ConstantComparison | None:
    column, value = column_of(subject, scope), constant(other)
    if column is None or value is None:
        return None
    return ConstantComparison(column, operator, (value,), node, called, turned)


def column_of(node: ast.Expression, scope: _Scope, *, tested: bool = False) -> Column | None:
    """The attribute, capacity or driver that a sub-expression reads, also through ``.?`` and ``orValue``; else None.

    ``tested``: also what is only tested by ``has``.
    """
    while isinstance(node, ast.Call) and node.function == "orValue" and node.target is not None:
        node = node.target
    if isinstance(node, ast.Select) and node.test_only and not tested:
        return None
    root = node
    while isinstance(root, ast.Select | ast.Call):
        if isinstance(root, ast.Select):
            root = root.operand
        elif root.function in ("_[_]", "_?._", "_[?_]"):
            root = root.arguments[0]
        else:
            return None
    if root is node or not isinstance(root, ast.Identifier):
        return None
    bound = scope.get(root.name)
    if bound is not None:
        node = ast.Comprehension(
            -1, 0, 0, 0, ast.ListLiteral(-1, 0, 0, 0, ()), "#unused", "", root.name, bound, node, node, node
        )
        columns = columns_of(node)
    else:
        columns = columns_of(node) if root.name == "device" else None
    if not columns or len(columns) != 1:
        return None
    column = next(iter(columns))
    if column == DRIVER:
        return column
    return column if column.kind in ("attribute", "capacity") and column.domain and column.id else None


def constant(node: ast.Expression) -> Constant | None:
    """The constant in a sub-expression, or None."""
    if isinstance(node, ast.Literal):
        return _literal(node.value)
    if isinstance(node, ast.Call) and node.function == "-_" and isinstance(node.arguments[0], ast.Literal):
        constant = _literal(node.arguments[0].value)
        return (
            None
            if constant is None or constant.type not in ("int", "double")
            else replace(constant, value=-constant.value)
        )
    if isinstance(node, ast.Call) and node.function in ("quantity", "semver") and node.arguments:
        text = node.arguments[0]
        if not isinstance(text, ast.Literal) or not isinstance(text.value, str):
            return None
        if node.function == "semver":
            return Constant("version", text.value, text.value)
        from kubectl_dra.api.quantity import Quantity, QuantityError

        try:
            return Constant("quantity", Quantity.parse(text.value), text.value)
        except QuantityError:
            return None
    return None


def _literal(value: Any) -> Constant | None:
    if isinstance(value, bool):
        return Constant("bool", value, str(value).lower())
    if isinstance(value, Uint | int):
        return Constant("int", int(value), str(int(value)))
    if isinstance(value, float):
        return Constant("double", value, str(value))
    return Constant("string", value, value) if isinstance(value, str) else None


def contradiction(first: ConstantComparison, second: ConstantComparison) -> bool:
    """Whether two comparisons of one column can never both be true."""
    if first.column != second.column:
        return False
    if first.operator in ("==", "in"):
        return not any(_allows(second, value) for value in first.constants)
    if second.operator in ("==", "in"):
        return not any(_allows(first, value) for value in second.constants)
    return _empty_range(first, second) or _empty_range(second, first)


def _allows(comparison: ConstantComparison, value: Constant) -> bool:
    if comparison.operator == "in":
        return any(_same(value, constant) for constant in comparison.constants)
    limit = comparison.constants[0]
    if comparison.operator == "==":
        return _same(value, limit)
    if comparison.operator == "!=":
        return not _same(value, limit)
    if comparison.operator in TEXT_TESTS:
        texts = value.type == limit.type == "string"
        return not texts or TEXT_TESTS[comparison.operator](value.value, limit.value)
    if not _ordered(value, limit):
        return True
    return bool(_HOLDS[comparison.operator](value.value, limit.value))


def _empty_range(low: ConstantComparison, high: ConstantComparison) -> bool:
    if low.operator not in (">", ">=") or high.operator not in ("<", "<="):
        return False
    least, most = low.constants[0], high.constants[0]
    if not _ordered(least, most):
        return False
    if bool(least.value > most.value):
        return True
    return bool(least.value == most.value) and (low.operator == ">" or high.operator == "<")


def _same(left: Constant, right: Constant) -> bool:
    if {left.type, right.type} <= {"int", "double"} or left.type == right.type:
        return bool(left.value == right.value)
    return False


def _ordered(left: Constant, right: Constant) -> bool:
    return {left.type, right.type} <= {"int", "double"} or left.type == right.type in ("quantity", "string")
