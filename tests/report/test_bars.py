"""Pictures: on a terminal only, within its width, a mark for each device; in a pipe nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Final

import pytest

from kubectl_dra.drivers.health import DriverState, NodeDriver
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.report.bars import MOST, Share, write_bars, write_matrix, write_shares
from kubectl_dra.report.color import Painter, Sheet
from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra
from tests.terminal import Terminal

Dra = Callable[..., Ran]
FLEET: Final = ("--snapshot", str(Path(__file__).parents[2] / "examples" / "explain" / "mixed-fleet" / "cluster.yaml"))
FREE, HELD, TAINTED = DeviceState.FREE, DeviceState.HELD, DeviceState.TAINTED
STYLES: Final = {
    **{state: "red" if state.broken else "yellow" if state.open else "" for state in DriverState},
    DriverState.HEALTHY: "green",
}


class Screen(Sheet):
    """A terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def drawn(draw: Callable[[Painter], None], columns: int = 80) -> list[str]:
    screen = Screen(columns)
    draw(Painter(screen, "never"))
    lines = screen.getvalue().splitlines()
    assert all(len(line) <= columns for line in lines)
    return lines


def test_bars_of_devices() -> None:
    states = {"h100-1": [HELD, HELD, FREE], "l40s-10": [TAINTED]}
    assert drawn(lambda out: write_bars(out, states)) == [
        "h100-1    ##o",
        "l40s-10   !",
        "          o free  # held  ! tainted",
        "",
    ]


def test_a_large_cluster_has_a_few_bars() -> None:
    states = {f"node-{number}": [HELD] * 500 for number in range(1000)}
    lines = drawn(lambda out: write_bars(out, states), 60)
    assert len(lines) == MOST + 2 and "and 992 more nodes below" in lines[-2]


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_bars_keep_within_the_screen(columns: int) -> None:
    drawn(lambda out: write_bars(out, {"n" * 30: [HELD] * 100}), columns)


def test_what_is_there_has_a_mark_however_rare() -> None:
    parts = [Share(1, "#", "", "running"), Share(998, "+", "green", "placed"), Share(1, "x", "red", "without a node")]
    (line,) = drawn(lambda out: write_shares(out, parts), 120)
    assert "#" in line and "x" in line and "# 1 running, + 998 placed, x 1 without a node" in line


def test_the_matrix_of_drivers() -> None:
    rows = [
        NodeDriver("a.example", "n1", DriverState.HEALTHY),
        NodeDriver("b.example", "n1", DriverState.CRASHING),
        NodeDriver("a.example", "n2", DriverState.HEALTHY),
    ]
    assert drawn(lambda out: write_matrix(out, rows, STYLES)) == [
        "NODE   a.example   b.example",
        "n1     o           x",
        "n2     o",
        "x crashing   o healthy",
        "",
    ]
    assert drawn(lambda out: write_matrix(out, rows[:2], STYLES)) == []
    assert all(line == line.rstrip() for line in drawn(lambda out: write_matrix(out, rows, STYLES)))
    # The legend has the words of the table below it.
    rows += [NodeDriver("b.example", "n2", state) for state in (DriverState.UNKNOWN, DriverState.IDLE)]
    rows += [NodeDriver("c.example", "n1", DriverState.SILENT)]
    (*_, marks, _) = drawn(lambda out: write_matrix(out, rows, STYLES))
    assert marks == "x crashing or publishes-nothing   ? unknown   o healthy   - no-devices"


def test_nothing_in_a_pipe() -> None:
    pipe = StringIO()
    out = Painter(pipe, "always")
    write_bars(out, {"n": [FREE]})
    write_shares(out, [Share(1, "#", "", "running")])
    write_matrix(out, [NodeDriver(d, n, DriverState.HEALTHY) for d in "ab" for n in "xy"], STYLES)
    assert pipe.getvalue() == ""


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (("devices",), ("h100-1     ###o", "o free  # held  ! tainted")),
        (("devices", "--by", "node"), ("PICTURE", "o###")),
        (("top",), ("PICTURE", "o#######")),
        (("drivers",), ("NODE       gaudi.intel.com",)),
    ],
)
def test_commands_draw_on_a_terminal(words: tuple[str, ...], seen: tuple[str, ...], dra: Dra) -> None:
    import sys

    with Terminal([sys.executable, "-m", "kubectl_dra", *words, *FLEET], columns=100) as terminal:
        terminal.end()
    assert all(each in terminal.text for each in seen), terminal.text
    piped = dra(*words, *FLEET).out
    assert not any(each in piped for each in seen)
