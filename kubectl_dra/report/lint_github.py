"""Findings as annotations of GitHub Actions: workflow commands on standard output."""

from __future__ import annotations

from typing import Final, TextIO

from kubectl_dra.console import exact, visible
from kubectl_dra.lint.finding import SEVERITIES
from kubectl_dra.lint.result import LocatedFinding, Report
from kubectl_dra.report.codes import words_of
from kubectl_dra.report.lint_text import summary

_COMMANDS: Final = {"error": "error", "warning": "warning", "info": "notice"}


def write_github(report: Report, stream: TextIO, last: str = "") -> None:
    """Write one command per finding, worst first: GitHub shows only the first few of a step.

    ``last`` is the summary; lint's if there is none.
    """
    for severity in SEVERITIES:
        for finding in report.findings:
            if finding.severity == severity:
                exact(_command(finding) + "\n", stream)
    stream.write(f"{last or summary(report)}\n")


def _command(finding: LocatedFinding) -> str:
    properties = {"file": finding.file, "line": str(finding.line), "endLine": str(finding.end_line)}
    # GitHub refuses columns for a range of several lines.
    if finding.line == finding.end_line:
        properties |= {"col": str(finding.column), "endColumn": str(finding.end_column)}
    properties["title"] = f"{finding.code} {words_of(finding.code).name}"
    text = finding.message + (f"\n{finding.advice}" if finding.advice else "")
    if finding.object:
        text = f"{finding.object}: {text}"
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {written}::{_data(text)}"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
