"""The examples of ``fit``: what they print, and that they are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.examples import FIT, arguments, fit_examples, run

EXAMPLES = fit_examples()
each = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)


@each
def test_output(example: Path) -> None:
    outcome = run(example)
    assert outcome.stderr == ""
    assert outcome.stdout == (example / "expected.txt").read_text(encoding="utf-8")
    assert outcome.code == int((example / "exit-code").read_text())


@each
def test_the_answer_is_short(example: Path) -> None:
    assert len((example / "expected.txt").read_text(encoding="utf-8").splitlines()) <= 15


@each
def test_files(example: Path) -> None:
    names = {path.name for path in example.iterdir()}
    assert names == {"README.md", "command", "exit-code", "expected.txt", "manifest.yaml"}
    files = [word for word in arguments(example) if word.endswith(".yaml")]
    assert all((example / word).exists() for word in files)
    readme = (example / "README.md").read_text()
    assert readme.startswith("# ") and "Lesson: " in readme


def test_index_names_every_example() -> None:
    listed = re.findall(r"^\| \[([^]]+)\]\(\1/README\.md\)", (FIT / "README.md").read_text(), re.M)
    assert listed == [example.name for example in EXAMPLES]


@each
def test_the_short_text_has_the_changes_in_the_order_of_the_full_one(example: Path) -> None:
    """What deletes something or ends a pod comes last, but the end of the cause that is named first."""
    said, whole = (run(example, *flags).stdout for flags in ((), ("--full",)))
    short, full = (re.findall(r"^  - (.*)", text, re.M) for text in (said, whole))
    assert [change for change in full if change in short] == short
    cause = whole.partition("  - ")[0]
    named = [any("/" in word and word in cause for word in change.split()) for change in full]
    ends = [change.startswith(("End", "Delete")) or "which ends pod" in change for change in full]
    assert ends[named[0] :] == sorted(ends[named[0] :])
