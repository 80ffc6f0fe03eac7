"""Draining devices of a real node: NoExecute evicts, the kubelet unprepares, and only then the wait ends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest

from tools.controlplane.client import ApiError, Json
from tools.controlplane.cluster import wait
from tools.controlplane.node import Nodes
from tools.controlplane.program import Program
from tools.live.command import Answer, Command
from tools.recorder.nodes.stage import DRIVER, Stage

pytestmark = pytest.mark.xdist_group("node-steps")
KEY = "example.com/maintenance"
DEVICE = f"{DRIVER}/gpu-1/gpu-0"


@pytest.fixture(scope="module")
def shared(machines: Nodes, control_plane_program: Program) -> Stage:
    return Stage(machines, control_plane_program, records=False)


@pytest.fixture
def stage(shared: Stage) -> Iterator[Stage]:
    yield shared
    shared.clear()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def test_drain_waits_for_the_unprepare(stage: Stage, command: Command) -> None:
    _, driver = stage.node_with_driver(devices=1)
    stage.pod()
    stage.running()
    driver.unprepare(hang=True)
    unprepared: list[float] = []

    def give_back() -> None:
        stage_api = stage.machines.plane.api()
        wait(lambda: _ending(stage_api.list("v1", "Pod", "ml")), "the eviction")
        time.sleep(6)
        unprepared.append(time.monotonic())
        driver.unprepare()

    helper = threading.Thread(target=give_back)
    helper.start()
    answer = dra(stage, command, "taint", DEVICE, f"{KEY}:NoExecute", "--drain", "--grace", "1s", "--wait=90s")
    ended = time.monotonic()
    helper.join()
    assert answer.code == 0 and "can be taken offline" in answer.out, answer.text
    assert ended > unprepared[0], "the wait ended before the driver had given the device back"
    assert [call["call"].split()[0] for call in driver.calls()][-1] == "unprepare"
    stage.gone()

    stage.pod("next")
    stage.unschedulable("next")
    freed = dra(stage, command, "untaint", DEVICE, f"{KEY}-")
    assert freed.code == 0, freed.text
    stage.running("next")


def test_drain_says_what_it_waits_for_while_the_driver_is_away(stage: Stage, command: Command) -> None:
    stage.node_with_driver(devices=1)
    stage.pod()
    stage.running()
    stage.remove_driver()
    evicting = ["taint", DEVICE, f"{KEY}:NoExecute"]
    waiting = dra(stage, command, *evicting, "--wait=10s")
    assert waiting.code == 1, waiting.text
    assert "ml/train" in waiting.text and f"driver {DRIVER}" in waiting.text and "gpu-1" in waiting.text, waiting.text
    report = json.loads(dra(stage, command, *evicting, "--overwrite", "--wait=1s", "-o", "json").out)
    assert report["wait"]["reached"] is False
    stage.drivers["gpu-1"].start()
    stage.gone()
    again = dra(stage, command, *evicting, "--overwrite", "--wait=60s")
    assert again.code == 0 and "can be taken offline" in again.text, again.text


def dra(stage: Stage, command: Command, *words: str) -> Answer:
    return command(*words, "--kubeconfig", str(stage.machines.plane.kubeconfig))


def _ending(pods: list[Json]) -> bool | None:
    try:
        return True if any(pod["metadata"].get("deletionTimestamp") for pod in pods) else None
    except ApiError:
        return None
