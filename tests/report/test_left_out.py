"""A short text says what it leaves out: how many fixes and notes, and that there is more evidence."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from kubectl_dra.report import blocks_text
from kubectl_dra.report.blocks import left_out
from tests.ran import ran
from tools.examples import arguments, examples, fit_examples

LINES: Final = (1, 10, 15, 25, 40, 1_000)
"""How long the text may be. Whatever it says, what it says and what it leaves out is the same in sum."""


def test_what_is_left_out_is_a_few_words() -> None:
    assert left_out(0, 0) == ""
    assert left_out(1, 0) == "1 more fix" and left_out(0, 1) == "1 more note"
    assert left_out(0, 2, evidence=True) == "more evidence, 2 notes"
    assert left_out(2, 3, evidence=True) == "2 more fixes, evidence, 3 notes"


def _counted(text: str) -> tuple[int, int, bool]:
    """All fixes, all notes, those told and those left out; and whether evidence is."""
    command = next(line for line in text.splitlines() if " --full" in line)
    found = re.match(r"(?:Next|Full report)(?: \((.*?)\))?: kubectl", command)
    assert found is not None, command
    rest = found[1] or ""
    more = {word: int(number) for number, word in re.findall(r"(\d+) (?:more )?(fix|note)", rest)}
    heading = re.search(r"^(?:Fixes|What makes room).*\n", text, re.MULTILINE)
    part = text[heading.end() :].partition("\n\n")[0] if heading else ""
    fixes = len(re.findall(r"^  - (?!It is too long)", part, re.MULTILINE))
    notes = len(re.findall(r"^Note: ", text, re.MULTILINE))
    return fixes + more.get("fix", 0), notes + more.get("note", 0), "evidence" in rest


@pytest.mark.parametrize("folder", examples(), ids=lambda folder: folder.name)
def test_fixes_and_notes_are_told_or_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    whole = ran(*arguments(folder), "--full")[1]
    write, sums = blocks_text.write_brief, []
    for lines in LINES:
        monkeypatch.setattr(blocks_text, "write_brief", partial(write, lines=lines))
        fixes, notes, evidence = _counted(ran(*arguments(folder), "--color=never")[1])
        sums.append((fixes, notes))
        assert evidence or "devices left after each step" not in whole
    assert len({*sums}) == 1
    notes_of_whole = whole.partition("\nNotes\n")[2].partition("\n\n")[0]
    # Why an answer is undetermined stands in its first sentence.
    assert 0 <= len(re.findall("^  - ", notes_of_whole, re.MULTILINE)) - sums[0][1] <= 1


@pytest.mark.parametrize("folder", fit_examples(), ids=lambda folder: folder.name)
def test_fit_counts_what_it_leaves_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    code, brief, _ = ran(*arguments(folder))
    whole = ran(*arguments(folder), "--full")
    assert whole[0] == code and " more " not in whole[1].splitlines()[-1]
    fixes, notes, _ = _counted(brief)
    assert fixes == len(re.findall(r"^  - ", whole[1], re.MULTILINE)) > 1
    assert notes == len(re.findall(r"^Note: ", whole[1], re.MULTILINE))
