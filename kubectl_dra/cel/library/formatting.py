"""The clauses of `format`: `%s %d %f %e %b %x %X %o`, with a precision for `%f` and `%e`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from kubectl_dra.api.codec import quoted
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.library import numbers
from kubectl_dra.cel.library.conversions import text_of_value
from kubectl_dra.cel.values import Duration, Timestamp, TypeValue, Uint, Value, is_list, type_name

_DEFAULT_PRECISION = 6
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SPECIAL_DOUBLES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Verb(NamedTuple):
    """What a clause accepts: types of values, besides those whose type is not known, and the words for others."""

    types: frozenset[str]
    accepts: str


_INTEGERS = frozenset({"int", "uint"})
_DOUBLES = frozenset({"double", "string"})
_HEX = Verb(_INTEGERS | {"string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex")
VERBS = {
    "s": Verb(
        _INTEGERS | {"list", "map", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null"},
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
        "and timestamps",
    ),
    "d": Verb(_INTEGERS, "decimal clause can only be used on integers"),
    "f": Verb(_DOUBLES, "fixed-point clause can only be used on doubles"),
    "e": Verb(_DOUBLES, "scientific clause can only be used on doubles"),
    "b": Verb(_INTEGERS | {"bool"}, "only integers and bools can be formatted as binary"),
    "x": _HEX,
    "X": _HEX,
    "o": Verb(_INTEGERS, "octal clause can only be used on integers"),
}


def refusal(verb: str, given: str) -> FormatError:
    """The error, at compile time or run time, for an argument of a type that a clause does not accept."""
    return FormatError(f"error during formatting: {VERBS[verb].accepts}, was given {given}")


class FormatError(Exception):
    """The format text is malformed, or an argument does not suit its clause."""


class Clause(NamedTuple):
    """One clause: its verb, and its precision if written."""

    verb: str
    precision: int | None


def clauses(text: str, count: int, *, compiling: bool = False) -> Iterator[str | Clause]:
    """The literal parts and clauses of a format text, up to the first error. Raises FormatError.

    `count` is the number of arguments. A clause without an argument is an error; surplus arguments are not. When
    ``compiling``, a percent sign at the end is noticed before its missing argument.
    """
    start = used = 0
    while True:
        percent = text.find("%", start)
        if percent < 0:
            yield text[start:]
            return
        yield text[start:percent]
        start = percent + 1
        if text.startswith("%", start):
            yield "%"
            start += 1
            continue
        if used >= count and not (compiling and start >= len(text)):
            raise FormatError(f"index {used} out of range")
        if start >= len(text):
            raise FormatError("unexpected end of string")
        clause, start = _clause(text, start)
        yield clause
        used += 1


def _clause(text: str, start: int) -> tuple[Clause, int]:
    precision = None
    if text[start] == ".":
        rest = text[start + 1 :]
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        start += 1 + len(digits)
        if start >= len(text):
            raise FormatError(
                "could not parse formatting clause: error while parsing precision: "
                "could not find end of precision specifier"
            )
        precision = numbers.parse_int(digits)
        if precision is None:
            reason = "value out of range" if digits else "invalid syntax"
            raise FormatError(
                "could not parse formatting clause: error while parsing precision: error while converting "
                f'precision to integer: strconv.Atoi: parsing "{digits}": {reason}'
            )
    verb = text[start]
    if verb not in VERBS:
        # Upstream looks at the first byte of the UTF-8 text.
        shown = chr(verb.encode()[0])
        raise FormatError(f'could not parse formatting clause: unrecognized formatting clause "{shown}"')
    return Clause(verb, precision), start + 1


def format_text(text: str, arguments: Sequence[Value]) -> str:
    """`text.format(arguments)`. Raises EvaluationError."""
    values = iter(arguments)
    try:
        # A missing argument is noticed before what is wrong behind it, so clauses are rendered in order.
        return "".join(
            part if isinstance(part, str) else _render(part, next(values)) for part in clauses(text, len(arguments))
        )
    except FormatError as error:
        raise EvaluationError(str(error)) from None


def _render(clause: Clause, value: Value) -> str:
    render = _RENDERERS[clause.verb]
    precision = _DEFAULT_PRECISION if clause.precision is None else clause.precision
    try:
        text = render(value, precision)
    except FormatError as error:
        raise FormatError(f"error during formatting: {error}") from None
    if text is None:
        raise refusal(clause.verb, type_name(value))
    return text


def _string(value: Value, precision: int) -> str | None:
    if value is None:
        return "null"
    try:
        text = text_of_value(value)
    except EvaluationError as error:
        raise FormatError(f"could not convert argument {quoted(str(error))} to string") from None
    if text is not None:
        return text
    if isinstance(value, dict):
        return _map(value)
    if is_list(value):
        return _list(value)
    return None


def _integer(form: str) -> Callable[[Any, int], str | None]:
    """Integers in the base of a Python format."""
    return lambda value, precision: format(int(value), form) if value.__class__ in (int, Uint) else None


def _double(value: Value) -> float | None:
    if value.__class__ is str:
        return _SPECIAL_DOUBLES.get(value)
    return value if value.__class__ is float else None


def _fixed(value: Value, precision: int) -> str | None:
    number = _double(value)
    if number is None:
        return None
    if not math.isfinite(number):
        return _not_finite(number)
    # No double has more than 1074 decimals.
    text = f"{abs(number):,.{min(precision, 1100)}f}"
    if precision > 255:
        # Upstream keeps the least number of decimals in one byte.
        least = text.index(".") + 1 + precision % 256
        text = (text[:least] + text[least:].rstrip("0")).removesuffix(".")
    return "-" + text if number < 0 else text


def _scientific(value: Value, precision: int) -> str | None:
    number = _double(value)
    if number is None:
        return None
    if not math.isfinite(number):
        text = _not_finite(number)
    else:
        mantissa, _, exponent = f"{number:.6e}".partition("e")
        power = f"{int(exponent):03d}" if int(exponent) < 0 else f"{int(exponent):02d}"
        text = f"{mantissa}×10{power.translate(_SUPERSCRIPTS)}"
        text = text.removeprefix("-") if number == 0 else text
    # Upstream takes the precision of this clause for the least width, and keeps 16 bits of it.
    return text.rjust(precision % 2**16)


def _not_finite(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "∞" if number > 0 else "-∞"


def _binary(value: Value, precision: int) -> str | None:
    return str(int(value)) if value.__class__ is bool else _integer("b")(value, precision)


def _hexadecimal(value: Value, precision: int) -> str | None:
    if isinstance(value, (str, bytes)):
        return (value.encode() if isinstance(value, str) else value).hex()
    return _integer("x")(value, precision)


def _upper_hexadecimal(value: Value, precision: int) -> str | None:
    text = _hexadecimal(value, precision)
    return None if text is None else text.upper()


_RENDERERS: dict[str, Callable[[Any, int], str | None]] = {
    "s": _string,
    "d": _integer("d"),
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hexadecimal,
    "X": _upper_hexadecimal,
    "o": _integer("o"),
}


def _list(values: Sequence[Value]) -> str:
    return "[" + ", ".join(map(_element, values)) + "]"


def _map(values: dict[Value, Value]) -> str:
    entries = []
    for key, value in values.items():
        if key.__class__ not in (str, bool, int, Uint):
            raise FormatError(f"no formatting function for map key of type {type_name(key)}")
        entries.append((_element(key), _element(value)))
    entries.sort(key=lambda item: item[0].encode())
    return "{" + ", ".join(f"{key}:{value}" for key, value in entries) + "}"


def _element(value: Value) -> str:
    """A value inside a list or map, written as CEL."""
    kind = value.__class__
    if kind is str:
        return quoted(value)
    if kind is bytes:
        return "b" + quoted(_bytes_text(value))
    if kind is float:
        return f"{value:.6f}" if math.isfinite(value) else quoted(numbers.double_text(value))
    if kind is Timestamp:
        return f"timestamp({quoted(numbers.timestamp_text(value))})"
    if kind is Duration:
        return f"duration({quoted(numbers.duration_text(value))})"
    if value is None or kind in (bool, int, Uint, TypeValue) or isinstance(value, dict) or is_list(value):
        text = _string(value, 0)
        assert text is not None
        return text
    raise FormatError(f"no formatting function for {type_name(value)}")


def _bytes_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise FormatError("could not convert argument to string") from None
