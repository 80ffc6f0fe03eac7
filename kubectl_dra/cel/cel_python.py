"""A second opinion on selectors from cel-python, an independent CEL implementation.

cel-python has no type checker, no optional values, no ``cel.bind`` and no Kubernetes functions, so it can
judge only some selectors. ``compare`` reports how many. This package lends it quantities, versions and a few
string functions; parsing, lookup, logic, operators and macros are its own work.

cel-python takes about 0.2 s to load and 0.1 to 1 ms per evaluation. It is imported on first use, evaluates
one device of each group that the selector cannot tell apart, and must not run in two threads at once.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.semver import Semver
from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import DeviceTable, columns_of
from kubectl_dra.cel.device import split_name
from kubectl_dra.cel.errors import ErrorKind, EvaluationError
from kubectl_dra.cel.functions import dispatcher
from kubectl_dra.cel.library import table
from kubectl_dra.process import TooMuch, limited_fork

if TYPE_CHECKING:
    from kubectl_dra.cel.device import DeviceInput
    from kubectl_dra.cel.program import Program

MOST_EVALUATIONS = 1000
"""Distinct devices judged per expression; the others count as not comparable."""
SECONDS = 2.0
SECONDS_TOTAL = 5.0
MEGABYTES = 400
"""Memory limits for evaluating one expression, and all."""


class Difference(NamedTuple):
    """The devices (by index) on which the answers differ, and both answers: true, false, or an error's text."""

    expression: str
    devices: tuple[int, ...]
    ours: bool | str
    theirs: bool | str


class Comparison(NamedTuple):
    """``agree`` and ``not_comparable`` count devices; ``reasons`` counts the latter by reason."""

    agree: int
    differ: tuple[Difference, ...]
    not_comparable: int
    reasons: Mapping[str, int]


def compare(program: Program, devices: Sequence[DeviceInput]) -> Comparison:
    """Evaluate a compiled selector with cel-python as well, and compare. Two errors count as agreement."""
    obstacle = _obstacle(program.ast.expression, program.ast.macro_calls.values())
    if obstacle is not None:
        return Comparison(0, (), len(devices), {obstacle: len(devices)})
    with _quiet():
        try:
            judge = _Judge(program.expression)
        except Exception as error:  # cel-python raises whatever its parser library raises
            reason = f"cel-python does not accept the expression ({type(error).__name__})"
            return Comparison(0, (), len(devices), {reason: len(devices)})
        return _compare_groups(program, devices, judge)


class Opinions:
    """Comparisons on the same devices, each made in a child process with limits: cel-python itself has none."""

    def __init__(self, devices: Sequence[DeviceInput]) -> None:
        self._devices = devices
        self._end: float | None = None

    def compare(self, program: Program) -> Comparison:
        """As ``compare``; what takes too much time or memory, or comes after that, is not comparable."""
        if self._end is None:
            # Here, once, what every child needs.
            with _quiet():
                _Judge("true")
            self._end = time.monotonic() + SECONDS_TOTAL
        seconds = min(SECONDS, self._end - time.monotonic())
        if seconds > 0:
            with suppress(TooMuch):
                return limited_fork(lambda: compare(program, self._devices), seconds, MEGABYTES)
            reason = f"cel-python needs more than {SECONDS:g} s or {MEGABYTES} MB"
        else:
            reason = f"the expressions before took {SECONDS_TOTAL:g} s"
        return Comparison(0, (), len(self._devices), {reason: len(self._devices)})

    def compare_all(self, programs: Iterable[Program]) -> Comparison:
        """The comparisons of several expressions, added up."""
        compared = [self.compare(program) for program in programs]
        reasons: Counter[str] = Counter()
        for comparison in compared:
            reasons.update(comparison.reasons)
        differ = tuple(difference for comparison in compared for difference in comparison.differ)
        return Comparison(
            sum(comparison.agree for comparison in compared), differ, reasons.total(), dict(reasons.most_common())
        )


def _compare_groups(program: Program, devices: Sequence[DeviceInput], judge: _Judge) -> Comparison:
    weakness = _weakness(program.ast.expression, program.expression, program.ast.macro_calls.values())
    columns = columns_of(program.ast.expression)
    groups = [[i] for i in range(len(devices))] if columns is None else DeviceTable(devices).groups(columns)
    agree = 0
    differ = []
    reasons: Counter[str] = Counter()
    for group in groups[:MOST_EVALUATIONS]:
        device = devices[group[0]]
        kind = None
        try:
            ours: bool | str = program.evaluate(device)
        except EvaluationError as error:
            ours, kind = str(error), error.kind
        theirs, excuse = judge.answer(device)
        if theirs is None:
            reasons[excuse] += len(group)
        elif ours == theirs or (isinstance(ours, str) and isinstance(theirs, str)):
            agree += len(group)
        elif excuse or weakness:
            reasons[excuse or weakness] += len(group)
        elif kind is ErrorKind.NO_OVERLOAD and any("version" in value for value in device.attributes.values()):
            reasons["Kubernetes refuses to compare a version with another type"] += len(group)
        else:
            differ.append(Difference(program.expression, tuple(group), ours, theirs))
    unjudged = sum(map(len, groups[MOST_EVALUATIONS:]))
    if unjudged:
        reasons[f"more than {MOST_EVALUATIONS} distinct devices"] += unjudged
    return Comparison(agree, tuple(differ), reasons.total(), dict(reasons))


# What cel-python cannot run at all.

_OPTIONAL = frozenset({"_?._", "_[?_]", "orValue", "hasValue", "or", "optional.of", "optional.none"}) | {
    "optional.ofNonZeroValue",
    "optMap",
    "optFlatMap",
}
_MESSAGE_FREE = frozenset({"contains", "endsWith", "matches", "size", "startsWith", "type"}) | {
    "bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "uint",
    "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds",
    "getMinutes", "getMonth", "getSeconds",
}  # fmt: skip
_MACROS = frozenset({"all", "exists", "exists_one", "filter", "has", "map"})


def _obstacle(expression: ast.Expression, macros: Iterable[ast.Call]) -> str | None:
    """Why cel-python cannot run the expression, or None."""
    for macro in macros:
        if macro.function in _OPTIONAL:
            return "optional values"
        if macro.function not in _MACROS:
            return f"the macro {macro.function}"
        if macro.target is not None and len(macro.arguments) > (3 if macro.function == "map" else 2):
            return f"{macro.function} with two variables"
        if macro.function == "map" and len(macro.arguments) == 3:
            return "map with a filter"
    for node in ast.walk(expression):
        if isinstance(node, ast.Comprehension) and node.iter_var2:
            return "a macro with two variables"
        if (isinstance(node, ast.ListLiteral) and node.optional_indices) or (
            isinstance(node, ast.MapLiteral) and any(entry.optional for entry in node.entries)
        ):
            return "optional values"
        if isinstance(node, ast.Call) and node.function[0].isalpha():
            if node.function in _OPTIONAL or (node.function == "value" and not node.arguments):
                return "optional values"
            if node.function not in _MESSAGE_FREE and node.function not in _LENT:
                return f"the function {node.function}"
            if node.function in ("isSemver", "semver") and len(node.arguments) == 2:
                return f"the function {node.function} with two arguments"
        elif isinstance(node, ast.Call) and node.function in _OPTIONAL:
            return "optional values"
    return None


# Where it runs but is known to answer differently.

_CONVERSIONS = frozenset({"double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})
_IN_PLACE = frozenset({"add", "asInteger", "isInteger", "sub"})
_TEXT_BLOCK = re.compile(r'"""|\'\'\'|\\[?`]')


def _weakness(expression: ast.Expression, text: str, macros: Iterable[ast.Call]) -> str:
    """A construct in the expression that cel-python is known to get wrong; empty if there is none."""
    if _TEXT_BLOCK.search(text):
        return "cel-python reads triple-quoted texts and some escapes differently"
    if any(macro.function == "exists_one" for macro in macros):
        return "cel-python does not absorb errors from exists_one"
    for node in ast.walk(expression):
        if isinstance(node, ast.Call):
            if node.function in _CONVERSIONS:
                return f"cel-python converts with {node.function}() differently"
            if node.function in _IN_PLACE:
                return "Kubernetes changes quantities in place while it computes with them"
            if node.function == "_/_":
                return "cel-python divides differently"
            if node.function == "_[_]" and not _is_text(node.arguments[1]):
                return "cel-python accepts negative indices"
        if isinstance(node, ast.Literal) and isinstance(node.value, float):
            return "cel-python compares doubles differently"
        if isinstance(node, ast.MapLiteral):
            return "cel-python refuses maps with a key given twice"
    return ""


def _is_text(node: ast.Expression) -> bool:
    return isinstance(node, ast.Literal) and isinstance(node.value, str)


class _Judge:
    """One expression prepared for cel-python."""

    def __init__(self, expression: str) -> None:
        import celpy
        import celpy.celtypes
        import celpy.evaluation

        self._celtypes = celpy.celtypes
        self._error = celpy.evaluation.CELEvalError
        environment = celpy.Environment(runner_class=celpy.InterpretedRunner)
        functions = {name: _lend(name, celpy.celtypes) for name in _LENT}
        self._program = environment.program(environment.compile(expression), functions=functions)

        class DefaultMap(celpy.celtypes.MapType):
            """A domain without attributes reads as an empty map, but is not a member."""

            def __getitem__(self, key: Any) -> Any:
                return super().__getitem__(key) if key in self else celpy.celtypes.MapType()

            def get(self, key: Any, default: Any = None) -> Any:
                return self[key]

        self._default_map = DefaultMap

    def answer(self, device: DeviceInput) -> tuple[bool | str | None, str]:
        """The answer (None: not comparable), and a known reason why it may differ from Kubernetes'."""
        try:
            result = self._program.evaluate({"device": self._device(device)})
        except self._error as error:
            text = str(error.args[0]) if error.args else "error"
            if "overload" in text:
                return text.partition(" (in activation")[0], "cel-python refuses operands of different types"
            return text.partition(" (in activation")[0], ""
        except _NotConvertible as error:
            return str(error), ""
        except Exception as error:  # it lets Python errors of any kind escape
            return None, f"cel-python fails with {type(error).__name__}"
        if isinstance(result, self._celtypes.BoolType | bool):
            return bool(result), ""
        return f"result of type {type(result).__name__}", ""

    def _device(self, device: DeviceInput) -> Any:
        cel = self._celtypes
        return cel.MapType(
            {
                cel.StringType("driver"): cel.StringType(device.driver),
                cel.StringType("allowMultipleAllocations"): cel.BoolType(device.allow_multiple_allocations),
                cel.StringType("attributes"): self._domains(device.driver, device.attributes, self._attribute),
                cel.StringType("capacity"): self._domains(device.driver, device.capacity, _amount),
            }
        )

    def _domains(
        self, driver: str, entries: Mapping[str, Mapping[str, Any]], convert: Callable[[str, Mapping[str, Any]], Any]
    ) -> Any:
        cel = self._celtypes
        domains = self._default_map()
        for name, raw in entries.items():
            domain, rest = split_name(name, driver)
            key = cel.StringType(domain)
            if key not in domains:
                domains[key] = cel.MapType()
            domains[key][cel.StringType(rest)] = convert(name, raw)
        return domains

    def _attribute(self, name: str, raw: Mapping[str, Any]) -> Any:
        cel = self._celtypes
        for kind, value in raw.items():
            if kind == "string":
                return cel.StringType(value)
            if kind == "int":
                return cel.IntType(value)
            if kind == "bool":
                return cel.BoolType(value)
            if kind == "version":
                try:
                    return Semver.parse(value)
                except ValueError as error:
                    raise _NotConvertible(f"attribute {name}: {error}") from error
        raise _NotConvertible(f"attribute {name}: unsupported attribute value")


class _NotConvertible(Exception):
    """The device has an attribute that makes every expression fail."""


def _amount(name: str, raw: Mapping[str, Any]) -> Quantity:
    return Quantity.from_json(raw.get("value"))


def _lend(name: str, cel: Any) -> Callable[..., Any]:
    """One of our functions, so that it takes and returns cel-python's values."""
    function = table()[name]
    makers: Mapping[type, Callable[[Any], Any]] = {
        bool: cel.BoolType,
        int: cel.IntType,
        float: cel.DoubleType,
        str: cel.StringType,
    }
    plain = ((cel.BoolType, bool), (cel.IntType, int), (cel.DoubleType, float), (cel.StringType, str))

    def lent(*arguments: Any) -> Any:
        values = [next((to(value) for of, to in plain if isinstance(value, of)), value) for value in arguments]
        try:
            result = dispatcher(function, function.overloads, len(values))(*values)
        except EvaluationError as error:
            # What cel-python takes for a missing overload, and for an error of the function.
            raise (TypeError if error.kind is ErrorKind.NO_OVERLOAD else ValueError)(str(error)) from error
        make = makers.get(result.__class__)
        return result if make is None else make(result)

    return lent


_LENT: Final = frozenset(
    (
        *("add", "asApproximateFloat", "asInteger", "compareTo", "isGreaterThan", "isInteger", "isLessThan"),
        *("isQuantity", "isSemver", "lowerAscii", "major", "minor", "patch", "quantity", "semver", "sign", "sub"),
        "upperAscii",
    )
)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep cel-python's error log off the terminal, and restore the recursion limit that it changes."""
    disabled = logging.root.manager.disable
    limit = sys.getrecursionlimit()
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(disabled)
        sys.setrecursionlimit(limit)
