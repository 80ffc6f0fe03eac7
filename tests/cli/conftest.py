"""Running the command line in process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kubectl_dra.cli.main import run


class Ran(NamedTuple):
    """What a command gave: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


@pytest.fixture
def dra(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Runs ``kubectl dra`` with words, in an empty folder and without a kubeconfig of the machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-kubeconfig"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    def call(*words: str) -> Ran:
        code = run(list(words))
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err + captured.out
        assert "a defect of kubectl-dra" not in captured.err
        return Ran(code, captured.out, captured.err)

    return call
