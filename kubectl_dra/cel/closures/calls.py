"""Calls: logic and conditionals, which may skip operands, and functions, which evaluate all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import EvaluationError, InternalError, located, no_such_overload
from kubectl_dra.cel.functions import no_overload
from kubectl_dra.cel.values import MutableList, TypeValue, Uint, Value, contains, equals, is_list, type_name, unhashable

if TYPE_CHECKING:
    from kubectl_dra.cel.functions import Overload
    from kubectl_dra.cel.runtime_cost import CostMeter


def conditional(node: ast.Call, condition: Closure, chosen: Closure, other: Closure) -> Closure:
    """``? :``; evaluates only one of its branches."""

    def choice(frame: Frame) -> Value:
        decision = condition(frame)
        if decision is True:
            return chosen(frame)
        if decision is False:
            return other(frame)
        raise located(no_such_overload(), node)

    return choice


def logic(node: ast.Call, left: Closure, right: Closure, decisive: bool) -> Closure:
    """``&&`` (decisive value False) and ``||`` (decisive value True). The decisive value outweighs errors."""
    undecided = not decisive

    def decision(frame: Frame) -> Value:
        problem: EvaluationError | None = None
        try:
            value = left(frame)
            if value is decisive:
                return decisive
            if value is not undecided:
                problem = located(no_such_overload(), node)
        except InternalError:
            raise
        except EvaluationError as error:
            if error.fatal:
                raise
            problem = error
        if problem is None:
            value = right(frame)
            if value is decisive or value is undecided:
                return value
            raise located(no_such_overload(), node)
        try:
            if right(frame) is decisive:
                return decisive
        except EvaluationError as error:
            if error.fatal:
                raise
        raise problem

    return decision


def not_strictly_false(closure: Closure, meter: CostMeter | None) -> Closure:
    """True unless the operand is false. An error counts as true."""

    def lenient(frame: Frame) -> Value:
        try:
            value = closure(frame)
        except EvaluationError as error:
            if error.fatal:
                raise
            value = None
        if meter is not None:
            meter.spend(1)
        return value is not False

    return lenient


def strict(node: ast.Call, closures: Sequence[Closure], function: Callable[..., Value], stops: bool) -> Closure:
    """A call that needs the values of all its operands. With ``stops``, a failed operand skips the rest."""
    if len(closures) == 1:
        only = closures[0]

        def unary(frame: Frame) -> Value:
            value = only(frame)
            try:
                return function(value)
            except EvaluationError as error:
                raise located(error, node)  # noqa: B904

        return unary
    if len(closures) == 2:
        left, right = closures

        def binary(frame: Frame) -> Value:
            try:
                first = left(frame)
            except EvaluationError as error:
                if not (stops or error.fatal):
                    _panic_of(right, frame)
                raise
            second = right(frame)
            try:
                return function(first, second)
            except EvaluationError as error:
                raise located(error, node)  # noqa: B904

        return binary

    def several(frame: Frame) -> Value:
        values = [closure(frame) for closure in closures]
        try:
            return function(*values)
        except EvaluationError as error:
            raise located(error, node)  # noqa: B904

    return several


def _panic_of(operand: Closure, frame: Frame) -> None:
    """Evaluate an operand whose value no longer matters, as cel-go does. It may still panic."""
    try:
        operand(frame)
    except EvaluationError as error:
        if error.fatal:
            raise


def metered(
    node: ast.Call,
    closures: Sequence[Closure],
    function: Callable[..., Value],
    overloads: Sequence[Overload],
    meter: CostMeter,
    stops: bool,
) -> Closure:
    """Like ``strict``, with its cost counted. With ``stops``, a failed operand skips the rest.

    A call whose operands were all evaluated is charged even if it fails.
    """

    def call(frame: Frame) -> Value:
        values: list[Value] = []
        problem: EvaluationError | None = None
        for closure in closures:
            try:
                values.append(closure(frame))
            except EvaluationError as error:
                if error.fatal:
                    raise
                values.append(error)
                problem = problem or error
                if stops:
                    break
        if problem is not None:
            if len(values) == len(closures):
                meter.call(overloads, values, None)
            raise problem
        try:
            result = function(*values)
        except EvaluationError as error:
            meter.call(overloads, values, None)
            raise located(error, node)  # noqa: B904
        meter.call(overloads, values, result)
        return result

    return call


def joining(add: Callable[[Value, Value], Value]) -> Callable[[Value, Value], Value]:
    """``+`` on a list that a macro collects: appends in place."""

    def addition(left: Value, right: Value) -> Value:
        if left.__class__ is MutableList:
            if not is_list(right):
                raise no_such_overload()
            left.extend(list(right))
            return left
        return add(left, right)

    return addition


def panicking(overload: str, closures: list[Closure]) -> list[Closure]:
    """The operands, wrapped to panic on errors where cel-go does because it cannot count their cost."""
    if overload == "list_distinct" or overload.endswith("_sort"):
        position, fits = 0, is_list
    elif overload.endswith("_sortByAssociatedKeys"):
        position, fits = 1, is_list
    elif overload == "list_flatten_int":
        position, fits = 1, _is_int
    else:
        return closures
    operand = closures[position]

    def checked(frame: Frame) -> Value:
        try:
            value = operand(frame)
        except EvaluationError as error:
            raise InternalError(f"internal error: {error.message}") from None
        if not fits(value):
            raise InternalError(f"internal error: unexpected {type_name(value)}")
        return value

    return [*closures[:position], checked, *closures[position + 1 :]]


def _is_int(value: Value) -> bool:
    return value.__class__ is int


def on_type_names(implementation: Callable[..., Value]) -> Callable[..., Value]:
    """Search types by their name, because with a compiled pattern cel-go accepts any value that wraps a Go string."""

    def search(*values: Value) -> Value:
        if values[0].__class__ is TypeValue:
            values = (values[0].name, *values[1:])
        return implementation(*values)

    return search


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


# The type of a closure and of its observers: a meter counts its cost, a recorder receives its outcome.

Frame: TypeAlias = list[Any]
"""Slot 0 is ``device``, the others are local variables."""
Closure: TypeAlias = Callable[[Frame], Value]
Recorder: TypeAlias = Callable[[int, Value], None]
"""Receives the outcome of every node by its id; an error comes as EvaluationError."""


def recorded(closure: Closure, recorder: Recorder, node_id: int) -> Closure:
    def recorded(frame: Frame) -> Value:
        try:
            value = closure(frame)
        except EvaluationError as error:
            recorder(node_id, error)
            raise
        recorder(node_id, value)
        return value

    return recorded


def charged(closure: Closure, meter: CostMeter) -> Closure:
    """The closure with one unit added to its cost, whether it fails or not."""
    spend = meter.spend

    def charging(frame: Frame) -> Value:
        try:
            return closure(frame)
        finally:
            spend(1)

    return charging
