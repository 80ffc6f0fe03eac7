"""Functions on strings: the language's own, and version 2 of cel-go's string extension."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.known_sizes import (
    STRING_TRAVERSAL_FACTOR,
    UINT64_MAX,
    ZERO,
    CallEstimate,
    CostNode,
    Estimator,
    Size,
)
from kubectl_dra.cel.libraries import FORMATTED_STRINGS, FORMER, REVISED
from kubectl_dra.cel.library.conversions import text_of_value
from kubectl_dra.cel.library.regex import match_estimate, matches, search_actual
from kubectl_dra.cel.library.support import (
    actual_size,
    element_scan_actual,
    element_scan_estimate,
    function,
    member,
    overload,
    scan_first_value,
    scan_second_value,
    scan_target,
    scanned,
    text_of,
)
from kubectl_dra.cel.types import BOOL, DYN, INT, STRING, CelType, list_of
from kubectl_dra.cel.values import Value, type_name

_LIBRARY = "strings"
_STRINGS = list_of(STRING)
_TWICE = 2 * STRING_TRAVERSAL_FACTOR
# White space as Unicode defines it; Python's own notion has a few control characters more.
_WHITE_SPACE = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}
_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _contains(text: Value, part: Value) -> bool:
    return text_of(part) in text_of(text)


def _starts_with(text: Value, prefix: Value) -> bool:
    return text_of(text).startswith(text_of(prefix))


def _ends_with(text: Value, suffix: Value) -> bool:
    return text_of(text).endswith(text_of(suffix))


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str) -> int:
    return text.find(part)


def _index_of_from(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset)


def _last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def _last_index_of_from(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


def _first_from(text: str, part: str, offset: int) -> int:
    return _index_of_from(text, part, _within(text, part, offset))


def _last_from(text: str, part: str, offset: int) -> int:
    return _last_index_of_from(text, part, _within(text, part, offset))


def _within(text: str, part: str, offset: int) -> int:
    """Where a search starts since 1.37: the empty part is found within the text only."""
    if offset < 0:
        raise _out_of_range(offset)
    return offset if part else min(offset, len(text))


def _lower_ascii(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_LOWER)


def _upper_ascii(text: str) -> str:
    return text.upper() if text.isascii() else text.translate(_UPPER)


def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new)


def _replace_some(text: str, old: str, new: str, limit: int) -> str:
    return text.replace(old, new, max(limit, -1))


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else list(text)


def _split_some(text: str, separator: str, limit: int) -> list[str]:
    if limit == 0:
        return []
    if limit < 0 or limit > len(text) + 1:
        return _split(text, separator)
    if separator:
        return text.split(separator, limit - 1)
    head = list(text[: limit - 1])
    tail = text[limit - 1 :]
    return [*head, tail] if tail else head


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    if end > len(text):
        raise _out_of_range(end)
    return text[start:end]


def _trim(text: str) -> str:
    return text.strip(_WHITE_SPACE)


def _join(values: Sequence[Value], separator: str = "") -> str:
    for value in values:
        if value.__class__ is not str:
            raise EvaluationError(f"join: invalid input: {shown(value)}")
    return separator.join(values)


def _format(text: str, arguments: Sequence[Value]) -> str:
    from kubectl_dra.cel.library.formatting import format_text

    return format_text(text, arguments)


def shown(value: Value) -> str:
    """A value roughly as error messages print it. Only simple values occur there in practice."""
    if value is None:
        return "0"
    text = text_of_value(value)
    return type_name(value) if text is None else text


def _quote(text: str) -> str:
    return '"' + text.translate(_QUOTED) + '"'


# Costs.

_SEARCH = {"estimate": element_scan_estimate, "actual": element_scan_actual}


def _replace_estimate(
    estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]
) -> CallEstimate | None:
    if target is None or len(arguments) < 2:
        return None
    text = estimator.size(target)
    old = estimator.size(arguments[0])
    new = estimator.size(arguments[1])
    # Longest result: the shortest pieces replaced by the longest; shortest result the other way round.
    if old.min == 0:
        most, kept_most = min(text.max + 1, UINT64_MAX), text.max
    elif new.max <= old.min:
        most, kept_most = 0, text.max
    else:
        most, kept_most = _pieces(text.max, old.min), 0
    if old.max == 0:
        least, kept_least = min(text.min + 1, UINT64_MAX), text.min
    elif old.max <= new.min:
        least, kept_least = 0, text.min
    else:
        least, kept_least = _pieces(text.min, old.max), 0
    size = Size(least, most).times(new).plus(Size(kept_least, kept_most))
    return CallEstimate(text.scaled(_TWICE), size)


def _pieces(length: int, piece: int) -> int:
    count = math.ceil(float(length) / float(piece))
    # A double of 2**64 does not fit; amd64 turns it into this.
    return count if count < 2**64 else 2**63


def _split_estimate(
    estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]
) -> CallEstimate | None:
    if target is None:
        return None
    size = estimator.size(target)
    longest = size.max
    if len(arguments) > 1 and type(arguments[1].literal) is int:
        longest = arguments[1].literal % 2**64
    return CallEstimate(size.scaled(_TWICE), Size(0, longest))


def _join_estimate(estimator: Estimator, target: CostNode | None, arguments: Sequence[CostNode]) -> CallEstimate | None:
    if target is None:
        return None
    count = estimator.size(target)
    element = estimator.element(target)
    size = ZERO if element is None else count.times(estimator.size(element))
    if arguments:
        separators = Size(max(count.min - 1, 0), max(count.max - 1, 0))
        size = size.plus(estimator.size(arguments[0]).times(separators))
    return CallEstimate(size.scaled(STRING_TRAVERSAL_FACTOR), size)


def _join_actual(values: Sequence[Value], result: Value) -> int:
    return scanned(actual_size(result), _TWICE)


def _reader(id: str, parameters: Sequence[CelType], implementation: Callable[..., str]) -> Overload:
    """A member overload that reads its receiver once and returns a string no longer than it."""
    return member(
        id,
        parameters,
        STRING,
        implementation,
        estimate=scan_target(STRING_TRAVERSAL_FACTOR),
        actual=scan_first_value(),
    )


def functions() -> list[Function]:
    def of_string(name: str, documentation: str, examples: Sequence[str], *overloads: Overload) -> Function:
        return function(name, _LIBRARY, documentation, examples, overloads)

    replacing = {"estimate": _replace_estimate, "actual": scan_first_value(_TWICE)}
    splitting = {"estimate": _split_estimate, "actual": scan_first_value(_TWICE)}
    joining = {"estimate": _join_estimate, "actual": _join_actual, "version": FORMATTED_STRINGS}
    return [
        function(
            "contains",
            _LIBRARY,
            "Whether a string has another one in it.",
            ('"a100-sxm".contains("sxm")',),
            [member("contains_string", (STRING, STRING), BOOL)],
            _contains,
        ),
        function(
            "endsWith",
            _LIBRARY,
            "Whether a string ends with another one.",
            ('"a100-80gb".endsWith("80gb")',),
            [
                member("ends_with_string", (STRING, STRING), BOOL, version=FORMER),
                member("ends_with_string", (STRING, STRING), BOOL, actual=scan_second_value, version=REVISED),
            ],
            _ends_with,
        ),
        function(
            "startsWith",
            _LIBRARY,
            "Whether a string starts with another one.",
            ('"a100-80gb".startsWith("a100")',),
            [
                member("starts_with_string", (STRING, STRING), BOOL, version=FORMER),
                member("starts_with_string", (STRING, STRING), BOOL, actual=scan_second_value, version=REVISED),
            ],
            _starts_with,
        ),
        function(
            "matches",
            _LIBRARY,
            "Whether an RE2 pattern is found anywhere in a string; a constant one is checked at compile time.",
            ('"a100".matches("^a[0-9]+$")', '!matches("h200", "^a")'),
            [
                overload("matches", (STRING, STRING), BOOL, version=FORMER),
                overload(
                    "matches",
                    (STRING, STRING),
                    BOOL,
                    estimate=match_estimate,
                    actual=search_actual,
                    version=REVISED,
                ),
                member("matches_string", (STRING, STRING), BOOL),
            ],
            matches,
        ),
        of_string(
            "charAt",
            "The character at an index from 0; empty at the end, an error beyond.",
            ('"abc".charAt(1) == "b"',),
            member("string_char_at_int", (STRING, INT), STRING, _char_at),
        ),
        of_string(
            "indexOf",
            "Where a string first occurs in another one, -1 if nowhere; optionally from an offset on.",
            ('"hello".indexOf("l") == 2', '"hello".indexOf("l", 3) == 3'),
            member("string_index_of_string", (STRING, STRING), INT, _index_of, **_SEARCH),
            member("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of_from, **_SEARCH, version=FORMER),
            member("string_index_of_string_int", (STRING, STRING, INT), INT, _first_from, **_SEARCH, version=REVISED),
        ),
        of_string(
            "lastIndexOf",
            "Where a string last occurs in another one, -1 if nowhere; optionally at an offset at most.",
            ('"hello".lastIndexOf("l") == 3', '"hello".lastIndexOf("l", 2) == 2'),
            member("string_last_index_of_string", (STRING, STRING), INT, _last_index_of, **_SEARCH),
            member(
                "string_last_index_of_string_int",
                (STRING, STRING, INT),
                INT,
                _last_index_of_from,
                **_SEARCH,
                version=FORMER,
            ),
            member(
                "string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_from, **_SEARCH, version=REVISED
            ),
        ),
        of_string(
            "lowerAscii",
            "The string with A to Z made small; other letters stay.",
            ('"TESLA".lowerAscii() == "tesla"',),
            _reader("string_lower_ascii", (STRING,), _lower_ascii),
        ),
        of_string(
            "upperAscii",
            "The string with a to z made capital; other letters stay.",
            ('"tesla".upperAscii() == "TESLA"',),
            _reader("string_upper_ascii", (STRING,), _upper_ascii),
        ),
        of_string(
            "replace",
            "The string with a part replaced everywhere, or so many times from the left.",
            ('"a-b-c".replace("-", ".") == "a.b.c"', '"a-b-c".replace("-", ".", 1) == "a.b-c"'),
            member("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace, **replacing),
            member(
                "string_replace_string_string_int",
                (STRING, STRING, STRING, INT),
                STRING,
                _replace_some,
                **replacing,
            ),
        ),
        of_string(
            "split",
            "The pieces between separators, optionally so many at most; an empty one gives characters.",
            ('"a,b,c".split(",") == ["a", "b", "c"]', '"a,b,c".split(",", 2) == ["a", "b,c"]'),
            member("string_split_string", (STRING, STRING), _STRINGS, _split, **splitting),
            member("string_split_string_int", (STRING, STRING, INT), _STRINGS, _split_some, **splitting),
        ),
        of_string(
            "substring",
            "The characters from an index on, optionally up to (not including) another one.",
            ('"hello".substring(3) == "lo"', '"hello".substring(1, 3) == "el"'),
            _reader("string_substring_int", (STRING, INT), _substring),
            _reader("string_substring_int_int", (STRING, INT, INT), _substring_range),
        ),
        of_string(
            "trim",
            "The string without white space at its ends.",
            ('" a100 ".trim() == "a100"',),
            _reader("string_trim", (STRING,), _trim),
        ),
        of_string(
            "format",
            "The string with its clauses %s %d %f %e %b %x %X %o filled in from a list.",
            ('"%s-%d".format(["gpu", 7]) == "gpu-7"', '"%.2f".format([1234.5]) == "1,234.50"'),
            member("string_format", (STRING, list_of(DYN)), STRING, _format, version=FORMATTED_STRINGS),
        ),
        of_string(
            "strings.quote",
            "The string in double quotes, with special characters escaped.",
            ('strings.quote("a") == "\\"a\\""',),
            overload("strings_quote", (STRING,), STRING, _quote, version=FORMATTED_STRINGS),
        ),
        of_string(
            "join",
            "The strings of a list put together, optionally with a separator.",
            ('["a", "b"].join("-") == "a-b"',),
            member("list_join", (_STRINGS,), STRING, _join, **joining),
            member("list_join_string", (_STRINGS, STRING), STRING, _join, **joining),
        ),
    ]
