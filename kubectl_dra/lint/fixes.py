"""``--fix``: the fixes of findings made in the texts, round after round until nothing is left to fix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.errors import InputError
from kubectl_dra.lint.finding import Safety
from kubectl_dra.lint.result import Located
from kubectl_dra.manifests.changes import Refused, changed
from kubectl_dra.manifests.documents import Skipped, each, parse
from kubectl_dra.manifests.edits import Edit, edits_of, verified
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.inputs import Input, read
from kubectl_dra.manifests.source import Position, Source, decode

ROUNDS: Final = 10

Check = Callable[[str, bytes], Sequence[Located]]
"""Lints the bytes of a file by its name."""


class Fixed(NamedTuple):
    """What became of one file. ``refused`` are fixes that were not made, with the reason."""

    text: Rewritten
    made: tuple[Located, ...] = ()
    refused: tuple[tuple[Located, str], ...] = ()


def fix_text(source: Source, found: Sequence[Located], allowed: Sequence[Safety], check: Check) -> Fixed:
    """Makes the fixes of a file's findings, then those of what is found in the result, until there are none.

    A fix is made only if the text then reads exactly as intended, and its finding is gone.
    """
    text, made, refused = source.text, [], {}
    settled: set[tuple[Any, ...]] = set()
    for _ in range(ROUNDS):
        current = Source(source.name, text, source.encoding, source.bom)
        waiting = [one for one in found if one.changes and one.safety in allowed and _key(one) not in settled]
        if not waiting:
            break
        after, done, failed = _round(current, waiting)
        for one, why in failed:
            settled.add(_key(one))
            refused[_key(one)] = (one, why)
        if not done:
            break
        found = check(source.name, source.encode(after))
        remaining = {_key(one) for one in found}
        for one in done:
            # A fix that leaves its finding is not made again, and not counted.
            settled.add(_key(one))
            if _key(one) in remaining:
                refused[_key(one)] = (one, "the finding is still there after the fix")
            else:
                made.append(one)
        text = after
    return Fixed(Rewritten(source.name, source.text, text, source), tuple(made), tuple(refused.values()))


def _key(found: Located) -> tuple[Any, ...]:
    return found.code, found.document, found.path, found.message


def _round(source: Source, waiting: Sequence[Located]) -> tuple[str, list[Located], list[tuple[Located, str]]]:
    """As many fixes as go together: the text, the fixes made, those that cannot be made with the reason."""
    try:
        documents = parse(source)
    except InputError:
        # What other documents of the file mean cannot be compared before and after.
        return source.text, [], [(found, "another document of the file cannot be read") for found in waiting]
    by_index = {document.index: document for document in documents}
    edits: list[Edit] = []
    objects: dict[int, Any] = {}
    done: list[Located] = []
    failed: list[tuple[Located, str]] = []
    text = source.text
    for found in waiting:
        try:
            document = by_index[found.document]
            own = edits_of(document, found.changes)
            if _overlap(own, edits):
                # The next round makes it, if it is still needed then.
                continue
            intended = {**objects, found.document: changed(objects.get(found.document, document.object), found.changes)}
            text = verified(documents, [*edits, *own], intended)
        except (Refused, KeyError, IndexError, TypeError, ValueError) as error:
            failed.append((found, str(error) or type(error).__name__))
            continue
        edits, objects = [*edits, *own], intended
        done.append(found)
    return text, done, failed


def _overlap(own: Sequence[Edit], others: Sequence[Edit]) -> bool:
    """Whether edits touch the same or neighbouring places, so that one could undo the other."""
    return any(one.start <= other.end and other.start <= one.end for one in own for other in others)


class Replacement(NamedTuple):
    """A span of a file's text and what a fix puts in its place."""

    at: Position
    text: str


def replacements(findings: Sequence[Located], inputs: Sequence[Input]) -> dict[int, tuple[Replacement, ...]]:
    """What the fix of each finding would change, by the finding's index; a fix that cannot be made is left out."""
    by_file: dict[str, list[int]] = {}
    for index, found in enumerate(findings):
        if found.changes:
            by_file.setdefault(found.file, []).append(index)
    out: dict[int, tuple[Replacement, ...]] = {}
    for given in inputs:
        indices = by_file.get(given.name)
        if not indices:
            continue
        try:
            source = decode(read(given), given.name)
        except InputError:
            continue
        documents = {one.index: one for one in each(source) if not isinstance(one, Skipped)}
        for index in indices:
            found = findings[index]
            try:
                edits = edits_of(documents[found.document], found.changes)
            except (Refused, KeyError, IndexError, TypeError, ValueError):
                continue
            out[index] = tuple(Replacement(source.span(edit.start, edit.end), edit.text) for edit in edits)
    return out
