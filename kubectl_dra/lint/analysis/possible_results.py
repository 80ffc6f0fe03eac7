"""What a selector may evaluate to on a partly known kind of device.

A *shape* says which attributes and capacities a device has, and the values of a few of them. The expression
is evaluated on it with unknown values tracked separately; the answer is which of true, false and error can
occur. Any form of guard works, because ``has(x)`` is known to be false if the attribute is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

from msgspec import Struct

from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import Column


class Shape(Protocol):
    """A kind of device. ``driver`` is None if any driver may publish it."""

    @property
    def driver(self) -> str | None: ...

    def values(self, column: Column) -> tuple[Any, ...] | None:
        """The possible values of an attribute or capacity: empty if it is absent, None if unknown."""


class Read(Struct, frozen=True):
    """A reading of an attribute or capacity that the shape does not have."""

    column: Column
    node: ast.Expression


class PossibleResults(Struct, frozen=True):
    """The possible values of a sub-expression (None: any), and whether it can be an error."""

    values: tuple[Any, ...] | None = None
    error: bool = False
    place: Column | None = None

    def can_be(self, value: bool) -> bool:
        """Whether the result may be this boolean."""
        return self.values is None or any(possible is value for possible in self.values)


class _Optional(Struct, frozen=True):
    inner: PossibleResults | None


ANYTHING: Final = PossibleResults()
FALSE: Final = PossibleResults((False,))
FAILS: Final = PossibleResults((), True)
DEVICE: Final = PossibleResults(place=Column("device", None, None))
_TRUE: Final = PossibleResults((True,))
_ORDERED: Final[Mapping[str, Callable[..., Any]]] = {
    "_<_": lambda left, right: bool(left < right),
    "_<=_": lambda left, right: bool(left <= right),
    "_>_": lambda left, right: bool(left > right),
    "_>=_": lambda left, right: bool(left >= right),
}
_TEXT: Final[Mapping[str, Callable[..., Any]]] = {
    "startsWith": lambda text, part: text.startswith(part),
    "endsWith": lambda text, part: text.endswith(part),
    "contains": lambda text, part: part in text,
    "lowerAscii": lambda text: text.lower() if text.isascii() else None,
    "upperAscii": lambda text: text.upper() if text.isascii() else None,
}

_Scope = dict[str, PossibleResults]


def outcome(
    expression: ast.Expression, shape: Shape, known: Mapping[int, PossibleResults] = MappingProxyType({})
) -> tuple[PossibleResults, tuple[Read, ...]]:
    """The possible results of the expression on a device of the shape, and the reads that fail on the way.

    ``known`` are results of parts, by the part's id.
    """
    judge = _Judge(shape, known)
    return judge.run(expression, {"device": DEVICE}), tuple(judge.failed)


class _Judge:
    def __init__(self, shape: Shape, known: Mapping[int, PossibleResults]) -> None:
        self.shape = shape
        self.known = known
        self.failed: list[Read] = []

    def run(self, node: ast.Expression, scope: _Scope) -> PossibleResults:
        if node.id in self.known:
            return self.known[node.id]
        if isinstance(node, ast.Literal):
            return PossibleResults((node.value,))
        if isinstance(node, ast.Identifier):
            return scope.get(node.name, ANYTHING)
        if isinstance(node, ast.Select):
            return self._step(node, self.run(node.operand, scope), node.field, node.test_only)
        if isinstance(node, ast.Call):
            return self._call(node, scope)
        if isinstance(node, ast.Comprehension):
            return self._comprehension(node, scope)
        parts = [self.run(child, scope) for child in ast.children(node)]
        error = any(part.error for part in parts)
        if isinstance(node, ast.ListLiteral) and all(
            part.values is not None and len(part.values) == 1 for part in parts
        ):
            return PossibleResults(([part.values[0] for part in parts if part.values],), error)
        return PossibleResults(None, error)

    def _comprehension(self, node: ast.Comprehension, scope: _Scope) -> PossibleResults:
        if node.iter_var == "#unused":
            return self.run(node.result, {**scope, node.accu_var: self.run(node.accu_init, scope)})
        source = self.run(node.iter_range, scope)
        inner = {**scope, node.iter_var: ANYTHING, node.accu_var: ANYTHING}
        if node.iter_var2:
            inner[node.iter_var2] = ANYTHING
        step = self.run(node.loop_step, inner)
        return PossibleResults(None, source.error or step.error)

    def _step(self, node: ast.Expression, at: PossibleResults, key: str, test_only: bool = False) -> PossibleResults:
        if at.values is not None and len(at.values) == 1 and isinstance(at.values[0], _Optional):
            inner = at.values[0].inner
            return at if inner is None else PossibleResults((_Optional(self._step(node, inner, key)),))
        place = at.place
        if place is None:
            return PossibleResults(None, at.error)
        if place.kind == "device":
            return self._field(key, test_only)
        if place.domain is None:
            return _TRUE if test_only else PossibleResults(place=Column(place.kind, key, None))
        column = Column(place.kind, place.domain, key)
        values = self.shape.values(column)
        if test_only:
            return FALSE if values == () else _TRUE
        if values == ():
            self.failed.append(Read(column, node))
            return FAILS
        return PossibleResults(values, place=column._replace(kind="value"))

    def _field(self, key: str, test_only: bool) -> PossibleResults:
        if test_only:
            return _TRUE
        if key == "driver":
            driver = self.shape.driver
            return PossibleResults(None if driver is None else (driver,))
        if key == "attributes":
            return PossibleResults(place=Column("attribute", None, None))
        if key == "capacity":
            return PossibleResults(place=Column("capacity", None, None))
        return ANYTHING

    def _call(self, node: ast.Call, scope: _Scope) -> PossibleResults:
        function = node.function
        if function in ("_&&_", "_||_"):
            return self._logic(node.arguments, function == "_&&_", scope)
        if function == "_?_:_":
            return self._choice(node.arguments, scope)
        if function in ("_[_]", "_?._", "_[?_]"):
            return self._lookup(node, scope, function != "_[_]")
        arguments = node.arguments if node.target is None else (node.target, *node.arguments)
        parts = [self.run(argument, scope) for argument in arguments]
        error = any(part.error for part in parts)
        if any(part.values == () for part in parts):
            return PossibleResults((), True)
        if function == "@in":
            return self._membership(parts[0], parts[1], error)
        optional = parts[0].values[0] if parts and parts[0].values and len(parts[0].values) == 1 else None
        if isinstance(optional, _Optional):
            return self._of_optional(function, optional, parts[1:], error)
        return self._computed(function, parts, error)

    def _logic(self, operands: Iterable[ast.Expression], conjunction: bool, scope: _Scope) -> PossibleResults:
        # One operand that decides hides the errors of the others, wherever it stands.
        decides = not conjunction
        possible: set[object] = {not decides}
        for operand in operands:
            if possible == {decides}:
                break
            states = _states(self.run(operand, scope))
            possible = {_joined(left, right, decides) for left in possible for right in states}
        values = tuple(value for value in (True, False) if value in possible)
        return PossibleResults(values, None in possible)

    def _choice(self, arguments: tuple[ast.Expression, ...], scope: _Scope) -> PossibleResults:
        condition = self.run(arguments[0], scope)
        states = _states(condition)
        branches = [
            self.run(branch, scope)
            for branch, value in ((arguments[1], True), (arguments[2], False))
            if value in states
        ]
        error = None in states or any(branch.error for branch in branches)
        values: list[Any] = []
        for branch in branches:
            if branch.values is None:
                return PossibleResults(None, error)
            values.extend(branch.values)
        return PossibleResults(tuple(values), error)

    def _lookup(self, node: ast.Call, scope: _Scope, optional: bool) -> PossibleResults:
        at = self.run(node.arguments[0], scope)
        key = self.run(node.arguments[1], scope)
        known = key.values[0] if key.values is not None and len(key.values) == 1 else None
        if not isinstance(known, str) or (at.place is None and not at.values):
            return PossibleResults(place=_unknown_place(at.place), error=at.error)
        if not optional:
            return self._step(node, at, known)
        if at.values and isinstance(at.values[0], _Optional):
            inner = at.values[0].inner
            return at if inner is None else self._optional(node, inner, known)
        return self._optional(node, at, known)

    def _optional(self, node: ast.Call, at: PossibleResults, key: str) -> PossibleResults:
        place = at.place
        if place is not None and place.kind != "device" and place.domain is not None:
            values = self.shape.values(Column(place.kind, place.domain, key))
            return PossibleResults((_Optional(None if values == () else PossibleResults(values)),))
        return PossibleResults((_Optional(self._step(node, at, key)),))

    def _of_optional(
        self, function: str, optional: _Optional, others: list[PossibleResults], error: bool
    ) -> PossibleResults:
        inner = optional.inner
        if function == "hasValue":
            return FALSE if inner is None else _TRUE
        if function == "orValue":
            return others[0] if inner is None else inner
        if function == "value":
            return FAILS if inner is None else inner
        return PossibleResults(None, error)

    def _membership(self, item: PossibleResults, container: PossibleResults, error: bool) -> PossibleResults:
        place = container.place
        if place is not None and place.kind in ("attribute", "capacity"):
            if item.values is None or len(item.values) != 1 or not isinstance(item.values[0], str):
                return PossibleResults(None, error)
            if place.domain is None:
                return self._has_domain(item.values[0])
            return FALSE if self.shape.values(Column(place.kind, place.domain, item.values[0])) == () else _TRUE
        if container.values is None or len(container.values) != 1 or not isinstance(container.values[0], list):
            return PossibleResults(None, error)
        if item.values is None:
            return PossibleResults(None, error)
        answers = {any(_equal(value, element) for element in container.values[0]) for value in item.values}
        return PossibleResults(tuple(answers), error)

    def _has_domain(self, domain: str) -> PossibleResults:
        if self.shape.driver == domain:
            return _TRUE
        known = self.shape.values(Column("attribute", domain, None))
        return FALSE if known == () else ANYTHING

    def _computed(self, function: str, parts: list[PossibleResults], error: bool) -> PossibleResults:
        if any(part.values is None or len(part.values) > 64 for part in parts):
            return PossibleResults(None, error)
        if function == "!_" and parts:
            return PossibleResults(
                tuple(not value for value in parts[0].values or () if isinstance(value, bool)), error
            )
        if len(parts) == 2 and function in ("_==_", "_!=_"):
            equal = {_equal(left, right) for left in parts[0].values or () for right in parts[1].values or ()}
            return PossibleResults(tuple(value is (function == "_==_") for value in equal), error)
        work = _ORDERED.get(function) or _TEXT.get(function)
        if work is None:
            return PossibleResults(None, error)
        try:
            if len(parts) == 2:
                results = {work(left, right) for left in parts[0].values or () for right in parts[1].values or ()}
            else:
                results = {work(value) for value in parts[0].values or ()}
        except (TypeError, AttributeError):
            return PossibleResults(None, error)
        return PossibleResults(None, error) if None in results else PossibleResults(tuple(results), error)


def _unknown_place(place: Column | None) -> Column | None:
    """The result of a lookup with an unknown key: in a map of maps, a map of unknown content."""
    return None if place is None or place.domain is not None else Column("unknown", "", None)


def _states(possible_results: PossibleResults) -> set[object]:
    """The possible states of a boolean operand: True, False, and None for an error."""
    states: set[object] = {None} if possible_results.error else set()
    if possible_results.values is None:
        return states | {True, False}
    # What is not a boolean is as bad as an error here.
    return states | {value if isinstance(value, bool) else None for value in possible_results.values}


def _joined(left: object, right: object, decides: bool) -> object:
    if left is decides or right is decides:
        return decides
    return None if left is None or right is None else not decides


def _equal(left: Any, right: Any) -> bool:
    # In CEL true is not 1.
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)
