"""Findings that somebody accepted: by a baseline, or by a comment beside the object.

A baseline is a JSON file that lint and migrate can share. An entry says file, code, object, and field, so
that it holds when lines move.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.errors import InputError
from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.lint.locate import Excerpt, excerpt
from kubectl_dra.lint.rules import BY_CODE, RULES
from kubectl_dra.manifests.files import replace_bytes
from kubectl_dra.manifests.source import Source, SourcePosition

_KIND: Final = "Baseline"
_VERSION: Final = "1"


class KnownFindings(Struct, frozen=True, order=True, omit_defaults=True):
    """Findings that are alike, and how many there are."""

    file: str
    code: str
    object: str = ""
    field: str = ""
    count: int = 1


class _File(Struct, rename="camel"):
    schema_version: str
    kind: str
    findings: list[KnownFindings]


class PlacedFinding(Protocol):
    """What a finding has that an entry says."""

    @property
    def file(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def object(self) -> str: ...
    @property
    def field(self) -> str: ...


Found = TypeVar("Found", bound=PlacedFinding)
_Key = tuple[str, str, str, str]


def is_baseline(raw: Mapping[str, Any]) -> bool:
    """Whether a document of a file is a baseline."""
    return raw.get("kind") == _KIND and "apiVersion" not in raw and "schemaVersion" in raw


def read(path: str) -> list[KnownFindings]:
    """The entries of a baseline.

    Raises:
        InputError: it cannot be read, or is no baseline.
    """
    try:
        file = msgspec.json.decode(Path(path).read_bytes(), type=_File)
    except OSError as error:
        hint = "; --write-baseline makes it" if isinstance(error, FileNotFoundError) else ""
        raise InputError(f"{path}: cannot be read: {error.strerror or error}{hint}") from None
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not a baseline: {error}") from None
    if file.kind != _KIND or file.schema_version != _VERSION:
        raise InputError(f"{path}: not a baseline that this version can read")
    return file.findings


def write(path: str, findings: Iterable[PlacedFinding], family: str) -> int:
    """Write the findings as a baseline, and return their number.

    Entries that are there already and whose codes do not begin with ``family`` stay: they are another command's.

    Raises:
        InputError: it cannot be written, or another file is there.
    """
    others = [known for known in read(path) if not known.code.startswith(family)] if Path(path).exists() else []
    counts = Counter(_key(finding) for finding in findings)
    mine = [KnownFindings(*key, count) for key, count in counts.items()]
    data = msgspec.json.format(msgspec.json.encode(_File(_VERSION, _KIND, sorted((*others, *mine)))), indent=1)
    try:
        replace_bytes(Path(path), data + b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None
    return counts.total()


def without_known(
    findings: Sequence[Found], entries: Iterable[KnownFindings], family: str
) -> tuple[list[Found], int, int]:
    """The findings that no entry is about, how many are known, and how many of the entries' are found no more."""
    allowed: Counter[_Key] = Counter()
    for known in entries:
        if known.code.startswith(family):
            allowed[known.file, known.code, known.object, known.field] += known.count
    new: list[Found] = []
    for finding in findings:
        key = _key(finding)
        if allowed[key] > 0:
            allowed[key] -= 1
        else:
            new.append(finding)
    return new, len(findings) - len(new), allowed.total()


def _key(finding: PlacedFinding) -> _Key:
    return os.path.normpath(finding.file).replace(os.sep, "/"), finding.code, finding.object, finding.field


# ``# kubectl-dra: ignore[CODE] reason``: comments that silence findings, and those that silence nothing.
#
# A comment at the end of a line covers what begins on that line. One on its own line covers what begins on the
# next line, with everything in it: a request, a list, or a whole document.

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
    line: Excerpt
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
    for match in _COMMENT.finditer(source.text):
        index = bisect_right(starts, match.start()) - 1
        if index < 0 or match.start() >= inside[index][1]:
            following = following or _following(source.text)
            yield _read(source, match, following)


def _read(source: Source, match: re.Match[str], following: Sequence[int]) -> Suppression:
    text = source.text
    line, _ = source.place(match.start())
    begin = text.rfind("\n", 0, match.start()) + 1
    alone = not text[begin : match.start()].strip()
    covers = following[line - 1] if alone else line
    at = source.span(match.start(), match.start() + len(match.group().rstrip()))
    where = (at, excerpt(source, at), covers, alone)
    ignored = _IGNORE.match(match[1])
    if ignored is None:
        return Suppression(*where, (), "", "it must read: # kubectl-dra: ignore[CODE] reason")
    codes = tuple(code for code in (part.strip() for part in ignored[1].split(",")) if code)
    unknown = [
        code
        for code in codes
        if not code.startswith(MIGRATE) and not any(rule.code.startswith(code) or rule.name == code for rule in RULES)
    ]
    problem = "" if codes else "it names no code, as in: # kubectl-dra: ignore[DRA301] reason"
    if unknown:
        problem = f'there is no rule "{unknown[0]}" (kubectl dra lint --rules lists them)'
    return Suppression(*where, codes, ignored[2].strip(), problem)


def _following(text: str) -> list[int]:
    """For each line, the number of the next one that is neither blank nor a comment nor the start of a document."""
    lines = text.split("\n")
    out = [len(lines)] * len(lines)
    for index in range(len(lines) - 2, -1, -1):
        below = lines[index + 1].strip()
        plain = below and not below.startswith("#") and below != "---"
        out[index] = index + 2 if plain else out[index + 1]
    return out


def _covering(suppression: Suppression, finding: LocatedFinding) -> tuple[str, ...]:
    """By which of its codes the comment silences the finding: its line matches, and its code, name or family."""
    if suppression.covers not in finding.lines:
        return ()
    rule = BY_CODE.get(finding.code)
    name = "" if rule is None else rule.name
    return tuple(code for code in suppression.codes if finding.code.startswith(code) or name == code)


def apply(
    findings: Iterable[LocatedFinding], comments: Sequence[Suppression]
) -> tuple[list[LocatedFinding], int, list[Suppression]]:
    """The findings that remain, how many are silenced, and the comments with those codes that silenced nothing."""
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
    used: dict[int, set[str]] = {}
    for finding in findings:
        near = [index for line in finding.lines if line in by_line for index in by_line[line]]
        hits = {index: codes for index in near if (codes := _covering(usable[index], finding))}
        for index, codes in hits.items():
            used.setdefault(index, set()).update(codes)
        if hits:
            silenced += 1
        else:
            remaining.append(finding)
    return remaining, silenced, [*_idle(usable, used)]


def _idle(comments: Sequence[Suppression], used: Mapping[int, set[str]]) -> Iterator[Suppression]:
    for index, comment in enumerate(comments):
        codes = tuple(
            code for code in comment.codes if not code.startswith(MIGRATE) and code not in used.get(index, ())
        )
        if codes:
            yield replace(comment, codes=codes)
