from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_dra.cli.demo import played_examples
from tests.cli.conftest import EXAMPLES, Dra


def test_every_example_is_listed_with_its_title(dra: Dra) -> None:
    ran = dra("demo")
    assert ran.code == 0 and not ran.err
    listed = dict(line.split(None, 1) for line in ran.out.splitlines() if line and not line.startswith((" ", "Play")))
    assert {*listed} == {path.parent.name for path in EXAMPLES.glob("*/command")}
    assert listed["no-device-matches"] == "No device matches"


@pytest.mark.parametrize("name", ["no-device-matches", "fits"])
def test_one_is_played_from_anywhere(dra: Dra, name: str) -> None:
    ran = dra("demo", name)
    assert ran.code == 0
    expected = (EXAMPLES / name / "expected.txt").read_text(encoding="utf-8")
    assert expected.strip() in ran.out
    assert f"Exit code {(EXAMPLES / name / 'exit-code').read_text().strip()}." in ran.out


def test_each_has_a_situation_and_a_command_of_explain() -> None:
    for example in played_examples().values():
        assert example.situation.endswith((".", ":", "`.")), example
        assert example.command[0] == "explain", example


def test_where_it_is(dra: Dra) -> None:
    assert Path(dra("demo", "fits", "--path").out.strip()) == EXAMPLES / "fits"


def test_one_that_does_not_exist(dra: Dra) -> None:
    ran = dra("demo", "fit")
    assert ran.code == 2 and "did you mean fits or shared-capacity-fits?" in ran.err
