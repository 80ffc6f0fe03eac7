"""``# kubectl-dra: ignore[CODE] reason``: comments that silence findings, and those that silence nothing.

A comment at the end of a line covers what begins on that line. One on its own line covers what begins on the
next line, with everything in it: a request, a list, or a whole document.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from kubectl_dra.lint.locate import excerpt
from kubectl_dra.lint.registry import BY_CODE, RULES
from kubectl_dra.lint.result import LocatedFinding
from kubectl_dra.manifests.source import Source, SourcePosition

MIGRATE: Final = "MIG"
"""The prefix of migrate's codes: such a comment is for that command."""
_MARK: Final = "kubectl-dra:"
_COMMENT: Final = re.compile(r"(?<!\S)#[ \t]*kubectl-dra:[ \t]*([^\r\n]*)")
_IGNORE: Final = re.compile(r"ignore[ \t]*\[([^\]]*)\][ \t]*(.*)")


class Suppression(Struct, frozen=True):
    """A comment: its position, its line's text, the line that it covers, its codes.

    ``problem`` says why it cannot be understood.
    """

    at: SourcePosition
    line: str
    covers: int
    alone: bool
    codes: tuple[str, ...]
    reason: str
    problem: str = ""


def may_have_comments(source: Source) -> bool:
    """Whether the text may contain comments for kubectl-dra."""
    return _MARK in source.text


def suppressions(source: Source, scalars: Sequence[tuple[int, int]]) -> Iterator[Suppression]:
    """Every comment for kubectl-dra; ``scalars`` are spans that hold no comments."""
    inside = sorted(scalars)
    starts = [start for start, _ in inside]
    following: list[int] = []
    for found in _COMMENT.finditer(source.text):
        index = bisect_right(starts, found.start()) - 1
        if index < 0 or found.start() >= inside[index][1]:
            following = following or _following(source.text)
            yield _read(source, found, following)


def _read(source: Source, found: re.Match[str], following: Sequence[int]) -> Suppression:
    text = source.text
    line, _ = source.place(found.start())
    begin = text.rfind("\n", 0, found.start()) + 1
    alone = not text[begin : found.start()].strip()
    covers = following[line - 1] if alone else line
    at = source.span(found.start(), found.start() + len(found.group().rstrip()))
    where = (at, excerpt(source, at), covers, alone)
    asked = _IGNORE.match(found[1])
    if asked is None:
        return Suppression(*where, (), "", "it must read: # kubectl-dra: ignore[CODE] reason")
    codes = tuple(code for code in (part.strip() for part in asked[1].split(",")) if code)
    unknown = [code for code in codes if not (code.startswith(MIGRATE) or _is_rule(code))]
    problem = "" if codes else "it names no code, as in: # kubectl-dra: ignore[DRA301] reason"
    if unknown:
        problem = f'there is no rule "{unknown[0]}" (kubectl dra lint --rules lists them)'
    return Suppression(*where, codes, asked[2].strip(), problem)


def _is_rule(code: str) -> bool:
    return any(rule.code.startswith(code) or rule.name == code for rule in RULES)


def _following(text: str) -> list[int]:
    """For each line, the number of the next one that is neither blank nor a comment nor the start of a document."""
    lines = text.split("\n")
    out = [len(lines)] * len(lines)
    for index in range(len(lines) - 2, -1, -1):
        below = lines[index + 1].strip()
        plain = below and not below.startswith("#") and below != "---"
        out[index] = index + 2 if plain else out[index + 1]
    return out


def covers(suppression: Suppression, finding: LocatedFinding) -> bool:
    """Whether the comment silences the finding: its line matches, and its code, rule name or family (such as DRA3)."""
    if suppression.covers not in finding.lines:
        return False
    rule = BY_CODE.get(finding.code)
    name = "" if rule is None else rule.name
    return any(finding.code.startswith(code) or name == code for code in suppression.codes)


def apply(
    findings: Iterable[LocatedFinding], comments: Sequence[Suppression]
) -> tuple[list[LocatedFinding], int, list[Suppression]]:
    """The findings that remain, how many are silenced, and the comments that silenced nothing."""
    usable = [
        comment
        for comment in comments
        if not comment.problem and not all(code.startswith(MIGRATE) for code in comment.codes)
    ]
    if not usable:
        return list(findings), 0, []
    by_line: dict[int, list[int]] = {}
    for index, comment in enumerate(usable):
        by_line.setdefault(comment.covers, []).append(index)
    remaining: list[LocatedFinding] = []
    silenced = 0
    used: set[int] = set()
    for finding in findings:
        near = [index for line in finding.lines if line in by_line for index in by_line[line]]
        hits = [index for index in near if covers(usable[index], finding)]
        used.update(hits)
        if hits:
            silenced += 1
        else:
            remaining.append(finding)
    return remaining, silenced, [comment for index, comment in enumerate(usable) if index not in used]
