"""``in``: a search in a list or map, or in the set of a list of constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kubectl_dra.cel import ast
from kubectl_dra.cel.dispatch import no_overload
from kubectl_dra.cel.errors import EvaluationError, located
from kubectl_dra.cel.values import Uint, Value, contains, equals, is_list, unhashable

if TYPE_CHECKING:
    from kubectl_dra.cel.closures.closure import Closure, Frame

_PLAIN = frozenset((str, int, Uint, bool, float))


def in_list(value: Value, elements: Sequence[Value]) -> bool:
    for element in elements:
        try:
            if equals(value, element):
                return True
        except EvaluationError as error:
            if error.fatal:
                raise
    return False


def in_container(value: Value, container: Value) -> bool:
    if isinstance(container, dict):
        return contains(container, value)
    if is_list(container):
        return in_list(value, container)
    raise no_overload("@in", (value, container))


def member_set(elements: Sequence[Value]) -> frozenset[Any] | None:
    """The members of a constant list as a set, or None if they are not all plain values."""
    members: set[Any] = set()
    for element in elements:
        kind = element.__class__
        if kind not in _PLAIN:
            return None
        key = _member_key(element)
        if key is not None:
            members.add(key)
        if kind is int or kind is Uint:
            members.add((float, float(element)))
            if kind is Uint and element < 1 << 63:
                members.add((int, int(element)))
            elif kind is int and element >= 0:
                members.add((Uint, Uint(element)))
        elif kind is float and element.is_integer():
            if -(2.0**63) < element < 2.0**63:
                members.add((int, int(element)))
            if 0 <= element < 2.0**64:
                members.add((Uint, Uint(int(element))))
    members.discard(None)
    return frozenset(members)


def in_members(element: Closure, members: frozenset[Any], node: ast.Call) -> Closure:
    """Whether an element is in a set made by ``member_set``. Costs nothing, unlike a search in a list."""

    def lookup(frame: Frame) -> Value:
        value = element(frame)
        if value.__class__ not in _PLAIN and (panic := unhashable(value)) is not None:
            raise located(panic, node)
        return _member_key(value) in members

    return lookup


def _member_key(value: Value) -> Any:
    """A hashable stand-in for Go's equality: same type and same content."""
    kind = value.__class__
    if kind is str or kind is bool or kind is int or kind is Uint:
        return (kind, value)
    if kind is float:
        return None if value != value else (kind, value)
    return None
