"""The words of a code, be it a rule of lint or a change of migrate."""

from __future__ import annotations

from typing import Final, NamedTuple

from kubectl_dra.lint.rules import BY_CODE

_SEVERITIES: Final = {"safe": "warning", "unsafe": "warning", "note": "info", "refusal": "error"}


class CodeWords(NamedTuple):
    """Name, title, reason and page (Markdown) of a code, and the severity of its findings."""

    name: str
    title: str
    why: str
    page: str
    severity: str


def words_of(code: str) -> CodeWords:
    """What is said of a code. Raises KeyError."""
    rule = BY_CODE.get(code)
    if rule is not None:
        return CodeWords(rule.name, rule.title(), rule.why(), rule.page().text, rule.severity)
    from kubectl_dra.migrate.codes import PAGES

    found = PAGES[code]
    return CodeWords(found.name, found.title, found.why, found.page.text, _SEVERITIES[found.safety])
