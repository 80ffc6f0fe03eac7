"""The generated files are those that the commands give now."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_dra.cli.completion.run import FILES, script
from tools.docs import completions


@pytest.mark.parametrize("path", [*completions.files()], ids=str)
def test_no_drift(path: Path) -> None:
    written = (completions.ROOT / path).read_text()
    assert written == completions.files()[path], "run: make completions"


def test_what_kubectl_runs_is_executable() -> None:
    assert os.access(completions.ROOT / "completions" / FILES["kubectl"], os.X_OK)


@pytest.mark.parametrize("shell", [*FILES])
def test_the_command_prints_the_script(shell: str) -> None:
    command = [sys.executable, "-m", "kubectl_dra", "completion", shell]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=completions.ROOT)
    assert done.stdout == script(shell)


def test_the_generator_sees_a_new_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    import typer

    from kubectl_dra.cli import main

    app = typer.Typer()
    app.callback()(lambda: None)

    def added(device: str, colour: str = typer.Option("", "--colour", "-c", metavar="NODE", help="A colour.")) -> None:
        """Does something. More of it."""

    app.command("added")(added)
    monkeypatch.setattr(main, "everything", lambda: app)
    text = completions.table()
    assert "command\tadded\tDoes something\n" in text
    assert "flag\tadded\t--colour\tnode\t\t-c\tA colour\n" in text
