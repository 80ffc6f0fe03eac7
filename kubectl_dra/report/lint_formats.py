"""Findings as JSON (``schemas/lint.json``), JUnit, SARIF and annotations of GitHub."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from kubectl_dra import __version__
from kubectl_dra.api.releases import Release
from kubectl_dra.lint.finding import SEVERITIES, LocatedFinding, Report, Severity
from kubectl_dra.lint.fixes import Replacement
from kubectl_dra.lint.rules import BY_CODE
from kubectl_dra.lint.upgrade import Upgrade, gate_changes
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled, json_text
from kubectl_dra.report.json_shapes import gap_json
from kubectl_dra.report.lint_text import summary
from kubectl_dra.safe_output import exact, one_line, visible
from kubectl_dra.text import page_of

if TYPE_CHECKING:
    from kubectl_dra.migrate.model import MigratedFile, MigrationReport, Remark, Sort


def to_json(report: Report) -> dict[str, Any]:
    """The report: findings by file and place, counts, and what was assumed."""
    counts = report.counts()
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "LintReport",
        "assumed": {"kubernetesVersion": str(report.release), "featureGates": sorted(report.features)},
        **filled(upgrade=_upgrade(report.upgrade, report.release) if report.upgrade is not None else None),
        "summary": {
            "files": len(report.files),
            "leftOut": report.left_out,
            "objects": len(report.objects),
            "notChecked": dict(report.unchecked),
            "notGiven": list(report.not_given),
            "checkedPartly": [title for _, title in report.checked_partly],
            "errors": counts["error"],
            "warnings": counts["warning"],
            "infos": counts["info"],
            "ignored": report.suppressed,
        },
        "findings": [_finding(finding) for finding in report.findings],
        "notes": list(report.notes),
        "unread": [gap_json(gap) for gap in report.unread],
        "defects": list(report.defects),
    }


def _upgrade(upgrade: Upgrade, release: Release) -> dict[str, Any]:
    changes = gate_changes(upgrade.release, release)
    return {
        "older": {"kubernetesVersion": str(upgrade.release), "featureGates": sorted(upgrade.features)},
        "gatesTurnOn": list(changes.on),
        "gatesTurnOff": list(changes.off),
    }


def _finding(finding: LocatedFinding) -> dict[str, Any]:
    rule = BY_CODE[finding.code]
    return {
        "code": finding.code,
        "name": rule.name,
        "severity": finding.severity,
        "file": finding.file,
        "start": {"line": finding.line, "column": finding.column, "offset": finding.offset},
        "end": {"line": finding.end_line, "column": finding.end_column, "offset": finding.end_offset},
        "object": finding.object,
        "field": finding.field,
        "message": finding.message,
        "why": rule.why(),
        "page": page_of("rules", finding.code),
        **filled(
            fix=filled(text=finding.advised, safety=finding.promised, command=finding.command)
            if finding.advice
            else {},
            serverRule=finding.detail,
        ),
    }


# Findings as annotations of GitHub Actions: workflow commands on standard output.

_COMMANDS: Final = {"error": "error", "warning": "warning", "info": "notice"}


def write_github(report: Report, stream: TextIO, last: str = "") -> None:
    """Write one command per finding, worst first: GitHub shows only the first few of a step.

    ``last`` is the summary; lint's if there is none.
    """
    for severity in SEVERITIES:
        for finding in report.findings:
            if finding.severity == severity:
                exact(_command(finding) + "\n", stream)
    # The summary names objects, and a line feed in a name would begin a line that GitHub may read as a command.
    stream.write(f"{one_line(last or summary(report))}\n")


def _command(finding: LocatedFinding) -> str:
    properties = {"file": finding.file, "line": str(finding.line), "endLine": str(finding.end_line)}
    # GitHub refuses columns for a range of several lines.
    if finding.line == finding.end_line:
        properties |= {"col": str(finding.column), "endColumn": str(finding.end_column)}
    properties["title"] = f"{finding.code} {words_of(finding.code).name}"
    text = finding.told + (f"\n{finding.advised}" if finding.advice else "")
    if finding.object:
        text = f"{finding.object}: {text}"
    texts = ((name, _data(value).replace(":", "%3A").replace(",", "%2C")) for name, value in properties.items())
    written = ",".join(f"{name}={value}" for name, value in texts)
    return f"::{_COMMANDS[finding.severity]} {written}::{_data(text)}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


# Findings as JUnit XML: a test suite per file, a test case per object.

# What XML 1.0 cannot hold in any form.
_NOT_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(report: Report, stream: TextIO, command: str = "lint") -> None:
    """Write the document. All findings of an object are one failed case; notes do not fail."""
    cases = _cases(report)
    failures = sum(
        any(_fails(finding) for finding in findings) for of_file in cases.values() for findings in of_file.values()
    )
    tests = sum(len(of_file) for of_file in cases.values())
    stream.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    stream.write(f'<testsuites name="kubectl dra {command}" tests="{tests}" failures="{failures}">\n')
    for file, of_file in cases.items():
        failed = sum(any(_fails(finding) for finding in findings) for findings in of_file.values())
        stream.write(f'  <testsuite name={_attribute(file)} tests="{len(of_file)}" failures="{failed}">\n')
        for title, findings in of_file.items():
            _case(stream, file, title, findings)
        stream.write("  </testsuite>\n")
    stream.write("</testsuites>\n")


def _cases(report: Report) -> dict[str, dict[str, list[LocatedFinding]]]:
    out: dict[str, dict[str, list[LocatedFinding]]] = defaultdict(dict)
    for file, title in report.objects:
        out[file].setdefault(title, [])
    for finding in report.findings:
        out[finding.file].setdefault(finding.object or finding.file, []).append(finding)
    return out


def _case(stream: TextIO, file: str, title: str, findings: list[LocatedFinding]) -> None:
    # GitLab shows the file; Jenkins groups by the class name.
    stream.write(f"    <testcase classname={_attribute(file)} name={_attribute(title)} file={_attribute(file)}")
    if not findings:
        stream.write("/>\n")
        return
    stream.write(">\n")
    failing = [finding for finding in findings if _fails(finding)]
    if failing:
        message = failing[0].told if len(failing) == 1 else f"{len(failing)} findings"
        kind = failing[0].code if len({finding.code for finding in failing}) == 1 else "findings"
        stream.write(f"      <failure type={_attribute(kind)} message={_attribute(message)}>")
        stream.write(_text("\n".join(one_line(_line(finding)) for finding in failing)))
        stream.write("</failure>\n")
    notes = [finding for finding in findings if not _fails(finding)]
    if notes:
        stream.write(
            f"      <system-out>{_text(chr(10).join(one_line(_line(finding)) for finding in notes))}</system-out>\n"
        )
    stream.write("    </testcase>\n")


def _fails(finding: LocatedFinding) -> bool:
    return finding.severity != "info"


def _line(finding: LocatedFinding) -> str:
    place = f"{finding.file}:{finding.line}:{finding.column}"
    name = words_of(finding.code).name
    text = f"{place}: {finding.severity} {finding.code} {name}: {finding.field}: {finding.message}"
    return f"{text} ({finding.advised})" if finding.advice else text


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", visible(text)))


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", one_line(text)))


# Findings as SARIF 2.1.0, for GitHub's code scanning.

_LEVELS: Final = {"error": "error", "warning": "warning", "info": "note"}
_ROOT: Final = "%SRCROOT%"
MOST_RESULTS: Final = 25_000
"""GitHub refuses a run with more results."""
Fixes = Mapping[int, Sequence[Replacement]]
NO_FIXES: Final[Fixes] = {}


def write_sarif(report: Report, stream: TextIO, fixes: Fixes = NO_FIXES) -> None:
    """Write one run. ``results`` is always present, even if empty."""
    stream.write(json_text(to_sarif(report, fixes)))


def to_sarif(report: Report, fixes: Fixes = NO_FIXES) -> dict[str, Any]:
    """The log: one run with the rules that found something. ``fixes`` are replacements by index of the
    finding.

    Of more findings than ``MOST_RESULTS`` it contains the worst, and a notification gives the number left
    out.
    """
    kept = _kept(report.findings)
    left_out = len(report.findings) - len(kept)
    most = f"{left_out} more findings are left out, the least severe: code scanning takes {MOST_RESULTS}"
    codes = sorted({finding.code for _, finding in kept})
    indices = {code: index for index, code in enumerate(codes)}
    seen: Counter[str] = Counter()
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "kubectl-dra",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": [_rule(code) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {_ROOT: {"description": {"text": "The directory that kubectl dra ran in."}}},
                "invocations": [
                    {
                        "executionSuccessful": not report.defects,
                        "toolExecutionNotifications": [
                            *({"level": "note", "message": {"text": note}} for note in report.notes),
                            *({"level": "error", "message": {"text": defect}} for defect in report.defects),
                            *([{"level": "warning", "message": {"text": most}}] if left_out else []),
                        ],
                    }
                ],
                "results": [
                    {**_result(finding, indices, seen), **_fixes(finding, fixes.get(index, ()))}
                    for index, finding in kept
                ],
            }
        ],
    }


def _kept(findings: Sequence[LocatedFinding]) -> list[tuple[int, LocatedFinding]]:
    """The findings for the log with their indices, in order."""
    numbered = list(enumerate(findings))
    if len(numbered) <= MOST_RESULTS:
        return numbered
    worst = sorted(numbered, key=lambda pair: SEVERITIES.index(pair[1].severity))
    return sorted(worst[:MOST_RESULTS], key=lambda pair: pair[0])


def _rule(code: str) -> dict[str, Any]:
    words = words_of(code)
    problem = "recommendation" if words.severity == "info" else words.severity
    return {
        "id": code,
        "name": "".join(part.capitalize() for part in words.name.split("-")),
        "shortDescription": {"text": f"{words.title}."},
        "fullDescription": {"text": words.why},
        "help": {"text": words.why, "markdown": words.page},
        "defaultConfiguration": {"level": _LEVELS[words.severity]},
        "properties": {"tags": ["kubernetes", "dra"], "problem.severity": problem},
    }


def _result(finding: LocatedFinding, indices: Mapping[str, int], seen: Counter[str]) -> dict[str, Any]:
    text = finding.told
    if finding.advice:
        text += f"\n{finding.advised}"
    logical = ".".join(part for part in (finding.object, finding.field) if part)
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": location_of(finding.file),
            "region": {
                "startLine": finding.line,
                "startColumn": finding.column,
                "endLine": finding.end_line,
                "endColumn": finding.end_column,
                **filled(snippet=filled(text=finding.excerpt)),
            },
        }
    }
    if logical:
        location["logicalLocations"] = [{"fullyQualifiedName": logical, "kind": "object"}]
    return {
        "ruleId": finding.code,
        "ruleIndex": indices[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [location],
        "partialFingerprints": {"primaryLocationLineHash": _fingerprint(finding, seen)},
    }


def _fixes(finding: LocatedFinding, changes: Sequence[Replacement]) -> dict[str, Any]:
    if not changes or finding.promised == "none":
        return {}
    flag = "--fix" if finding.promised == "safe" else "--fix --unsafe-fixes"
    replaced = [
        {
            "deletedRegion": {
                "startLine": replacement.at.line,
                "startColumn": replacement.at.column,
                "endLine": replacement.at.end_line,
                "endColumn": replacement.at.end_column,
            },
            "insertedContent": {"text": replacement.text},
        }
        for replacement in changes
    ]
    change = {"artifactLocation": location_of(finding.file), "replacements": replaced}
    return {"fixes": [{"description": {"text": f"{finding.advice} ({flag})"}, "artifactChanges": [change]}]}


def _fingerprint(finding: LocatedFinding, seen: Counter[str]) -> str:
    """An id that stays the same while the finding exists, wherever lines move; equal ones are numbered."""
    parts = (finding.code, finding.object, finding.field, finding.excerpt.strip())
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    key = f"{finding.file}\0{digest}"
    seen[key] += 1
    return f"{digest}:{seen[key]}"


def location_of(file: str) -> dict[str, str]:
    """A relative URI with forward slashes, or a file URI for files outside the working directory."""
    path = Path(file)
    if path.is_absolute():
        try:
            path = path.relative_to(Path.cwd())
        except ValueError:
            return {"uri": path.as_uri()}
    name = path.as_posix()
    if name.startswith("../"):
        return {"uri": Path(file).resolve().as_uri()}
    return {"uri": quote(os.fsencode(name), safe="/()!$&'*+,;=@~-._"), "uriBaseId": _ROOT}


# The words of a code, be it a rule of lint or a change of migrate.

_SEVERITIES: Final = {"safe": "warning", "unsafe": "warning", "either": "info", "note": "info", "refusal": "error"}


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

    page = PAGES[code]
    return CodeWords(page.name, page.title, page.why, page.page.text, _SEVERITIES[page.safety])


# What migrate says as findings, for the formats of CI systems that lint writes too.

_OF_SORTS: Final[Mapping[Sort, Severity]] = {
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
    findings = tuple(finding for file in report.all_files for finding in _of_file(file))
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
            yield _migrated(item, line)


def _migrated(item: Remark, line: str) -> LocatedFinding:
    end = max(item.column, len(line.rstrip()) + 1)
    advice = item.way_out or _ADVICE.get(item.sort, "")
    place = (item.file, item.line, item.column, item.line, end, 0, 0)
    return LocatedFinding(
        item.code, _OF_SORTS[item.sort], *place, item.object, item.field, item.message, advice, excerpt=line
    )
