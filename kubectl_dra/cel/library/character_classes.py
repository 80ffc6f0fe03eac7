"""Names of character classes such as ``\\p{Greek}``, which Go looks up otherwise than RE2 does.

Go ignores case, blanks, hyphens and underscores of the name that is written, but not the underscores of the names
that it knows: ``\\p{Old_Italic}`` is unknown. It also knows long names, and the classes Any, ASCII, Assigned, Cn, LC.
"""

from __future__ import annotations

import re

_CATEGORIES = (
    *("C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No"),
    *("P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"),
)
_LONG_NAMES = {
    "Othersymbol": "So",
    "Casedletter": "LC",
    "Closepunctuation": "Pe",
    "Cntrl": "Cc",
    "Combiningmark": "M",
    "Connectorpunctuation": "Pc",
    "Control": "Cc",
    "Currencysymbol": "Sc",
    "Dashpunctuation": "Pd",
    "Decimalnumber": "Nd",
    "Digit": "Nd",
    "Enclosingmark": "Me",
    "Finalpunctuation": "Pf",
    "Format": "Cf",
    "Initialpunctuation": "Pi",
    "Letter": "L",
    "Letternumber": "Nl",
    "Lineseparator": "Zl",
    "Lowercaseletter": "Ll",
    "Mark": "M",
    "Mathsymbol": "Sm",
    "Modifierletter": "Lm",
    "Modifiersymbol": "Sk",
    "Nonspacingmark": "Mn",
    "Number": "N",
    "Openpunctuation": "Ps",
    "Other": "C",
    "Otherletter": "Lo",
    "Othernumber": "No",
    "Otherpunctuation": "Po",
    "Paragraphseparator": "Zp",
    "Privateuse": "Co",
    "Punct": "P",
    "Punctuation": "P",
    "Separator": "Z",
    "Spaceseparator": "Zs",
    "Spacingmark": "Mc",
    "Surrogate": "Cs",
    "Symbol": "S",
    "Titlecaseletter": "Lt",
    "Unassigned": "Cn",
    "Uppercaseletter": "Lu",
}
_ASSIGNED = r"\pL\pM\pN\pP\pS\pZ\p{Cc}\p{Cf}\p{Co}\p{Cs}"
# A class of its own, and what stands in another class.
_SETS = {"Ascii": r"\x00-\x7f", "Assigned": _ASSIGNED, "Lc": r"\p{Lu}\p{Ll}\p{Lt}", "LC": r"\p{Lu}\p{Ll}\p{Lt}"}

_NAMED = re.compile(r"\\Q.*?(?:\\E|\Z)|\\([pP])\{(\^?)([^}]*)\}|\\.|(\[\^?\]?)|(\])", re.DOTALL)


def as_re2_names_them(pattern: str) -> str:
    """The pattern with the names of its classes as RE2 knows them; unknown names become ones that RE2 rejects."""
    in_class = False

    def renamed(found: re.Match[str]) -> str:
        nonlocal in_class
        letter, negated, name, opened, closed = found.groups()
        if letter is None:
            if opened is not None and not (in_class and opened != "["):
                in_class = True
            elif opened is not None:
                in_class = not opened.endswith("]")
            elif closed is not None:
                in_class = False
            return found.group()
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
