"""Parts of an expression that read nothing and fail: ``quantity("40GB")``, ``semver("1.x")``, ``ip("1.2.3")``.

They fail on every device on which they are evaluated, whatever it has, so no device needs to be known to find them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.semver import Semver, SemverError
from kubectl_dra.cel import ast
from kubectl_dra.cel.errors import EvaluationError

if TYPE_CHECKING:
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
    return tuple(amount for amount in wanted if _takes(Quantity.parse, amount, QuantityError))


def _versions(text: str) -> tuple[str, ...]:
    """The version completed to the three numbers of a semantic version."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return ()
    major, minor, patch, more = (part or "" for part in match.groups())
    numbers = ".".join(part.lstrip("0") or "0" for part in (major, minor, patch))
    return (numbers + more,) if _takes(Semver.parse, numbers + more, SemverError) else ()


def _takes(parse: Callable[[str], Any], text: str, error: type[Exception]) -> bool:
    try:
        parse(text)
    except error:
        return False
    return True


_MEANT: Final[Mapping[str, Callable[[str], tuple[str, ...]]]] = {"quantity": _amounts, "semver": _versions}
