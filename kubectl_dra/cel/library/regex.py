"""Regular expressions in RE2 syntax: matches, find, findAll."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import (
    ONE,
    REGEX_LENGTH_FACTOR,
    STRING_TRAVERSAL_FACTOR,
    CallEstimate,
    Cost,
    Operands,
    Size,
)
from kubectl_dra.cel.library.support import actual_size, declared, member, size_of, text_of
from kubectl_dra.cel.types import INT, STRING, list_of
from kubectl_dra.cel.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

_STRINGS = list_of(STRING)
# The messages of RE2 that Go words differently.
_GO_MESSAGES = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
# A quoted part, or one escape.
_ESCAPED = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(.)", re.DOTALL)
_NAMES_CLASSES = re.compile(r"\\[pP]\{").search


class PatternError(EvaluationError):
    """The text is not an RE2 pattern."""


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Any:
    """The compiled pattern of google-re2. Raises PatternError."""
    import re2

    options = re2.Options()
    options.log_errors = False
    if _NAMES_CLASSES(pattern):
        pattern = as_re2_names_them(pattern)
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        code, _, where = text.partition(": ")
        raise PatternError(f"error parsing regexp: {_GO_MESSAGES.get(code, code)}: `{where}`") from None
    # A single byte, which RE2 knows and Go does not.
    if any(escape.group(1) == "C" for escape in _ESCAPED.finditer(pattern)):
        raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
    return compiled


def _compiled(pattern: str) -> Any:
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


@lru_cache(maxsize=8192)
def _matches(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(text) is not None


def matches(text: Value, pattern: Value) -> bool:
    """Whether the pattern is found anywhere in the text."""
    return _matches(text_of(text), text_of(pattern))


def find(text: str, pattern: str) -> str:
    match = _compiled(pattern).search(text)
    return "" if match is None else str(match.group())


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    matches: list[str] = []
    if limit == 0:
        # The pattern is compiled first, as its error comes first.
        _compiled(pattern)
        return matches
    for match in _found(_compiled(pattern), text):
        matches.append(match)
        if len(matches) == limit:
            break
    return matches


def _found(pattern: Any, text: str) -> Iterator[str]:
    """Matches from left to right. An empty match right after another match does not count."""
    position, previous_end = 0, -1
    while position <= len(text):
        match = pattern.search(text, position)
        if match is None:
            return
        start, end = match.span()
        if end > start or start != previous_end:
            yield text[start:end]
        previous_end = end
        position = end if end > position else position + 1


def _search_estimate(operands: Operands) -> CallEstimate:
    size = operands.size(0)
    # One more character, so that an expensive pattern on an empty string is not free.
    text = size.plus(ONE).scaled(STRING_TRAVERSAL_FACTOR)
    return CallEstimate(text.times(operands.size(1).scaled(REGEX_LENGTH_FACTOR)), Size(0, size.max))


def pattern_cost(text_size: int, pattern_size: int) -> int:
    """Actual cost of a search, from the lengths of text and pattern."""
    text = math.ceil((1.0 + text_size) * STRING_TRAVERSAL_FACTOR)
    return text * math.ceil(pattern_size * REGEX_LENGTH_FACTOR)


def _search_actual(values: Sequence[Value], result: Value) -> int:
    return pattern_cost(actual_size(values[0]), actual_size(values[1]))


MATCH = Cost(lambda operands: CallEstimate(_search_estimate(operands).cost), _search_actual)
"""The cost of ``matches(text, pattern)``, as Kubernetes charges it."""
SEARCHED = Cost(MATCH.estimate, lambda values, result: pattern_cost(*map(size_of, values)), certain=True)
"""The same as cel-go charges it."""


def functions() -> list[Function]:
    two = (STRING, STRING)
    costs = Cost(_search_estimate, _search_actual)
    return declared(
        "regular expressions",
        {
            "find": [member("string_find_string", two, STRING, find, costs)],
            "findAll": [
                member("string_find_all_string", two, _STRINGS, find_all, costs),
                member("string_find_all_string_int", (*two, INT), _STRINGS, find_all, costs),
            ],
        },
    )


# Names of character classes such as ``\p{Greek}``, which Go looks up otherwise than RE2 does.
#
# Go ignores case, blanks, hyphens and underscores of the name that is written, but not the underscores of the names
# that it knows: ``\p{Old_Italic}`` is unknown. It also knows long names, and the classes Any, ASCII, Assigned, Cn, LC.

_CATEGORIES = (
    *("C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No"),
    *("P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"),
)
_LONG_NAMES_TEXT = """
Othersymbol=So Casedletter=LC Closepunctuation=Pe Cntrl=Cc Combiningmark=M Connectorpunctuation=Pc Control=Cc
Currencysymbol=Sc Dashpunctuation=Pd Decimalnumber=Nd Digit=Nd Enclosingmark=Me Finalpunctuation=Pf Format=Cf
Initialpunctuation=Pi Letter=L Letternumber=Nl Lineseparator=Zl Lowercaseletter=Ll Mark=M Mathsymbol=Sm
Modifierletter=Lm Modifiersymbol=Sk Nonspacingmark=Mn Number=N Openpunctuation=Ps Other=C Otherletter=Lo
Othernumber=No Otherpunctuation=Po Paragraphseparator=Zp Privateuse=Co Punct=P Punctuation=P Separator=Z
Spaceseparator=Zs Spacingmark=Mc Surrogate=Cs Symbol=S Titlecaseletter=Lt Unassigned=Cn Uppercaseletter=Lu
"""
_LONG_NAMES = dict(pair.split("=") for pair in _LONG_NAMES_TEXT.split())
_ASSIGNED = r"\pL\pM\pN\pP\pS\pZ\p{Cc}\p{Cf}\p{Co}\p{Cs}"
# A class of its own, and what stands in another class.
_SETS = {"Ascii": r"\x00-\x7f", "Assigned": _ASSIGNED, "Lc": r"\p{Lu}\p{Ll}\p{Lt}", "LC": r"\p{Lu}\p{Ll}\p{Lt}"}
_NAMED = re.compile(r"\\Q.*?(?:\\E|\Z)|\\([pP])\{(\^?)([^}]*)\}|\\.|(\[\^?\]?)|(\])", re.DOTALL)


def as_re2_names_them(pattern: str) -> str:
    """The pattern with the names of its classes as RE2 knows them; unknown names become ones that RE2 rejects."""
    in_class = False

    def renamed(match: re.Match[str]) -> str:
        nonlocal in_class
        letter, negated, name, opened, closed = match.groups()
        if letter is None:
            if opened is not None and not (in_class and opened != "["):
                in_class = True
            elif opened is not None:
                in_class = not opened.endswith("]")
            elif closed is not None:
                in_class = False
            return match.group()
        return _class_of(name, (letter == "P") != bool(negated), in_class)

    return _NAMED.sub(renamed, pattern)


def _class_of(name: str, negated: bool, in_class: bool) -> str:
    known = re.sub("[ _-]", "", name).capitalize() if name.isascii() else name
    sign = "P" if negated else "p"
    if known in _CATEGORIES or known == "Any":
        return rf"\{sign}{{{known}}}"
    known = _LONG_NAMES.get(known, known)
    if known in ("Cn", "Unassigned"):
        known, negated = "Assigned", not negated
    if known in _SETS:
        if in_class and not negated:
            return _SETS[known]
        return rf"[{'^' if negated else ''}{_SETS[known]}]"
    return rf"\{sign}{{{known}}}"
