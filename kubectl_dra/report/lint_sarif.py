"""Findings as SARIF 2.1.0, for GitHub's code scanning."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO
from urllib.parse import quote

from kubectl_dra import __version__
from kubectl_dra.lint.finding import SEVERITIES
from kubectl_dra.lint.fixes import Replacement
from kubectl_dra.lint.result import LocatedFinding, Report
from kubectl_dra.report.codes import words_of
from kubectl_dra.report.structured import json_text

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
                            *({"level": "warning", "message": {"text": text}} for text in _left_out(left_out)),
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
    worst = sorted(numbered, key=lambda one: SEVERITIES.index(one[1].severity))
    return sorted(worst[:MOST_RESULTS], key=lambda one: one[0])


def _left_out(count: int) -> list[str]:
    return (
        [f"{count} more findings are left out, the least severe: code scanning takes {MOST_RESULTS}"] if count else []
    )


def _rule(code: str) -> dict[str, Any]:
    words = words_of(code)
    return {
        "id": code,
        "name": "".join(part.capitalize() for part in words.name.split("-")),
        "shortDescription": {"text": f"{words.title}."},
        "fullDescription": {"text": words.why},
        "help": {"text": words.why, "markdown": words.page},
        "defaultConfiguration": {"level": _LEVELS[words.severity]},
        "properties": {"tags": ["kubernetes", "dra"], "problem.severity": _problem(words.severity)},
    }


def _problem(severity: str) -> str:
    return "recommendation" if severity == "info" else severity


def _result(finding: LocatedFinding, indices: Mapping[str, int], seen: Counter[str]) -> dict[str, Any]:
    text = finding.message
    if finding.advice:
        text += f"\n{finding.advice}"
    logical = ".".join(part for part in (finding.object, finding.field) if part)
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": location_of(finding.file),
            "region": {
                "startLine": finding.line,
                "startColumn": finding.column,
                "endLine": finding.end_line,
                "endColumn": finding.end_column,
                **({"snippet": {"text": finding.excerpt}} if finding.excerpt else {}),
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
    if not changes:
        return {}
    flag = "--fix" if finding.safety == "safe" else "--unsafe-fixes"
    replaced = [
        {
            "deletedRegion": {
                "startLine": one.at.line,
                "startColumn": one.at.column,
                "endLine": one.at.end_line,
                "endColumn": one.at.end_column,
            },
            "insertedContent": {"text": one.text},
        }
        for one in changes
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
