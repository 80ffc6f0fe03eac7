"""Text output on terminals, compared with the files beside this one; and how output minds its surroundings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.cases import CASES, EXPLAIN, FOLDER, ROOT, SAMPLE, WIDTHS, Case, path, shown
from tests.terminal import Terminal

ESCAPE = "\x1b["
COLOURED = {"explain": ("explain pod/train-0 -n ml --snapshot cluster.yaml", EXPLAIN), "lint": ("lint .", SAMPLE)}


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_output(case: Case, columns: int) -> None:
    code, text = shown(case, columns)
    assert code == case.code, text
    assert text == path(case, columns).read_text(), "look at it, then run: python -m tests.golden.cases"


def test_every_file_has_a_case() -> None:
    assert {file.name for file in FOLDER.glob("*.txt")} == {
        path(case, width).name for case in CASES for width in WIDTHS
    }


def piped(words: str, folder: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    command = [sys.executable, "-m", "kubectl_dra", *words.split()]
    environment = {**kept, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT / folder, env=environment)


@pytest.mark.parametrize("command", [*COLOURED])
@pytest.mark.parametrize(
    ("flags", "variables", "coloured"),
    [
        ("", {}, False),
        ("", {"FORCE_COLOR": "1"}, True),
        ("", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (" --color always", {}, True),
        (" --color always", {"NO_COLOR": "1"}, True),
        (" --color never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_in_a_pipe(command: str, flags: str, variables: dict[str, str], coloured: bool) -> None:
    words, folder = COLOURED[command]
    done = piped(words + flags, folder, **variables)
    assert done.returncode == 1
    assert (ESCAPE in done.stdout) is coloured


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colour_on_a_terminal(variables: dict[str, str], coloured: bool) -> None:
    words, folder = COLOURED["explain"]
    command = [sys.executable, "-m", "kubectl_dra", *words.split()]
    environment = {"PYTHONPATH": str(ROOT), **variables}
    with Terminal(command, environment=environment, folder=ROOT / folder) as terminal:
        assert terminal.end() == 1
        assert (ESCAPE.encode() in terminal.raw) is coloured


def test_a_pipe_has_its_own_width_and_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    words, folder = COLOURED["explain"]
    assert piped(words, folder, COLUMNS="40").stdout == piped(words, folder).stdout
    command = f"{sys.executable} -m kubectl_dra {words} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT / folder, check=False)
    assert done.stdout.startswith("Pod ml/train-0") and done.stderr == ""


def test_machine_output_is_alone_on_standard_output() -> None:
    words, folder = COLOURED["explain"]
    import json

    done = piped(f"{words} -o json", folder, FORCE_COLOR="1")
    assert json.loads(done.stdout)["exitCode"] == 1 and done.stderr == ""


def commands() -> list[str]:
    import typer.main

    from kubectl_dra.cli.main import app

    return [*typer.main.get_command(app).commands]  # type: ignore[attr-defined]


def test_every_command_has_a_case() -> None:
    """But the one that prints scripts, which are compared with completions/, and the one that asks and writes."""
    assert {case.words.split()[0] for case in CASES} == set(commands()) - {"completion", "untaint"}


@pytest.mark.parametrize("command", commands())
def test_help_has_examples_and_exit_codes(command: str) -> None:
    done = piped(f"{command} --help", ".")
    assert done.returncode == 0 and done.stderr == ""
    assert f"Usage: kubectl dra {command}" in done.stdout
    _, _, rest = done.stdout.partition("\n  Examples:\n")
    examples, _, codes = rest.partition("\n  Exit codes:\n")
    assert f"    kubectl dra {command}" in examples or f"kubectl-dra {command}" in examples
    assert "    0  " in codes and "    2  " in codes
    assert max(len(line) for line in done.stdout.splitlines() if "kubectl dra" not in line) <= 120
