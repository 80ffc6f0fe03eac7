"""Findings as JUnit XML: a test suite per file, a test case per object."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Final, TextIO
from xml.sax.saxutils import escape, quoteattr

from kubectl_dra.console import one_line, visible
from kubectl_dra.lint.result import LocatedFinding, Report
from kubectl_dra.report.codes import words_of

# What XML 1.0 cannot hold in any form.
_NOT_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(report: Report, stream: TextIO, command: str = "lint") -> None:
    """Write the document. All findings of an object are one failed case; notes do not fail."""
    cases = _cases(report)
    failures = sum(
        any(_fails(finding) for finding in found) for of_file in cases.values() for found in of_file.values()
    )
    tests = sum(len(of_file) for of_file in cases.values())
    stream.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    stream.write(f'<testsuites name="kubectl dra {command}" tests="{tests}" failures="{failures}">\n')
    for file, of_file in cases.items():
        failed = sum(any(_fails(finding) for finding in found) for found in of_file.values())
        stream.write(f'  <testsuite name={_attribute(file)} tests="{len(of_file)}" failures="{failed}">\n')
        for title, found in of_file.items():
            _case(stream, file, title, found)
        stream.write("  </testsuite>\n")
    stream.write("</testsuites>\n")


def _cases(report: Report) -> dict[str, dict[str, list[LocatedFinding]]]:
    out: dict[str, dict[str, list[LocatedFinding]]] = defaultdict(dict)
    for file, title in report.objects:
        out[file].setdefault(title, [])
    for finding in report.findings:
        out[finding.file].setdefault(finding.object or finding.file, []).append(finding)
    return out


def _case(stream: TextIO, file: str, title: str, found: list[LocatedFinding]) -> None:
    # GitLab shows the file; Jenkins groups by the class name.
    stream.write(f"    <testcase classname={_attribute(file)} name={_attribute(title)} file={_attribute(file)}")
    if not found:
        stream.write("/>\n")
        return
    stream.write(">\n")
    failing = [finding for finding in found if _fails(finding)]
    if failing:
        message = failing[0].message if len(failing) == 1 else f"{len(failing)} findings"
        kind = failing[0].code if len({finding.code for finding in failing}) == 1 else "findings"
        stream.write(f"      <failure type={_attribute(kind)} message={_attribute(message)}>")
        stream.write(_text("\n".join(one_line(_line(finding)) for finding in failing)))
        stream.write("</failure>\n")
    notes = [finding for finding in found if not _fails(finding)]
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
    return f"{text} ({finding.advice})" if finding.advice else text


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", visible(text)))


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", one_line(text)))
