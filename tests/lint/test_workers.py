"""Several processes find what one finds, also in what only all files together show."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from kubectl_dra.lint import engine as workers
from kubectl_dra.lint.check_file import FileResult, Job, check_file
from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.locate import Texts
from kubectl_dra.manifests.inputs import Input, find_inputs
from tests.lint.support import CLAIM, job

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train-%d}
spec:
  containers: [{name: a, image: a, resources: {claims: [{name: gpu}]}}]
  resourceClaims:
  - {name: gpu, resourceClaimName: gpu-%d}  # kubectl-dra: ignore[DRA105] nothing
"""


def write(folder: Path, number: int) -> None:
    for index in range(number):
        claim = CLAIM.replace("name: gpu\nspec", f"name: gpu-{index}x\nspec")
        (folder / f"{index:03}.yaml").write_text(POD % (index, index) + "---\n" + claim)


def test_two_and_three_processes_find_what_one_finds(tmp_path: Path) -> None:
    write(tmp_path, 50)
    inputs = find_inputs([str(tmp_path)])
    one = lint(inputs, job("DRA"), 1)
    assert {found.code for found in one.findings} == {"DRA406", "DRA903"}
    assert lint(inputs, job("DRA"), 2) == one
    assert lint(inputs, job("DRA"), 3) == one


def test_documents_that_are_not_kept_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 12)
    inputs = find_inputs([str(tmp_path)])
    kept = lint(inputs, job("DRA"), 1)
    monkeypatch.setattr("kubectl_dra.lint.locate.MOST_KEPT", 0)
    assert lint(inputs, job("DRA"), 1) == kept
    assert lint(inputs, job("DRA"), 2) == kept


def test_a_process_that_ends_early_is_a_defect_and_not_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 40)
    parent = os.getpid()

    def fragile(found: Input, job: Job, texts: Texts) -> FileResult:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return check_file(found, job, texts)

    monkeypatch.setattr(workers, "check_file", fragile)
    found = lint(find_inputs([str(tmp_path)]), job("DRA"), 2)
    assert len(found.files) == 40
    assert all("the process that checked it ended" in defect for defect in found.defects)
