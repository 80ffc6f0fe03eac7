"""Parts of an expression that fail on every device: constants, and calls on what has another type than they take.

Constants such as ``quantity("40GB")``, ``semver("1.x")``, ``ip("1.2.3")`` fail whatever a device has, so none has to be
known to find them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.semver import Semver, SemverError
from kubectl_dra.cel import ast, types
from kubectl_dra.cel.checker import Checker
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.library.support import accepted
from kubectl_dra.cel.types import DYN, CelType

if TYPE_CHECKING:
    from kubectl_dra.cel.environment import Environment
    from kubectl_dra.cel.program import Program

_NOUNS: Final[Mapping[str, str]] = {
    "quantity": "quantity",
    "semver": "semantic version",
    "ip": "IP address",
    "cidr": "network",
    "url": "URL",
}
"""What the argument of each function must be."""
_AMOUNT: Final = re.compile(r"\s*([+-]?[0-9]+(?:[.,][0-9]+)?)\s*([A-Za-z]*)\s*")
_UNITS: Final = ("k", "m", "g", "t", "p", "e")
_VERSION: Final = re.compile(r"\s*[vV]?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?([-+].*)?\s*")
_MOST_NODES: Final = 2_000
_NO_DEVICE: Final[Mapping[str, Any]] = {"driver": "", "attributes": {}, "capacity": {}}
"""Nothing is read of it."""


class FailingConstant(NamedTuple):
    """A part that always fails: where it is written, and why.

    ``noun`` is what the text should be, where that is all that is wrong with it; ``instead`` are texts that the author
    may have meant.
    """

    start: int
    end: int
    written: str
    problem: EvaluationError
    noun: str = ""
    text: str = ""
    instead: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """What is wrong, as a clause."""
        if not self.noun:
            return f"{self.written} fails: {self.problem}"
        article = "an" if self.noun[0] in "aeiouAEIO" else "a"
        return f'"{self.text}" is not {article} {self.noun}'

    @property
    def advice(self) -> str:
        """What to write, as a sentence."""
        if self.instead:
            return f"Write {' or '.join(self.instead)}."
        return f"Correct {self.written}."


def failing_constants(program: Program) -> tuple[FailingConstant, ...]:
    """The innermost parts that read nothing and fail. Parts that a constant short-circuits are left out."""
    if sum(1 for _ in ast.walk(program.ast.expression)) > _MOST_NODES:
        return ()
    return tuple(_failing(program.ast.expression, program))


def _failing(node: ast.Expression, program: Program) -> Iterator[FailingConstant]:
    if isinstance(node, ast.Literal):
        return
    if not _is_constant(node):
        for part in _evaluated(node, program):
            yield from _failing(part, program)
        return
    try:
        program.part(node).evaluate_raw(_NO_DEVICE)
    except EvaluationError as problem:
        inner = [constant for part in ast.children(node) for constant in _failing(part, program)]
        yield from inner or [_described(node, problem, program)]


def _is_constant(node: ast.Expression) -> bool:
    """Whether a node reads no variable and is not the expansion of a macro."""
    return not any(isinstance(part, ast.Identifier | ast.Comprehension | ast.StructLiteral) for part in ast.walk(node))


def _evaluated(node: ast.Expression, program: Program) -> Iterator[ast.Expression]:
    """The parts of a node that its constant parts do not short-circuit."""
    if isinstance(node, ast.Call) and node.function in ("_&&_", "_||_", "_?_:_"):
        known = [_value(part, program) for part in node.arguments]
        if node.function == "_?_:_":
            left_out = None if known[0] is None else 2 if known[0] else 1
            yield from (part for number, part in enumerate(node.arguments) if number != left_out)
        elif (node.function == "_||_") not in known:
            yield from node.arguments
        return
    yield from ast.children(node)


def _value(node: ast.Expression, program: Program) -> bool | None:
    """The boolean that a part gives on every device; None if that depends on the device."""
    if not _is_constant(node):
        return None
    try:
        value = program.part(node).evaluate_raw(_NO_DEVICE)
    except EvaluationError:
        return None
    return value if isinstance(value, bool) else None


def _described(node: ast.Expression, problem: EvaluationError, program: Program) -> FailingConstant:
    written = program.ast.source[node.start : node.end]
    constant = FailingConstant(node.start, node.end, written, problem)
    if not isinstance(node, ast.Call) or node.function not in _NOUNS or len(node.arguments) != 1:
        return constant
    argument = node.arguments[0]
    if not isinstance(argument, ast.Literal) or not isinstance(argument.value, str):
        return constant
    meant = _MEANT[node.function](argument.value) if node.function in _MEANT else ()
    # In the author's quotes.
    instead = tuple(written.replace(argument.value, text) for text in meant if written.count(argument.value) == 1)
    return constant._replace(noun=_NOUNS[node.function], text=argument.value, instead=instead)


def _amounts(text: str) -> tuple[str, ...]:
    """The quantities that the author may have meant: 40GB is 40G, and often 40Gi was meant."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return ()
    number, unit = match[1].replace(",", "."), match[2].lower()
    letter, rest = unit[:1], unit[1:]
    if unit in ("", "b"):
        wanted = [number]
    elif letter not in _UNITS or rest not in ("", "b", "i", "ib"):
        return ()
    else:
        decimal, binary = ("k", "Ki") if letter == "k" else (letter.upper(), f"{letter.upper()}i")
        wanted = [f"{number}{binary}"] if rest in ("i", "ib") else [f"{number}{decimal}", f"{number}{binary}"]
    return tuple(filter(accepted(Quantity.parse, QuantityError), wanted))


def _versions(text: str) -> tuple[str, ...]:
    """The version completed to the three numbers of a semantic version."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return ()
    major, minor, patch, more = (part or "" for part in match.groups())
    numbers = ".".join(part.lstrip("0") or "0" for part in (major, minor, patch))
    return (numbers + more,) if accepted(Semver.parse, SemverError)(numbers + more) else ()


_MEANT: Final[Mapping[str, Callable[[str], tuple[str, ...]]]] = {"quantity": _amounts, "semver": _versions}


# What fails because of the types that some parts are known to have.
#
# The checker does not know the type of an attribute, so it takes ``"A100" in device.attributes["d"].name``. Where the
# type is known from elsewhere, the same checks say which calls have no overload for it: evaluating those is an error.

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
