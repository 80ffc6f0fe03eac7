"""The table of CEL's functions: its types, and how a call finds its overload.

One table declares every function. The checker, the cost estimate, both evaluators and the generated reference
read it. ``kubectl_dra.cel.library.table()`` builds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from kubectl_dra.cel.errors import ErrorKind, EvaluationError
from kubectl_dra.cel.known_sizes import GENERIC, Cost
from kubectl_dra.cel.libraries import ALWAYS, LibraryVersion
from kubectl_dra.cel.types import CelType
from kubectl_dra.cel.values import Uint, Value, is_list, type_name


class Overload(Struct, eq=False):
    """One signature of a function.

    ``id`` is cel-go's overload id. ``parameters`` starts with the receiver if ``member`` is true.
    ``implementation`` takes the values in that order and returns a value or raises EvaluationError. It is
    None for what the evaluator does itself (logic, conditional, equality, index, ``in``); the function's
    ``implementation`` is None then, too.

    ``version`` says which releases have it. An overload that a release changed is declared twice, with one id.
    """

    id: str
    parameters: tuple[CelType, ...]
    result: CelType
    member: bool = False
    implementation: Callable[..., Any] | None = None
    cost: Cost = GENERIC
    version: LibraryVersion = ALWAYS

    def __repr__(self) -> str:
        return f"Overload({self.id})"


class Function(Struct, eq=False):
    """A function or operator name with all its overloads, in cel-go's order of declaration.

    ``implementation``, if set, serves every overload (cel-go's singleton binding). It receives the values
    unchecked and must raise ``no such overload`` itself. ``library`` is the part of the reference that has it.
    """

    name: str
    overloads: tuple[Overload, ...]
    implementation: Callable[..., Any] | None = None
    library: str = "standard"

    def __repr__(self) -> str:
        return f"Function({self.name})"


# Choosing the implementation of a function for the actual values.
#
# A single possible overload only has its parameter types guarded. Of several, the first in declaration order
# whose parameters fit the values is called. Values are matched by run-time type; as in cel-go, only the first
# element of a list or map counts.

Implementation = Callable[..., Value]
Guard = Callable[[Value], bool]
_CLASSES: dict[str, type] = {"bool": bool, "int": int, "uint": Uint, "double": float, "string": str, "bytes": bytes}


def guard(wanted: CelType) -> Guard | None:
    """A test whether a value may be passed as ``wanted``. None accepts everything."""
    kind = wanted.kind
    if kind in ("dyn", "any", "param"):
        return None
    scalar = _CLASSES.get(kind)
    if scalar is not None:
        return lambda value: value.__class__ is scalar
    if kind == "list":
        element = guard(wanted.parameters[0])
        if element is None:
            return is_list
        return lambda value: is_list(value) and (not value or element(value[0]))
    if kind == "map":
        key, value_guard = (guard(part) or (lambda value: True) for part in wanted.parameters)
        return lambda value: isinstance(value, dict) and _first_entry_fits(value, key, value_guard)
    name = wanted.name
    return lambda value: type_name(value) == name


def _first_entry_fits(mapping: dict[Value, Value], key: Guard, value: Guard) -> bool:
    for first in mapping.items():
        return key(first[0]) and value(first[1])
    return True


def no_overload(function: str, values: Sequence[Value]) -> EvaluationError:
    shown = ", ".join([type_name(value) for value in values])
    return EvaluationError(f"no such overload: {function}({shown})", kind=ErrorKind.NO_OVERLOAD)


def dispatcher(function: Function, candidates: Sequence[Overload], count: int) -> Implementation:
    """A callable for ``count`` values, the receiver first.

    ``candidates`` are the overloads that the checker considers possible.
    """
    if function.implementation is not None:
        return function.implementation
    if len(candidates) == 1 and candidates[0].implementation is not None:
        chosen = candidates
    else:
        chosen = [overload for overload in function.overloads if overload.implementation is not None]
    options = [
        (overload.implementation, [(index, test) for index, test in enumerate(map(guard, overload.parameters)) if test])
        for overload in chosen
        if overload.implementation is not None and len(overload.parameters) == count
    ]
    name = function.name
    if len(options) == 1:
        return _single(name, options[0][0], options[0][1])

    def call(*values: Value) -> Value:
        for implementation, guards in options:
            for index, test in guards:
                if not test(values[index]):
                    break
            else:
                return implementation(*values)
        raise no_overload(name, values)

    return call


def _single(name: str, implementation: Implementation, guards: list[tuple[int, Any]]) -> Implementation:
    if not guards:
        return implementation
    if len(guards) == 1:
        position, only = guards[0]

        def guarded_once(*values: Value) -> Value:
            if only(values[position]):
                return implementation(*values)
            raise no_overload(name, values)

        return guarded_once

    def guarded(*values: Value) -> Value:
        for index, test in guards:
            if not test(values[index]):
                raise no_overload(name, values)
        return implementation(*values)

    return guarded
