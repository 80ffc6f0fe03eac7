"""What lint finds in a text that is being written, and what its fixes, a comment or migrate would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kubectl_dra.errors import DraError
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.fixes import Replacement, replacements
from kubectl_dra.lint.result import LocatedFinding
from kubectl_dra.manifests.documents import Skipped, each
from kubectl_dra.manifests.inputs import SUFFIXES, Input
from kubectl_dra.manifests.source import Source, SourcePosition
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


def checked(name: str, text: str, job: Job) -> CheckedText:
    """Lint a text as the file of that name, beside the other manifests of its folder."""
    given = Input(name, True, text.encode("utf-8", "surrogatepass"))
    findings = tuple(found for found in lint([given, *_neighbours(name)], job, 1).findings if found.file == name)
    return CheckedText(findings, replacements(findings, [given]))


def _neighbours(name: str) -> Iterator[Input]:
    own = Path(name)
    try:
        names = sorted(path for path in own.parent.iterdir() if path.suffix in SUFFIXES and path != own)
        for path in names[:NEIGHBOURS]:
            if path.is_file() and path.stat().st_size <= _LARGEST_NEIGHBOUR:
                yield Input(str(path), False)
    except (OSError, ValueError):
        return


def ignoring(name: str, text: str, found: LocatedFinding) -> Replacement | None:
    """The comment that silences a finding, on the line above what it is about; None where no comment can stand."""
    source = Source(name, text)
    for document in each(source):
        if isinstance(document, Skipped) or document.index != found.document or text.lstrip().startswith("{"):
            continue
        line = document.key_position(found.path).line
        start = source.line_start(line)
        if start is None:
            return None
        indent = text[start:][: len(text[start:]) - len(text[start:].lstrip(" "))]
        return Replacement(source.span(start, start), f"{indent}# kubectl-dra: ignore[{found.code}] \n")
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
    return [index for index, found in enumerate(checks.findings) if found.offset <= end and start <= found.end_offset]


def span_of(found: LocatedFinding, text: str) -> SourcePosition:
    """The span of a finding; a word or the first character where it has none."""
    source = Source(found.file, text)
    if found.end_offset > found.offset:
        return source.span(found.offset, found.end_offset)
    start = source.line_start(found.line)
    at = min(len(text), (start or 0) + found.column - 1) if start is not None else len(text)
    return source.span(at, min(len(text), at + 1))
