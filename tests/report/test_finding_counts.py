"""Long lists of findings end with a table by code; short ones do not."""

from __future__ import annotations

import io

import pytest

from kubectl_dra.report.color import Painter
from kubectl_dra.report.table import MANY, SHOWN, FindingCount, write_counts


def told(*counts: FindingCount) -> list[str]:
    out = io.StringIO()
    write_counts(Painter(out, "never"), counts)
    return out.getvalue().splitlines()


ERRORS = FindingCount("error", "DRA402 unknown-request", 9, ("a.yaml", "b.yaml"), "--fix")
NOTES = FindingCount("info", "DRA703 device-plugin-resource", 2, ("a.yaml",))


def test_many_findings_of_several_codes() -> None:
    header, first, second, end = told(ERRORS, NOTES)
    assert header.split() == ["COUNT", "WHAT", "CODE", "FIX", "FILES"]
    assert first.split() == ["9", "error", "DRA402", "unknown-request", "--fix", "a.yaml", "and", "1", "more"]
    assert second.split() == ["2", "info", "DRA703", "device-plugin-resource", "-", "a.yaml"] and end == ""


def test_without_fixes_there_is_no_column_for_them() -> None:
    assert told(ERRORS._replace(fix=""), NOTES)[0].split() == ["COUNT", "WHAT", "CODE", "FILES"]


@pytest.mark.parametrize("counts", [(), (ERRORS,), (ERRORS._replace(number=MANY - 2), NOTES)])
def test_what_the_summary_says_by_itself(counts: tuple[FindingCount, ...]) -> None:
    assert told(*counts) == []


def test_the_rest_is_counted() -> None:
    lines = told(*(FindingCount("note", f"MIG{number}", 2, ("f.yaml",)) for number in range(SHOWN + 3)))
    assert lines[-2] == "and 6 findings with 3 other codes" and len(lines) == SHOWN + 3
