"""``--fix``: applies the fixes of findings to the texts, round after round, until nothing is left to fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import eq
from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import InputError
from kubectl_dra.lint.finding import LocatedFinding, Safety
from kubectl_dra.manifests.changes import Change, EditRefused, Splice, changed
from kubectl_dra.manifests.documents import Document, Skipped, each_document, parse
from kubectl_dra.manifests.edits import Edit, edits_of, verified
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.inputs import Input, read
from kubectl_dra.manifests.source import Source, SourcePosition, decode

ROUNDS: Final = 10

Check = Callable[[str, bytes], Sequence[LocatedFinding]]
"""Lint the bytes of the file with a name."""


class Fixed(Struct, frozen=True):
    """The result for one file. ``refused`` are fixes that were not made, with the reason.

    ``made`` are those of the findings, ``followed`` those of findings that only show after other fixes. ``left`` are
    findings in the text that came of them, if any fix was made.
    """

    text: Rewritten
    made: tuple[LocatedFinding, ...] = ()
    refused: tuple[tuple[LocatedFinding, str], ...] = ()
    followed: tuple[LocatedFinding, ...] = ()
    left: tuple[LocatedFinding, ...] = ()

    def brought(self, before: Sequence[LocatedFinding]) -> tuple[LocatedFinding, ...]:
        """The findings in what fixes wrote that are none of those of the text ``before``."""
        known = {_key(finding) for finding in before}
        written = {(finding.document, finding.path) for finding in (*self.made, *self.followed)}
        return tuple(
            finding
            for finding in self.left
            if _key(finding) not in known and (finding.document, finding.path) in written and finding.severity != "info"
        )


_Refused = dict[tuple[Any, ...], tuple[LocatedFinding, str]]
"""Fixes that are not made, with the reason, by the key of the finding."""


def fix_text(source: Source, findings: Sequence[LocatedFinding], allowed: Sequence[Safety], check: Check) -> Fixed:
    """Make the fixes for a file's findings, then for findings in the result, until there are none.

    A fix is made only if the text then reads exactly as intended, and its finding is gone; an unsafe one also only if
    its object has no new error in the end.
    """
    harmful: _Refused = {}
    fixed = _fixed(source, findings, allowed, check, harmful)
    if "unsafe" not in allowed:
        return fixed
    before: Sequence[LocatedFinding] | None = None
    for _ in range(ROUNDS):
        made = [finding for finding in (*fixed.made, *fixed.followed) if _can_harm(finding)]
        if not made or not any(finding.severity == "error" for finding in fixed.left):
            break
        if before is None:
            before = check(source.name, source.encode(source.text))
        brought = {_key(finding): (finding, why) for finding, why in _harmful(made, fixed.left, before)}
        if not brought:
            break
        harmful |= brought
        fixed = _fixed(source, findings, allowed, check, harmful)
    return fixed


def _can_harm(finding: LocatedFinding) -> bool:
    """Whether an error after the fix is its doing: once the API server refuses nothing, it shows what else is wrong."""
    return finding.safety == "unsafe" and not finding.detail


def _harmful(
    made: Sequence[LocatedFinding], after: Sequence[LocatedFinding], before: Sequence[LocatedFinding]
) -> Iterator[tuple[LocatedFinding, str]]:
    """The fixes after which their object has an error that it did not have, with that error."""
    places = {(finding.code, finding.document, finding.path) for finding in before}
    told = {(finding.code, finding.document, finding.message) for finding in before}
    for error in after:
        if error.severity != "error" or (error.code, error.document, error.path) in places:
            continue
        if (error.code, error.document, error.message) in told:
            # Only its place is another one.
            continue
        own = [finding for finding in made if (finding.document, finding.root) == (error.document, error.root)]
        there = [finding for finding in own if _overlapping(finding, error)]
        for finding in there or own:
            yield finding, f"after it the object has a new error: {error.code}: {error.told}"


def _overlapping(finding: LocatedFinding, error: LocatedFinding) -> bool:
    """Whether the error is in what the fix of the finding changes, or around it."""
    return any(all(map(eq, change.path, error.path)) for change in finding.changes)


def _fixed(
    source: Source,
    findings: Sequence[LocatedFinding],
    allowed: Sequence[Safety],
    check: Check,
    harmful: _Refused,
) -> Fixed:
    """The result of all rounds without the harmful fixes."""
    text, refused = source.text, dict(harmful)
    made: list[LocatedFinding] = []
    followed: list[LocatedFinding] = []
    first = {_key(finding) for finding in findings}
    settled: set[tuple[Any, ...]] = set(harmful)
    for _ in range(ROUNDS):
        current = source.with_text(text)
        waiting = [
            finding
            for finding in findings
            if finding.changes and finding.safety in allowed and _key(finding) not in settled
        ]
        if not waiting:
            break
        after, done, failed = _round(current, waiting)
        for finding, why in failed:
            settled.add(_key(finding))
            refused[_key(finding)] = (finding, why)
        if not done:
            break
        found = check(source.name, source.encode(after))
        useless = [finding for finding in done if _left(finding, found) >= _left(finding, findings)]
        for finding in useless:
            settled.add(_key(finding))
            refused[_key(finding)] = (finding, "the finding is still there after the fix")
        if useless:
            # The round is made again without them.
            continue
        settled.update(_key(finding) for finding in done if not _left(finding, found))
        for finding in done:
            (made if _key(finding) in first else followed).append(finding)
        findings, text = found, after
    rewritten = Rewritten(source.name, source.text, text, source)
    left = tuple(findings) if made or followed else ()
    return Fixed(rewritten, tuple(made), tuple(refused.values()), tuple(followed), left)


def _left(finding: LocatedFinding, among: Sequence[LocatedFinding]) -> int:
    """Number of findings that are the same except for their place."""
    return sum(_key(other) == _key(finding) for other in among)


def _key(finding: LocatedFinding) -> tuple[Any, ...]:
    return finding.code, finding.document, finding.path, finding.message


class _Plan(Struct, frozen=True):
    """A finding, and the edits in the text that its fix consists of."""

    found: LocatedFinding
    edits: Sequence[Edit]


def _round(
    source: Source, waiting: Sequence[LocatedFinding]
) -> tuple[str, list[LocatedFinding], list[tuple[LocatedFinding, str]]]:
    """As many compatible fixes as possible: the text, the fixes made, and those that cannot be made with the reason."""
    try:
        documents = parse(source)
    except InputError:
        # What other documents of the file mean cannot be compared before and after.
        return source.text, [], [(finding, UNREADABLE) for finding in waiting]
    plans, failed = _planned(documents, waiting)
    if not plans:
        return source.text, [], failed
    try:
        return _made(documents, plans), [plan.found for plan in plans], failed
    except _REFUSALS:
        text, done, alone = _one_by_one(documents, plans)
    return text, done, [*failed, *alone]


_REFUSALS: Final = (EditRefused, KeyError, IndexError, TypeError, ValueError)


def _planned(
    documents: Sequence[Document], waiting: Sequence[LocatedFinding]
) -> tuple[list[_Plan], list[tuple[LocatedFinding, str]]]:
    """Fixes that touch different places, and those that cannot be made. The next round handles the others."""
    by_index = {document.index: document for document in documents}
    plans: list[_Plan] = []
    failed: list[tuple[LocatedFinding, str]] = []
    edits: list[Edit] = []
    spliced: set[tuple[int, FieldPath]] = set()
    for finding in waiting:
        try:
            own = edits_of(by_index[finding.document], finding.changes)
        except _REFUSALS as error:
            failed.append((finding, _why(error)))
            continue
        texts = {(finding.document, change.path) for change in finding.changes if isinstance(change, Splice)}
        if spliced & texts or _overlap(own, edits):
            continue
        plans.append(_Plan(finding, own))
        edits += own
        spliced |= texts
    return plans, failed


def _made(documents: Sequence[Document], plans: Sequence[_Plan]) -> str:
    """The text with the fixes made.

    Raises:
        EditRefused: it would not read as intended.
    """
    changes: dict[int, list[Change]] = {}
    for plan in plans:
        changes.setdefault(plan.found.document, []).extend(plan.found.changes)
    intended = {
        document.index: changed(document.object, changes[document.index])
        for document in documents
        if document.index in changes
    }
    return verified(documents, [edit for plan in plans for edit in plan.edits], intended)


def _one_by_one(
    documents: Sequence[Document], plans: Sequence[_Plan]
) -> tuple[str, list[LocatedFinding], list[tuple[LocatedFinding, str]]]:
    text = documents[0].source.text
    done: list[_Plan] = []
    failed: list[tuple[LocatedFinding, str]] = []
    for plan in plans:
        try:
            text = _made(documents, [*done, plan])
        except _REFUSALS as error:
            # One that only does not go together with those before it is tried again in the next round.
            if not done:
                failed.append((plan.found, _why(error)))
            continue
        done.append(plan)
    return text, [plan.found for plan in done], failed


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__


_CHECKED: Final = 50_000
"""In a text of more characters it would take too long to try each fix beforehand."""
UNREADABLE: Final = "another document of the file cannot be read"


def obstacle(document: Document, changes: Sequence[Change]) -> str:
    """Why the changes cannot be made in the text of a document; empty if nothing is known to be in the way."""
    text = document.source.text
    if len(text) > _CHECKED:
        return ""
    try:
        edits = edits_of(document, changes)
        if "&" in text and "*" in text:
            # Only the result shows whether an alias stands for what is changed.
            verified(parse(document.source), edits, {document.index: changed(document.object, changes)})
    except _REFUSALS as error:
        return _why(error)
    except InputError:
        return UNREADABLE
    return ""


def _overlap(own: Sequence[Edit], others: Sequence[Edit]) -> bool:
    """Whether edits touch the same or neighbouring places, so that one could undo the other."""
    return any(edit.start <= other.end and other.start <= edit.end for edit in own for other in others)


class Replacement(Struct, frozen=True):
    """A span of a file's text, and the text that a fix puts there."""

    at: SourcePosition
    text: str


def replacements(findings: Sequence[LocatedFinding], inputs: Sequence[Input]) -> dict[int, tuple[Replacement, ...]]:
    """What the fix of each finding would change, by the finding's index, without fixes that cannot be made."""
    by_file: dict[str, list[int]] = {}
    for index, finding in enumerate(findings):
        if finding.changes:
            by_file.setdefault(finding.file, []).append(index)
    out: dict[int, tuple[Replacement, ...]] = {}
    for given in inputs:
        indices = by_file.get(given.name)
        if not indices:
            continue
        try:
            source = decode(read(given), given.name)
        except InputError:
            continue
        documents = {
            document.index: document for document in each_document(source) if not isinstance(document, Skipped)
        }
        for index in indices:
            finding = findings[index]
            try:
                edits = edits_of(documents[finding.document], finding.changes)
            except _REFUSALS:
                continue
            out[index] = tuple(Replacement(source.span(edit.start, edit.end), edit.text) for edit in edits)
    return out
