"""What migrate says as findings, for the formats of CI systems that lint writes too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kubectl_dra.lint.finding import LocatedFinding, Report, Severity
from kubectl_dra.migrate.result import MigratedFile, MigrationReport, Remark, Sort

_SEVERITIES: Final[Mapping[Sort, Severity]] = {
    "change": "warning",
    "object": "warning",
    "offer": "warning",
    "note": "info",
    "refusal": "error",
}
_ADVICE: Final[Mapping[Sort, str]] = {
    "change": "kubectl dra migrate --write makes the change",
    "object": "kubectl dra migrate --write adds it",
    "offer": "kubectl dra migrate --unsafe --write makes the change",
}


def as_findings(report: MigrationReport) -> Report:
    """The report as one of lint: refusals are errors, changes that are not made yet warnings, notes info."""
    findings = tuple(found for file in report.all_files for found in _of_file(file))
    return Report(
        findings,
        tuple(file.name for file in report.all_files),
        (),
        report.manifests,
        0,
        report.notes,
        report.defects,
        report.settings.release,
        frozenset(),
    )


def _of_file(file: MigratedFile) -> Iterator[LocatedFinding]:
    lines = file.text.before.splitlines() if file.text is not None else []
    changes = {item.object for item in file.items if item.sort == "change"}
    for item in file.items:
        # A new object goes with the change that needs it.
        if item.sort != "object" or item.object not in changes:
            line = lines[item.line - 1] if 0 < item.line <= len(lines) else ""
            yield _finding(item, line)


def _finding(item: Remark, line: str) -> LocatedFinding:
    end = max(item.column, len(line.rstrip()) + 1)
    advice = item.way_out or _ADVICE.get(item.sort, "")
    place = (item.file, item.line, item.column, item.line, end, 0, 0)
    return LocatedFinding(
        item.code, _SEVERITIES[item.sort], *place, item.object, item.field, item.message, advice, excerpt=line
    )
