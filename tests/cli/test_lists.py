"""What all lists take: only the rows, and looking again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.cli.conftest import Ran

Dra = Callable[..., Ran]
FLEET: Final = ("--snapshot", str(Path(__file__).parents[2] / "examples" / "explain" / "mixed-fleet" / "cluster.yaml"))
LISTS: Final = (
    ("claims",),
    ("claims", "-o", "wide"),
    ("devices",),
    ("devices", "--full"),
    ("devices", "--by", "class"),
    ("top",),
    ("top", "owners"),
    ("drivers",),
)


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_rows_alone(words: tuple[str, ...], dra: Dra) -> None:
    """Nothing but the rows that stand below the headings otherwise, each on its line."""
    whole, rows = dra(*words, *FLEET), dra(*words, *FLEET, "--no-headers")
    assert rows.code == whole.code
    table = [line.split() for line in whole.out.splitlines()]
    header = next(number for number, cells in enumerate(table) if cells and cells[0].isupper())
    found = [line.split() for line in rows.out.splitlines()]
    assert found and found == table[header + 1 : header + 1 + len(found)]
    below = ("Next", "Each device", "A device of", "Left out", "and ")
    assert not any(line.startswith(below) for line in rows.out.splitlines())


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_a_line_for_each_row_with_all_columns(
    words: tuple[str, ...], dra: Dra, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs read them, however narrow the screen is."""
    rows = dra(*words, *FLEET, "--no-headers").out
    monkeypatch.setenv("COLUMNS", "60")
    assert dra(*words, *FLEET, "--no-headers").out == rows


@pytest.mark.parametrize("command", ["claims", "devices", "top", "drivers"])
def test_looking_again(command: str, dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a pipe it prints again only what has changed."""
    ticks: list[float] = []

    def wait(seconds: float) -> None:
        ticks.append(seconds)
        if len(ticks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", wait)
    once, watched = dra(command, *FLEET), dra(command, *FLEET, "-w")
    assert watched.code == 130 and watched.out == once.out and len(ticks) == 2


@pytest.mark.parametrize("command", ["claims", "devices", "drivers"])
def test_only_tables_are_watched(command: str, dra: Dra) -> None:
    ran = dra(command, *FLEET, "-w", "-o", "json")
    assert ran.code == 2 and "--watch shows the table" in ran.err
