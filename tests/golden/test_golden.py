"""Text output on terminals, compared with the files beside this one; and how output minds its surroundings."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys

import pytest

from tests.golden import pages
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


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_page(page: pages.Page) -> None:
    shown = pages.outline(page)
    assert shown == pages.path(page).read_text("utf-8"), "look at it, then run: python -m tests.golden.pages"


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


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("command", ["explain", "devices", "explain-all", "lint"])
def test_a_pipe_is_as_wide_as_columns_says(command: str, columns: int) -> None:
    case = next(case for case in CASES if case.name == command)
    parts = path(case, columns).read_text().split("\n\n")
    if command == "devices":
        # The picture is for terminals.
        assert "##oo" in parts.pop(1)
    assert piped(case.words, case.folder, COLUMNS=str(columns)).stdout == "\n\n".join(parts)


def test_a_table_in_a_pipe_has_one_line_for_each_row() -> None:
    for name, lines in (("devices", 11), ("devices-full", 7), ("explain-all", 6)):
        case = next(case for case in CASES if case.name == name)
        assert len(piped(case.words, case.folder).stdout.splitlines()) == lines


SCRIPTS = [case.name for case in CASES if case.name.endswith("-diff") or case.name in ("completion", "metrics")]
"""Cases whose lines are not for reading."""


def text_at(case: Case, columns: int) -> str:
    if columns in WIDTHS:
        return path(case, columns).read_text()
    code, text = shown(case, columns)
    assert code == case.code
    return text


@pytest.mark.parametrize("columns", [60, *WIDTHS, 120, 200])
@pytest.mark.parametrize("case", [case for case in CASES if case.name not in SCRIPTS], ids=lambda case: case.name)
def test_nothing_is_lost_at_any_width(case: Case, columns: int) -> None:
    """No line is wider, but commands to be copied and single words; none is cut; each table keeps what a row is."""
    text = text_at(case, columns)
    for line in text.splitlines():
        # Commands are to be copied, and a word of CEL after its value is as long as it is.
        whole = "kubectl " in line or re.fullmatch(r" *((\S+ )*\S+ {2,}device)?\S+", line)
        assert len(line) <= columns or whole, line
        # What a name loses, it loses in the middle; beside the first of several there is their number.
        counted = " ..." in line and (re.search(r"\d (held|tainted|free) ", line) or " ... (" in line)
        assert not re.search(r"…(\s|$)", line) and ("..." not in line or counted), line
    assert keys_of(text) == keys_of(text_at(case, 160))


HEADINGS = r"[A-Z][-A-Z0-9. ()]{2,}( {3}[-A-Z0-9. ()]+)*"


def keys_of(text: str) -> list[tuple[str, ...]]:
    """What the first column of each table has, names without their middles: a row begins at the margin."""
    tables: list[tuple[str, ...]] = []
    for part in re.split(r"\n\s*\n|(?<=\.)\n(?=[A-Z])", text):
        lines = part.splitlines()
        heads = [
            at for at, line in enumerate(lines) if re.fullmatch(r"[A-Z][-A-Z0-9. ()%]{2,}( {3}[-A-Z0-9. ()%]+)*", line)
        ]
        for at in heads:
            rows = itertools.takewhile(lambda line: not line.startswith("Left out"), lines[at:])
            cells = [re.split(" {2,}", row)[0] for row in rows if row[:1].strip()]
            tables.append(tuple(cell[:4] for cell in cells))
    return tables


def test_a_reader_that_goes_away_is_no_error() -> None:
    words, folder = COLOURED["explain"]
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

    from kubectl_dra.cli.main import everything

    return [*typer.main.get_command(everything()).commands]  # type: ignore[attr-defined]


def test_every_command_has_a_case() -> None:
    assert {case.words.split()[0] for case in CASES} == set(commands())


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
