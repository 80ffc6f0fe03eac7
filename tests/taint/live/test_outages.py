"""The API server goes away, throttles, or the user presses Ctrl-C: nothing is lost, and nothing done twice."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.live import ApiServer as LiveServer
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.cluster.watch import Watch
from kubectl_dra.taint.wait_until_drained import Blocker, Drain
from tests.taint.live.faults import HANGS, LOST, Asked, Front
from tests.taint.live.team import KEY, Kubelet, Team, checked
from tools.controlplane.cluster import wait
from tools.live.command import ROOT, Answer
from tools.live.gate import Gate
from tools.live.releases import EFFECT_NONE, expected, needs_effect_none
from tools.live.second_server import ApiServer


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Is set as soon as the command in this process waits for devices."""
    event, original = threading.Event(), Drain.wait

    def wait_for_them(self: Drain) -> tuple[Blocker, ...]:
        event.set()
        return original(self)

    monkeypatch.setattr(Drain, "wait", wait_for_them)
    return event


def test_api_server_that_restarts_while_waiting(
    team: Team, kubelet: Kubelet, tmp_path: Path, waiting: threading.Event
) -> None:
    held = team.running("one")
    gate = Gate(team.cluster.plane)

    def restart() -> None:
        waiting.wait(60)
        gate.close()
        threading.Event().wait(3)
        kubelet.start()
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


def test_a_server_that_stays_away_ends_with_the_time(team: Team, tmp_path: Path, waiting: threading.Event) -> None:
    held = team.running("one")
    gate = Gate(team.cluster.plane)

    def close() -> None:
        waiting.wait(60)
        gate.close()

    closing = threading.Thread(target=close)
    closing.start()
    config = ["--kubeconfig", str(gate.kubeconfig(tmp_path)), "--context", "admin"]
    answer = team.command("taint", team.full(held), f"{KEY}:NoSchedule", "--wait=4s", *config)
    closing.join()
    assert answer.code == 1 and "trying again" in answer.err and "Not free in time" in answer.out, answer.text
    assert len(team.rules()) == 1


@pytest.mark.parametrize("command", ["taint", "untaint"])
def test_a_server_that_hangs_ends_with_the_time(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """It takes requests and never answers: --wait is not overrun by the time-out of a request."""
    held = team.running("one")
    if command == "untaint":
        assert team.dra("taint", team.full(held), f"{KEY}:NoSchedule").code == 0
    written = threading.Event()

    def fault(asked: Asked) -> int | None:
        if asked.method != "GET":
            written.set()
            return None
        return HANGS if written.is_set() else None

    front = Front(team.cluster.plane, fault)
    words = [f"{KEY}:NoSchedule"] if command == "taint" else []
    start = time.monotonic()
    answer = through(team, front, tmp_path, command, team.full(held), *words, "--wait=4s")
    took = time.monotonic() - start
    front.close()
    assert answer.code == 1 and "in time" in answer.out, answer.text
    assert took < 15 and HANGS in [wrong for _, wrong in front.faults]


def test_a_server_that_takes_no_writes_for_now(team: Team, tmp_path: Path) -> None:
    """503 to writes only, as while etcd elects a leader."""
    left = {"PATCH": 2, "DELETE": 2}

    def fault(asked: Asked) -> int | None:
        left[asked.method] = left.get(asked.method, 0) - 1
        return 503 if left[asked.method] >= 0 else None

    front = Front(team.cluster.plane, fault)
    answer = through(team, front, tmp_path, "taint", team.full("gpu-0"), f"{KEY}:NoSchedule")
    assert answer.code == 0 and " created (" in answer.out, answer.text
    (rule,) = team.rules()
    assert rule["metadata"]["generation"] == 1
    answer = through(team, front, tmp_path, "untaint", team.full("gpu-0"))
    front.close()
    assert answer.code == 0 and " deleted (" in answer.out and not team.rules(), answer.text
    assert [wrong for _, wrong in front.faults] == [503] * 4
    assert [asked.method for asked in front.passed if asked.method != "GET"] == ["PATCH", "DELETE"]


def test_throttled(team: Team, kubelet: Kubelet, tmp_path: Path) -> None:
    """Every second request is refused for now; everything is done all the same, and once."""
    held = team.running("one")
    kubelet.start()
    count = itertools.count()
    front = Front(team.cluster.plane, lambda asked: 429 if next(count) % 2 else None)
    answer = through(team, front, tmp_path, "taint", team.full(held), f"{KEY}:NoExecute", "--wait=90s")
    assert answer.code == 0 and "can be taken offline" in answer.out, answer.text
    assert [wrong for _, wrong in front.faults].count(429) > 3
    # One with effect None, where the release has that, and one with NoExecute.
    writes = ["PATCH"] * (1 + expected(EFFECT_NONE, team.cluster.plane))
    assert [asked.method for asked in front.passed if asked.method != "GET"] == writes
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
    assert answer.code == 0 and " created (" in answer.out, answer.text
    (rule,) = team.rules()
    assert rule["metadata"]["generation"] == 1
    answer = through(team, front, tmp_path, "untaint", team.full("gpu-0"))
    assert answer.code == 0 and " deleted (" in answer.out, answer.text
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


@pytest.mark.parametrize("wrong", [410, 429, LOST])
def test_watches_that_end(team: Team, kubelet: Kubelet, tmp_path: Path, wrong: int) -> None:
    """Whatever watches are answered with at first, the end is seen, and none of it is anything to tell people."""
    held = team.running("one")
    left = itertools.chain([wrong] * 10, itertools.repeat(None))

    def fault(asked: Asked) -> int | None:
        return next(left) if "watch=1" in asked.path else None

    kubelet.start()
    front = Front(team.cluster.plane, fault)
    answer = through(team, front, tmp_path, "taint", team.full(held), f"{KEY}:NoExecute", "--wait=60s")
    front.close()
    assert answer.code == 0 and "can be taken offline" in answer.out, answer.text
    assert "trying again" not in answer.err and "note:" not in answer.err and front.faults


def test_nothing_is_asked_while_nothing_changes(team: Team, tmp_path: Path) -> None:
    held = team.running("one")
    front = Front(team.cluster.plane, lambda asked: None)
    through(team, front, tmp_path, "taint", team.full(held), f"{KEY}:NoSchedule", "--wait=4s")
    front.close()
    watched = sorted(asked.path.partition("?")[0].rpartition("/")[2] for asked in front.passed if "watch" in asked.path)
    assert watched == ["devicetaintrules", "pods", "resourceclaims", "resourceslices"]
    # Once before the watch has begun, and once after.
    for end in ("/pods/one", "/resourceclaims/one-claim"):
        assert 1 <= sum(asked.path.endswith(end) for asked in front.passed) <= 2, front.passed


def through(team: Team, front: Front, directory: Path, *words: str) -> Answer:
    """Runs a command through the front."""
    return team.command(*words, "--kubeconfig", front.kubeconfig(directory), "--context", "admin")


def started(team: Team, *words: str, kubeconfig: str = "") -> subprocess.Popen[str]:
    """Starts a command in a process of its own."""
    connection = ["--kubeconfig", kubeconfig or str(team.cluster.plane.kubeconfig), "--context", "admin"]
    command = [sys.executable, "-m", "kubectl_dra", *words, *connection]
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def ended(process: subprocess.Popen[str], seconds: float = 40) -> tuple[str, str]:
    """Waits for the end of a command: what is left of its output. One that hangs says where."""
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        pytest.fail(f"still there after {seconds:g} s:\n{process.communicate(timeout=20)[1]}")


def test_two_drains_at_once(team: Team, kubelet: Kubelet) -> None:
    """Two people drain the same device: one rule, one time for NoExecute, and both see the end."""
    held = team.running("one")
    words = ["taint", team.full(held), f"{KEY}:NoExecute", "--drain", "--grace", "4s", "--wait=60s", "-o", "json"]
    processes = [started(team, *words) for _ in range(2)]
    kubelet.start()
    rule = wait(lambda: _draining(team, held), "NoSchedule")
    due = rule["metadata"]["annotations"]["kubectl-dra/next-effect-at"]
    ends = [ended(process, 90) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ends
    reports = [checked(out) for out, _ in ends]
    assert [report["wait"]["reached"] for report in reports] == [True, True]
    now = [
        report["rules"][0]["deviceTaintRule"]["metadata"]["annotations"]["kubectl-dra/next-effect-at"]
        for report in reports
    ]
    assert now == [due, due]
    (rule,) = team.rules()
    assert rule["spec"]["taint"]["effect"] == "NoExecute"
    # None (where the release has that), NoSchedule, NoExecute: nothing was written twice.
    assert rule["metadata"]["generation"] == 2 + expected(EFFECT_NONE, team.cluster.plane)


def _draining(team: Team, name: str) -> dict[str, Any] | None:
    rule = team.rule(name)
    return rule if rule is not None and rule["spec"]["taint"]["effect"] == "NoSchedule" else None


def test_interrupted_in_the_grace_period(team: Team) -> None:
    """Ctrl-C before NoExecute: the rule keeps its time, and the same command does not put that off."""
    held = team.running("one")
    words = ["taint", team.full(held), f"{KEY}:NoExecute", "--drain", "--grace", "1h", "--wait"]
    process = started(team, *words)
    assert process.stderr is not None
    for line in process.stderr:
        if "NoExecute in" in line:
            break
    process.send_signal(signal.SIGINT)
    _, rest = ended(process)
    assert process.returncode == 130 and "run the same command again" in rest and "Traceback" not in rest
    rule = team.rule(held)
    assert rule is not None and rule["spec"]["taint"]["effect"] == "NoSchedule"
    assert not team.cluster.get("Pod", "one", "v1")["metadata"].get("deletionTimestamp")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": team.cluster.namespace}}
    ending = threading.Timer(2, lambda: team.cluster.plane.api().delete(pod, grace_seconds=0))
    ending.start()
    again = team.json(*words)
    ending.join()
    assert again["rules"][0]["outcome"] == "unchanged" and again["wait"]["reached"] is True
    assert again["rules"][0]["deviceTaintRule"]["metadata"]["annotations"] == rule["metadata"]["annotations"]
    (now,) = team.rules()
    assert now["metadata"]["uid"] == rule["metadata"]["uid"] and now["spec"]["taint"]["effect"] == "NoExecute"


def test_interrupted_while_waiting(team: Team, kubelet: Kubelet) -> None:
    held = team.running("one")
    words = ["taint", team.full(held), f"{KEY}:NoExecute", "--wait"]
    process = started(team, *words)
    assert process.stderr is not None
    for line in process.stderr:
        if "terminating" in line:
            break
    os.kill(process.pid, signal.SIGINT)
    _, rest = ended(process)
    assert process.returncode == 130 and "run the same command again" in rest and "Traceback" not in rest
    rule = team.rule(held)
    assert rule is not None and rule["spec"]["taint"]["effect"] == "NoExecute"
    kubelet.start()
    again = team.json(*words[:3], "--wait=60s")
    assert again["rules"][0]["outcome"] == "unchanged" and again["wait"]["reached"] is True
    now = team.rule(held)
    assert now is not None and now["metadata"]["uid"] == rule["metadata"]["uid"] and now["spec"] == rule["spec"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the API server's command line in /proc")
def test_the_process_of_the_api_server_is_killed_and_started_again(
    team: Team, kubelet: Kubelet, tmp_path: Path, waiting: threading.Event
) -> None:
    held = team.running("one")
    server = ApiServer(team.cluster.plane, tmp_path)
    told: list[Key | None] = []

    def crash() -> None:
        waiting.wait(60)
        server.kill()
        server.start()
        kubelet.start()

    try:
        server.start()
        options = ConnectionOptions(kubeconfig=str(server.kubeconfig), context="admin")
        watch = Watch(LiveServer(options).client, f"/api/v1/namespaces/{team.cluster.namespace}/pods", told.append)
        watch.start()
        wait(lambda: True if watch.live else None, "the watch")
        crashing = threading.Thread(target=crash)
        crashing.start()
        config = ["--kubeconfig", str(server.kubeconfig), "--context", "admin"]
        answer = team.command("taint", team.full(held), f"{KEY}:NoExecute", "--wait=60s", *config)
        crashing.join()
        # The new server knows no change before it (410): the watch begins anew, and tells what comes.
        wait(lambda: True if watch.live else None, "the watch")
        team.cluster.pod("after")
        wait(lambda: True if (team.cluster.namespace, "after") in told else None, "pod after being told")
        watch.stop()
    finally:
        server.kill()
    assert answer.code == 0 and "can be taken offline" in answer.out, answer.text
    assert "trying again" in answer.err and "answers again" in answer.err
    assert len(team.rules()) == 1 and told[0] is None and told.count(None) > 1


def test_interrupted_while_the_server_is_asked(team: Team, kubelet: Kubelet, tmp_path: Path) -> None:
    """Ctrl-C between effect None and NoExecute: nobody is hit, and the same command goes on."""
    needs_effect_none(team.cluster.plane)
    held = team.running("one")
    asked = threading.Event()

    def fault(request: Asked) -> int | None:
        if request.method == "PATCH":
            asked.set()
        return 503 if asked.is_set() and request.method == "GET" else None

    front = Front(team.cluster.plane, fault)
    words = ["taint", team.full(held), f"{KEY}:NoExecute"]
    process = started(team, *words, kubeconfig=front.kubeconfig(tmp_path))
    wait(lambda: team.rule(held), "the rule")
    process.send_signal(signal.SIGINT)
    _, said = ended(process)
    front.close()
    assert process.returncode == 130 and "run the same command again" in said and "Traceback" not in said
    rule = team.rule(held)
    assert rule is not None and rule["spec"]["taint"]["effect"] == "None"
    assert not team.cluster.get("Pod", "one", "v1")["metadata"].get("deletionTimestamp")
    kubelet.start()
    again = team.json(*words, "--wait=60s")
    assert again["wait"]["reached"] is True and again["rules"][0]["ruleStatus"]["podCount"] == 1


@pytest.mark.parametrize("command", ["taint", "untaint"])
def test_interrupted_between_two_rules(team: Team, tmp_path: Path, command: str) -> None:
    """What is done is told, also to machines; the same command does the rest, and nothing twice."""
    devices = [team.full("gpu-0"), team.full("gpu-1")]
    words = [f"{KEY}:NoSchedule"] if command == "taint" else []
    if command == "untaint":
        assert team.dra("taint", *devices, f"{KEY}:NoSchedule").code == 0
    writes: list[Asked] = []
    second = threading.Event()

    def fault(asked: Asked) -> int | None:
        if asked.method == "GET":
            return None
        writes.append(asked)
        if len(writes) < 2:
            return None
        second.set()
        return HANGS

    front = Front(team.cluster.plane, fault)
    process = started(team, command, *devices, *words, "-o", "json", kubeconfig=front.kubeconfig(tmp_path))
    assert second.wait(30)
    process.send_signal(signal.SIGINT)
    out, said = ended(process)
    front.close()
    assert process.returncode == 130 and "run the same command again" in said and "Traceback" not in said
    report = checked(out)
    done = report["rules" if command == "taint" else "removed"]
    assert report["exitCode"] == 130 and [each["device"] for each in done] == ["gpu-0"]
    again = team.json(command, *devices, *words)
    if command == "taint":
        assert [rule["outcome"] for rule in again["rules"]] == ["unchanged", "created"]
        assert len(team.rules()) == 2
    else:
        assert [rule["device"] for rule in again["removed"]] == ["gpu-1"]
        assert not team.rules()
