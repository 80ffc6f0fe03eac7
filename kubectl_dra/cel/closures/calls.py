"""Calls: logic and conditionals, which may skip operands, and functions, which evaluate all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import EvaluationError, InternalError, located, no_such_overload
from kubectl_dra.cel.values import MutableList, TypeValue, Value, is_list, type_name

if TYPE_CHECKING:
    from kubectl_dra.cel.closures.closure import Closure, Frame
    from kubectl_dra.cel.declarations import Overload
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
    name = node.function

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
                meter.call(name, overloads, values, None)
            raise problem
        try:
            result = function(*values)
        except EvaluationError as error:
            meter.call(name, overloads, values, None)
            raise located(error, node)  # noqa: B904
        meter.call(name, overloads, values, result)
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
