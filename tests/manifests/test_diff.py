"""Unified diffs lead from one text to the other, as ``patch`` reads them, and show little else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.manifests.files import hunks, unified

LINES = st.lists(st.sampled_from(("a\n", "b\n", "c\n", "d\n", "- a\n", "\n", "x\r\n")), max_size=30)


@given(LINES, LINES)
def test_hunks_make_one_of_the_other(before: list[str], after: list[str]) -> None:
    out: list[str] = []
    at = new_at = 0
    for hunk in hunks(before, after):
        assert before[at : hunk.start] == after[new_at : hunk.new_start]
        out += before[at : hunk.start] + after[hunk.new_start : hunk.new_end]
        at, new_at = hunk.end, hunk.new_end
    assert out + before[at:] == after


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\n", "a\nc\n"),
        ("a\nb", "a\nb\nc"),
        ("a\nb\n", "a\nb"),
        ("", "a\n"),
        ("".join(f"{n}\n" for n in range(50)), "".join(f"{n}\n" for n in range(50) if n not in (3, 4, 30))),
        ("x\n" * 40, "x\n" * 20 + "y\n" + "x\n" * 20),
    ],
)
def test_patch_reads_them(before: str, after: str, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text(before)
    subprocess.run(["patch", "-p1"], input=unified("f", before, after), cwd=tmp_path, text=True, check=True)
    assert (file.read_text() if file.exists() else "") == after


def test_a_line_that_is_there_often_is_not_shown_as_changed() -> None:
    container = "- name: c{}\n  limits:\n    memory: 1Gi\n    gpu: 1\n    rdma: 1\n"
    before = "".join(container.format(number) for number in range(100))
    after = before.replace("    gpu: 1\n", "")
    shown = unified("f", before, after).splitlines()
    assert [line for line in shown[2:] if line[0] in "+-"] == ["-    gpu: 1"] * 100


def test_nothing_is_shown_of_equal_texts() -> None:
    assert unified("f", "a\n", "a\n") == ""
