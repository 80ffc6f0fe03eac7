"""Each promise of SECURITY.md names tests that are there, and the exit codes of signals are documented."""

from __future__ import annotations

import re

import pytest

from tools.examples import ROOT

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and line.count("|") == 5
]


def test_each_promise_has_a_test() -> None:
    header, *promises = ROWS
    assert header == ["from", "we assume", "we promise", "tested by"] and len(promises) > 15
    for *_, promise, tests in promises:
        named = re.findall(r"`(tests/[^`]+)`", tests)
        assert named, promise
        for name in named:
            text = (ROOT / name).read_text(encoding="utf-8")
            assert re.search(r"^(async )?def test_", text, re.MULTILINE), name


@pytest.mark.parametrize("code", [0, 1, 2, 3, 129, 130, 137, 141, 143])
def test_each_exit_code_is_documented(code: int) -> None:
    answer = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8").partition("What do the exit codes mean?")[2]
    assert re.search(rf"\b{code}\b", answer.partition("\n## ")[0])


@pytest.mark.parametrize("command", ["fuzz", "fuzz.kills", "live.interrupted", "live.outages"])
def test_the_programs_are_described_with_their_last_figures(command: str) -> None:
    text = (ROOT / "tools" / "README.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if f"`python -m tools.{command}" in line)
    assert re.search(r"\d{4}-\d\d-\d\d, `[0-9a-f]{8}`", row), row
