"""The words of a selector around a place in it, found without parsing: while it is typed, it cannot be parsed."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

QUOTE: Final = r"\\?[\"']"
_MEMBER: Final = re.compile(
    rf"device\.(?P<map>attributes|capacity)\[{QUOTE}(?P<domain>[^\"'\\]*)(?:{QUOTE}\](?:\.\??(?P<name>\w+))?)?"
)
_WORD: Final = re.compile(r"\w+")
_PARTS: Final = (
    ("domain", re.compile(rf"device\.(attributes|capacity)\[{QUOTE}([\w./-]*)\Z")),
    ("name", re.compile(rf"device\.(attributes|capacity)\[{QUOTE}([\w./-]+){QUOTE}\]\.\??(\w*)\Z")),
    (
        "value",
        re.compile(
            rf"device\.(attributes)\[{QUOTE}([\w./-]+){QUOTE}\]\.(\w+)\s*(?:[=!]=\s*|in\s*\[[^\]]*){QUOTE}([^\"'\\]*)\Z"
        ),
    ),
    ("driver", re.compile(rf"device\.driver\s*[=!]=\s*{QUOTE}([\w.-]*)\Z")),
    ("field", re.compile(r"\bdevice\.(\w*)\Z")),
    ("method", re.compile(r"[\w)\]\"']\.(\w*)\Z")),
    ("quoted", re.compile(rf"{QUOTE}[^\"'\\]*\Z")),
    ("word", re.compile(r"(\w*)\Z")),
)


class Member(NamedTuple):
    """An attribute or capacity that is named in a selector; ``name`` is empty if only the domain is written."""

    map: str
    domain: str
    name: str
    start: int
    end: int


class Typed(NamedTuple):
    """What is being typed: ``what`` is domain, name, value, driver, field, method, quoted or word.

    ``prefix`` is the part that is there already. ``map``, ``domain`` and ``name`` say of which attribute or
    capacity, as far as ``what`` is about one.
    """

    what: str
    prefix: str
    map: str = ""
    domain: str = ""
    name: str = ""


def member_at(text: str, offset: int) -> Member | None:
    """The attribute or capacity whose name or domain is at an offset."""
    for found in _MEMBER.finditer(text):
        if found.start() <= offset <= found.end():
            return Member(found["map"], found["domain"], found["name"] or "", found.start(), found.end())
    return None


def word_at(text: str, offset: int) -> str:
    """The identifier at an offset, empty if there is none."""
    return next((found[0] for found in _WORD.finditer(text) if found.start() <= offset <= found.end()), "")


def typed(before: str) -> Typed:
    """What is being typed at the end of a selector's text."""
    if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
        return _typed(before, ("name", "field", "method", "word"))
    return _typed(before, ("domain", "value", "driver", "quoted"))


def _typed(before: str, among: tuple[str, ...]) -> Typed:
    for what, pattern in _PARTS:
        found = pattern.search(before) if what in among else None
        if found is None:
            continue
        groups = found.groups()
        if what in ("domain", "name", "value"):
            given = dict(zip(("map", "domain", "name"), groups[:-1], strict=False))
            return Typed(what, groups[-1], **given)
        return Typed(what, groups[0] if groups else "")
    return Typed("quoted", "")
