"""What lint finds in a text that is being written, and what its fixes, a comment or migrate would change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kubectl_dra.errors import DraError
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.lint.fixes import Replacement, fix_text, replacements
from kubectl_dra.manifests.documents import Skipped, each_document
from kubectl_dra.manifests.inputs import SUFFIXES, Input, read
from kubectl_dra.manifests.source import Source, SourcePosition, decode
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.inline_patches import GONE
from kubectl_dra.migrate.model import MigrationSettings

NEIGHBOURS: Final = 40
"""At most so many files of the same folder are looked at for the objects that a manifest names."""
_LARGEST_NEIGHBOUR: Final = 200_000


class CheckedText(NamedTuple):
    """The findings of a text, by place, and what the fix of each would change, by its index."""

    findings: tuple[LocatedFinding, ...] = ()
    fixes: dict[int, tuple[Replacement, ...]] = {}  # noqa: RUF012 - never changed


def checked(name: str, text: str, job: Job, opened: Mapping[str, str]) -> CheckedText:
    """Lint a text as the file of that name, beside the other manifests of its folder, some of them ``opened``."""
    given = _input(name, text)
    beside = neighbours(name, opened)
    findings = tuple(finding for finding in lint([given, *beside], job, 1).findings if finding.file == name)
    return CheckedText(findings, replacements(findings, [given]))


def _input(name: str, text: str) -> Input:
    return Input(name, True, text.encode("utf-8", "surrogatepass"))


def neighbours(name: str, opened: Mapping[str, str]) -> list[Input]:
    """The other manifests of the folder, as they are in the editor where they are open."""
    return [_input(path, opened[path]) if path in opened else Input(path, False) for path in _beside(name)]


def _beside(name: str) -> Iterator[str]:
    own = Path(name)
    try:
        names = sorted(path for path in own.parent.iterdir() if path.suffix in SUFFIXES and path != own)
        for path in names[:NEIGHBOURS]:
            if path.is_file() and path.stat().st_size <= _LARGEST_NEIGHBOUR:
                yield str(path)
    except (OSError, ValueError):
        return


def sources(name: str, opened: Mapping[str, str]) -> Iterator[Source]:
    """The texts in which a manifest may name objects: those that are open, and those of its folder."""
    yield from (Source(other, text) for other, text in opened.items() if other != name)
    for given in neighbours(name, {}):
        if given.name not in opened:
            try:
                yield decode(read(given), given.name)
            except DraError:
                continue


def all_fixed(name: str, text: str, checks: CheckedText, job: Job) -> str:
    """The text as ``lint --fix`` would write it."""

    def check(file: str, data: bytes) -> Sequence[LocatedFinding]:
        return [finding for finding in lint([Input(file, True, data)], job, 1).findings if finding.file == file]

    return fix_text(Source(name, text), checks.findings, ("safe",), check).text.after


def ignoring(name: str, text: str, finding: LocatedFinding) -> Replacement | None:
    """The comment that silences a finding, on the line above what it is about; None where no comment can stand."""
    source = Source(name, text)
    for document in each_document(source):
        if isinstance(document, Skipped) or document.index != finding.document or text.lstrip().startswith("{"):
            continue
        line = document.key_position(finding.path).line
        start = source.line_start(line)
        if start is None:
            return None
        indent = text[start:][: len(text[start:]) - len(text[start:].lstrip(" "))]
        return Replacement(source.span(start, start), f"{indent}# kubectl-dra: ignore[{finding.code}] \n")
    return None


def migrated(name: str, text: str, settings: MigrationSettings) -> str:
    """The text as migrate would write it; the same text if there is nothing to migrate, or it cannot be read.

    A patch stays: what is to be patched instead only the builds of its kustomization show.
    """
    try:
        report = migrate([Input(name, True, text.encode("utf-8", "surrogatepass"))], MigrationJob(settings))
    except DraError:
        return text
    if report.defects or any(item.code == GONE for item in report.items()):
        return text
    return next((file.text.after for file in report.files if file.changed and file.text is not None), text)


def at(checks: CheckedText, start: int, end: int) -> Sequence[int]:
    """The indices of the findings that a span of the text touches."""
    return [
        index for index, finding in enumerate(checks.findings) if finding.offset <= end and start <= finding.end_offset
    ]


def span_of(finding: LocatedFinding, text: str) -> SourcePosition:
    """The span of a finding; a word or the first character where it has none."""
    source = Source(finding.file, text)
    if finding.end_offset > finding.offset:
        return source.span(finding.offset, finding.end_offset)
    start = source.line_start(finding.line)
    at = min(len(text), (start or 0) + finding.column - 1) if start is not None else len(text)
    return source.span(at, min(len(text), at + 1))
