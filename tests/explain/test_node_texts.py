"""The short text about each recorded state of a real node, as somebody reads it who knows nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.explain.test_on_nodes import NAMES, RECORDED, expected, gates
from tests.ran import ran

TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")
COMMAND = re.compile(r"^(Next|Full report|and |    \$ |    Destructive|    In the cluster)")
LINES, WIDTH = 18, 110
WITHOUT_TIME = {
    # Nobody writes down when: a finished or refused pod, one bound by hand, a lost claim, a driver that never was.
    *("finished", "rejected-for-cpu", "rejected-for-its-node", "rejected-for-implicit-resource"),
    *("rejected-by-device-plugin", "bound-by-hand-without-allocation", "bound-by-hand-elsewhere"),
    *("admitted-without-its-device", "admitted-without-its-implicit-device", "implicit-resource"),
    *("claim-deallocated", "claim-force-deleted", "node-gone", "no-driver", "node-boots", "unhealthy"),
    *("binding-fails", "binding-times-out", "publishes-nothing", "node-lost-and-next-waits"),
    *("driver-crash-loops", "driver-crash-loops-and-next-waits", "slices-wiped-and-next-waits"),
    "comes-back-with-other-names",
}
"""Answers with no time in their short text; `--full` has the way of the pod with all times."""


def text_of(line: dict[str, Any], folder: Path, *words: str) -> list[str]:
    path = folder / "cluster.json"
    path.write_text(json.dumps(line["served"]))
    _, out, _ = ran("explain", *words, "--snapshot", str(path), *gates(line))
    return out.splitlines()


@pytest.mark.parametrize("line", RECORDED, ids=NAMES)
def test_the_text_is_short_and_says_since_when(line: dict[str, Any], tmp_path: Path) -> None:
    lines = text_of(line, tmp_path, f"pod/{line['truth']['pod']}", "-n", "ml")
    text = "\n".join(lines)
    assert "no object can be called" not in text
    assert len(lines) <= LINES, text
    assert all(len(each) <= WIDTH for each in lines if not COMMAND.match(each)), text
    if expected(line)["exit"] == 1 and line["id"] not in WITHOUT_TIME:
        assert TIME.search(text), text


@pytest.mark.parametrize("line", RECORDED, ids=NAMES)
def test_tables_of_a_node_are_no_wider_than_its_sentences(line: dict[str, Any], tmp_path: Path) -> None:
    for more in ((), ("--full",)):
        lines = text_of(line, tmp_path, "node/gpu-1", *more)
        assert all(len(each) <= WIDTH for each in lines if not COMMAND.match(each)), "\n".join(lines)


@pytest.mark.parametrize(("folder", "node"), [("mixed-fleet", "mi300x-2"), ("taint-rule-maintenance", "h100-1")])
def test_no_row_of_a_table_is_wider_than_the_terminal(folder: str, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = Path(__file__).parents[2] / "examples" / "explain" / folder / "cluster.yaml"
    _, out, _ = ran("explain", f"node/{node}", "--snapshot", str(path))
    assert "    taint: " in out
    assert not [line for line in out.splitlines() if len(line) > 80 and "kubectl " not in line]
