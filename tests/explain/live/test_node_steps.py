"""What explain names is done on the situation's live twin, a real node, and ends it. See node_steps.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.explain.live.node_steps import STEPS, is_gone
from tests.ran import ran
from tools.controlplane.node import Nodes
from tools.controlplane.program import Program
from tools.recorder.nodes.__main__ import STATES
from tools.recorder.nodes.stage import Stage

pytestmark = pytest.mark.xdist_group("node-steps")
OFTEN = [name for name, step in STEPS.items() if step.often]
RARELY = [name for name, step in STEPS.items() if not step.often]


@pytest.fixture(scope="module")
def shared(machines: Nodes, control_plane_program: Program) -> Stage:
    return Stage(machines, control_plane_program, records=False)


@pytest.fixture
def stage(shared: Stage) -> Iterator[Stage]:
    yield shared
    shared.clear()


def explained(stage: Stage) -> dict[str, Any]:
    where = ["--kubeconfig", str(stage.machines.plane.kubeconfig)]
    _, out, errors = ran("explain", "pod/train", "-n", "ml", "-o", "json", *where)
    assert out, errors
    found: dict[str, Any] = json.loads(out)
    return found


def carried_out(stage: Stage, name: str) -> None:
    truth, step = STATES[name](stage), STEPS[name]
    before = explained(stage)
    if step.note:
        assert step.note in "\n".join(before["notes"])
    else:
        assert before["exitCode"] == 1, (truth, before["answer"])
        assert step.named in before["causes"][0]["fix"]["text"]
    step.do(stage)
    step.ends(stage)
    if step.ends is not is_gone:
        after = explained(stage)
        assert (after["exitCode"], after["causes"]) == (0, []), after["answer"]


def test_there_are_enough() -> None:
    assert len(OFTEN) >= 20 and len(STEPS) >= 40


@pytest.mark.parametrize("name", OFTEN)
def test_the_step_ends_it(stage: Stage, name: str) -> None:
    carried_out(stage, name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", RARELY)
def test_the_step_ends_what_takes_time(stage: Stage, name: str) -> None:
    carried_out(stage, name)
