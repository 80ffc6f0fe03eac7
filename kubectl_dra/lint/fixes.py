"""``--fix``: the fixes of findings made in the texts, round after round until nothing is left to fix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from kubectl_dra.lint.finding import Safety
from kubectl_dra.lint.positions import written_path
from kubectl_dra.lint.result import Located
from kubectl_dra.manifests.changes import Change, Refused, changed, value_at
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.edits import Edit, edits_of, verified
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.source import Source

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
    documents = parse(source)
    by_index = {document.index: document for document in documents}
    edits: list[Edit] = []
    objects: dict[int, Any] = {}
    done: list[Located] = []
    failed: list[tuple[Located, str]] = []
    text = source.text
    for found in waiting:
        try:
            document = by_index[found.document]
            changes = _in_document(document, found)
            own = edits_of(document, changes)
            if _overlap(own, edits):
                # The next round makes it, if it is still needed then.
                continue
            intended = {**objects, found.document: changed(objects.get(found.document, document.object), changes)}
            text = verified(documents, [*edits, *own], intended)
        except (Refused, KeyError, IndexError, TypeError, ValueError) as error:
            failed.append((found, str(error) or type(error).__name__))
            continue
        edits, objects = [*edits, *own], intended
        done.append(found)
    return text, done, failed


def _in_document(document: Document, found: Located) -> list[Change]:
    """The changes with the document's own paths."""
    raw = value_at(document.object, found.root)
    if not isinstance(raw, Mapping):
        raise Refused("the object is not where it was")
    return [replace(change, path=(*found.root, *written_path(raw, change.path))) for change in found.changes]


def _overlap(own: Sequence[Edit], others: Sequence[Edit]) -> bool:
    """Whether edits touch the same or neighbouring places, so that one could undo the other."""
    return any(one.start <= other.end and other.start <= one.end for one in own for other in others)
