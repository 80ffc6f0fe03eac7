"""The API server goes away, throttles, or the user presses Ctrl-C: nothing is lost, and nothing done twice."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.controlplane.cluster import wait
from tests.explain.live.command import ROOT, Answer
from tests.taint.live.faults import LOST, Asked, Front
from tests.taint.live.proxy import Gate
from tests.taint.live.team import KEY, Kubelet, Team


def test_api_server_that_restarts_while_waiting(team: Team, kubelet: Kubelet, tmp_path: Path) -> None:
    held = team.running("one")
    gate = Gate(team.cluster.plane)
    api = team.cluster.plane.api()

    def restart() -> None:
        pod = api.path("v1", "Pod", team.cluster.namespace, "one")
        wait(lambda: api.request("GET", pod)["metadata"].get("deletionTimestamp"), "the eviction")
        gate.close()
        kubelet.start()
        threading.Event().wait(3)
        gate.open()

    restarting = threading.Thread(target=restart)
    restarting.start()
    config = ["--kubeconfig", str(gate.kubeconfig(tmp_path)), "--context", "admin"]
    answer = team.command("taint", team.full(held), f"{KEY}:NoExecute", "--wait=60s", *config)
    restarting.join()
    gate.close()
    assert answer.code == 0 and "can be taken offline" in answer.out, answer.text
    assert answer.err.count("trying again") == 1 and "answers again" in answer.err
    assert len(team.rules()) == 1


def test_a_server_that_stays_away_ends_with_the_time(team: Team, tmp_path: Path) -> None:
    held = team.running("one")
    gate = Gate(team.cluster.plane)
    closing = threading.Timer(3, gate.close)
    closing.start()
    config = ["--kubeconfig", str(gate.kubeconfig(tmp_path)), "--context", "admin"]
    answer = team.command("taint", team.full(held), f"{KEY}:NoSchedule", "--wait=6s", *config)
    closing.join()
    assert answer.code == 1 and "trying again" in answer.err and "Not free in time" in answer.out, answer.text
    assert len(team.rules()) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_throttled(team: Team, kubelet: Kubelet, tmp_path: Path, status: int) -> None:
    """Every second request is refused for now; everything is done all the same, and once."""
    held = team.running("one")
    kubelet.start()
    count = itertools.count()
    front = Front(team.cluster.plane, lambda asked: status if next(count) % 2 else None)
    answer = through(team, front, tmp_path, "taint", team.full(held), f"{KEY}:NoExecute", "--wait=90s")
    assert answer.code == 0 and "can be taken offline" in answer.out, answer.text
    assert [wrong for _, wrong in front.faults].count(status) > 3
    # One with effect None, one with NoExecute.
    assert [asked.method for asked in front.passed if asked.method != "GET"] == ["PATCH", "PATCH"]
    assert len(team.rules()) == 1


def test_answers_of_writes_that_are_lost(team: Team, tmp_path: Path) -> None:
    """A write whose answer is lost is sent again, finds itself done, and is not done twice."""
    lost: set[str] = set()

    def fault(asked: Asked) -> int | None:
        if asked.method in lost or asked.method == "GET":
            return None
        lost.add(asked.method)
        return LOST

    front = Front(team.cluster.plane, fault)
    answer = through(team, front, tmp_path, "taint", team.full("gpu-0"), f"{KEY}:NoSchedule")
    assert answer.code == 0, answer.text
    (rule,) = team.rules()
    assert rule["metadata"]["generation"] == 1
    answer = through(team, front, tmp_path, "untaint", team.full("gpu-0"))
    assert answer.code == 0 and "was gone already" in answer.out, answer.text
    assert lost == {"PATCH", "DELETE"} and not team.rules()
    front.close()


def test_lists_that_expire_while_waiting(team: Team, kubelet: Kubelet, tmp_path: Path) -> None:
    """410 for lists of claims, again and again."""
    held = team.running("one")
    left = itertools.chain([None], [410] * 5, itertools.repeat(None))

    def fault(asked: Asked) -> int | None:
        return next(left) if asked.path.partition("?")[0].endswith("/resourceclaims") else None

    kubelet.start()
    front = Front(team.cluster.plane, fault)
    answer = through(team, front, tmp_path, "taint", team.full(held), f"{KEY}:NoExecute", "--wait=60s")
    front.close()
    assert answer.code == 0 and "can be taken offline" in answer.out, answer.text
    assert len(front.faults) == 5 and answer.err.count("trying again") == 1


def through(team: Team, front: Front, directory: Path, *words: str) -> Answer:
    """Runs a command through the front."""
    return team.command(*words, "--kubeconfig", front.kubeconfig(directory), "--context", "admin")


def test_interrupted_while_waiting(team: Team, kubelet: Kubelet) -> None:
    held = team.running("one")
    words = ["taint", team.full(held), f"{KEY}:NoExecute", "--wait"]
    connection = ["--kubeconfig", str(team.cluster.plane.kubeconfig), "--context", "admin"]
    command = [sys.executable, "-m", "kubectl_dra", *words, *connection]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "terminating" in line:
            break
    os.kill(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=20)
    assert process.returncode == 130 and "run the same command again" in rest and "Traceback" not in rest
    rule = team.rule(held)
    assert rule is not None and rule["spec"]["taint"]["effect"] == "NoExecute"
    kubelet.start()
    again = team.json(*words[:3], "--wait=60s")
    assert again["rules"][0]["outcome"] == "unchanged" and again["wait"]["free"] is True
    now = team.rule(held)
    assert now is not None and now["metadata"]["uid"] == rule["metadata"]["uid"] and now["spec"] == rule["spec"]
