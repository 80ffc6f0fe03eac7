"""Functions on strings: the language's own, and version 2 of cel-go's string extension."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import STRING_TRAVERSAL_FACTOR, UINT64_MAX, ZERO, CallEstimate, Cost, Operands, Size
from kubectl_dra.cel.libraries import FORMATTED_STRINGS, FORMER, REVISED
from kubectl_dra.cel.library.conversions import text_of_value
from kubectl_dra.cel.library.regex import MATCH, SEARCHED, matches
from kubectl_dra.cel.library.support import (
    AFFIX,
    SEARCH,
    WITHIN,
    actual_size,
    declared,
    member,
    overload,
    reading,
    scanned,
    scanning,
    text_of,
)
from kubectl_dra.cel.types import BOOL, DYN, INT, STRING, list_of
from kubectl_dra.cel.values import Value, type_name

_STRINGS = list_of(STRING)
_TWICE = 2 * STRING_TRAVERSAL_FACTOR
# White space as Unicode defines it; Python's own notion has a few control characters more.
_WHITE_SPACE = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}
_QUOTED = str.maketrans({written: f"\\{name}" for name, written in zip('abfnrtv\\"', '\a\b\f\n\r\t\v\\"', strict=True)})


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of_from(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset)


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


def _replace_estimate(operands: Operands) -> CallEstimate:
    text, old, new = operands.size(0), operands.size(1), operands.size(2)
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


def _split_estimate(operands: Operands) -> CallEstimate:
    size = operands.size(0)
    longest = size.max
    if len(operands.nodes) > 2 and type(limit := operands.nodes[2].literal) is int:
        longest = limit % 2**64
    return CallEstimate(size.scaled(_TWICE), Size(0, longest))


def _join_estimate(operands: Operands) -> CallEstimate:
    count = operands.size(0)
    element = operands.element(0)
    size = ZERO if element is None else count.times(element[1])
    if len(operands.nodes) > 1:
        separators = Size(max(count.min - 1, 0), max(count.max - 1, 0))
        size = size.plus(operands.size(1).times(separators))
    return CallEstimate(size.scaled(STRING_TRAVERSAL_FACTOR), size)


def _quoted(size: Size) -> Size:
    return Size(size.min + 2 & UINT64_MAX, size.max * 2 + 2 & UINT64_MAX)


def functions() -> list[Function]:
    one, two, three = (STRING,), (STRING, STRING), (STRING, STRING, STRING)
    shorter = reading(sized=True)
    affix = Cost(AFFIX.estimate, lambda values, result: scanned(actual_size(values[1])))
    replacing = Cost(_replace_estimate, reading(_TWICE).actual)
    splitting = Cost(_split_estimate, reading(_TWICE).actual)
    joining = Cost(_join_estimate, lambda values, result: scanned(actual_size(result), _TWICE))
    return declared(
        "strings",
        {
            "contains": [member("contains_string", two, BOOL, cost=WITHIN)],
            "endsWith": [
                member("ends_with_string", two, BOOL, cost=AFFIX, version=FORMER),
                member("ends_with_string", two, BOOL, cost=affix, version=REVISED),
            ],
            "startsWith": [
                member("starts_with_string", two, BOOL, cost=AFFIX, version=FORMER),
                member("starts_with_string", two, BOOL, cost=affix, version=REVISED),
            ],
            "matches": [
                overload("matches", two, BOOL, version=FORMER),
                overload("matches", two, BOOL, cost=MATCH, version=REVISED),
                member("matches_string", two, BOOL, cost=SEARCHED),
            ],
            "charAt": [member("string_char_at_int", (STRING, INT), STRING, _char_at)],
            "indexOf": [
                member("string_index_of_string", two, INT, str.find, SEARCH),
                member("string_index_of_string_int", (*two, INT), INT, _index_of_from, SEARCH, FORMER),
                member("string_index_of_string_int", (*two, INT), INT, _first_from, SEARCH, REVISED),
            ],
            "lastIndexOf": [
                member("string_last_index_of_string", two, INT, str.rfind, SEARCH),
                member("string_last_index_of_string_int", (*two, INT), INT, _last_index_of_from, SEARCH, FORMER),
                member("string_last_index_of_string_int", (*two, INT), INT, _last_from, SEARCH, REVISED),
            ],
            "lowerAscii": [member("string_lower_ascii", one, STRING, _lower_ascii, shorter)],
            "upperAscii": [member("string_upper_ascii", one, STRING, _upper_ascii, shorter)],
            "replace": [
                member("string_replace_string_string", three, STRING, str.replace, replacing),
                member("string_replace_string_string_int", (*three, INT), STRING, _replace_some, replacing),
            ],
            "split": [
                member("string_split_string", two, _STRINGS, _split, splitting),
                member("string_split_string_int", (*two, INT), _STRINGS, _split_some, splitting),
            ],
            "substring": [
                member("string_substring_int", (STRING, INT), STRING, _substring, shorter),
                member("string_substring_int_int", (STRING, INT, INT), STRING, _substring_range, shorter),
            ],
            "trim": [member("string_trim", one, STRING, lambda text: text.strip(_WHITE_SPACE), shorter)],
            "format": [member("string_format", (STRING, list_of(DYN)), STRING, _format, scanning(), FORMATTED_STRINGS)],
            "strings.quote": [overload("strings_quote", one, STRING, _quote, scanning(_quoted), FORMATTED_STRINGS)],
            "join": [
                member("list_join", (_STRINGS,), STRING, _join, joining, FORMATTED_STRINGS),
                member("list_join_string", (_STRINGS, STRING), STRING, _join, joining, FORMATTED_STRINGS),
            ],
        },
        {
            "contains": lambda text, part: text_of(part) in text_of(text),
            "endsWith": lambda text, suffix: text_of(text).endswith(text_of(suffix)),
            "startsWith": lambda text, prefix: text_of(text).startswith(text_of(prefix)),
            "matches": matches,
        },
    )
