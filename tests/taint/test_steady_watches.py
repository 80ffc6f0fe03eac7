"""What is waited for is read again after a change, and only then."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubectl_dra.cluster.client import Answered
from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.errors import ClusterError
from kubectl_dra.taint import steady_watches as module
from kubectl_dra.taint.steady_watches import OUTAGE_SECONDS, Patience, TimedOut, Watcher
from tools.api_server import Answer, APIServer, Asked, status

PODS = "/api/v1/namespaces/team/pods"


class Pods:
    """A server with one pod. A watch is answered when ``change`` was called."""

    def __init__(self, directory: Path) -> None:
        self.server = APIServer()
        self.reads = 0
        self.said: list[str] = []
        self.refuse: Answer | None = None
        self._changed = threading.Event()
        self._name = "one"
        self.server.routes[PODS] = self._list
        self.server.routes[f"{PODS}/one"] = self._read
        cluster = ApiServer(ConnectionOptions(kubeconfig=self.server.kubeconfig(directory)))
        self.watcher = Watcher(cluster, Patience(self.said.append, time.monotonic() + 20))

    def change(self, name: str) -> None:
        self._name = name
        self._changed.set()

    def read(self) -> int:
        """Reads the pod; returns how often the server was asked for it."""
        pod = self.watcher.get("Pod", "one", "team")
        assert pod is not None and pod["metadata"]["name"] == "one"
        return self.reads

    def _read(self, asked: Asked) -> Answer:
        self.reads += 1
        return Answer(200, {"metadata": {"name": "one", "namespace": "team"}})

    def _list(self, asked: Asked) -> Answer:
        if "watch" not in asked.query:
            return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": []})
        return self.refuse or Answer(200, self._event(), (("Connection", "close"),))

    def _event(self) -> bytes:
        # The head of an answer is sent with its body here: a watch begins with a bookmark.
        if not self._changed.wait(0.01):
            return b""
        self._changed.clear()
        metadata = {"name": self._name, "namespace": "team", "resourceVersion": "2"}
        return json.dumps({"type": "MODIFIED", "object": {"metadata": metadata}}).encode() + b"\n"


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Pods]:
    made = Pods(tmp_path)
    with made.watcher:
        yield made
    made.server.close()


class Told:
    """A watch that is live and tells what a test says."""

    refused = ""
    live = True

    def stop(self) -> None:
        pass


def live(pods: Pods, kind: str = "Pod", namespace: str = "team") -> Told:
    told = Told()
    pods.watcher._watches[kind, namespace] = told  # type: ignore[assignment]
    return told


def test_an_answer_is_kept_until_it_may_have_changed(pods: Pods) -> None:
    live(pods)
    assert (pods.read(), pods.read()) == (1, 1)
    pods.watcher._take("Pod", False, ("team", "two"))
    assert pods.read() == 1
    pods.watcher._take("Pod", False, ("team", "one"))
    assert (pods.read(), pods.read()) == (2, 2)
    pods.watcher._take("Pod", False, None)
    assert (pods.read(), pods.read()) == (3, 3)


def test_nothing_is_kept_without_a_watch(pods: Pods) -> None:
    assert (pods.read(), pods.read()) == (1, 2)
    watch = live(pods)
    assert (pods.read(), pods.read()) == (2, 2)
    watch.live = False
    assert pods.read() == 3


def test_nothing_is_kept_for_ever(pods: Pods, monkeypatch: pytest.MonkeyPatch) -> None:
    live(pods)
    assert pods.read() == 1
    monkeypatch.setattr(module, "REFRESH_SECONDS", 0.0)
    assert pods.read() == 2


def test_a_change_while_the_object_is_read_is_not_lost(pods: Pods) -> None:
    live(pods)
    answer = pods._read

    def changing(asked: Asked) -> Answer:
        pods.watcher._take("Pod", False, ("team", "one"))
        return answer(asked)

    pods.server.routes[f"{PODS}/one"] = changing
    assert pods.read() == 1
    pods.server.routes[f"{PODS}/one"] = answer
    assert (pods.read(), pods.read()) == (2, 2)


def test_a_pause_ends_with_a_change_of_what_was_read(pods: Pods) -> None:
    live(pods)
    pods.read()
    for name, pause, least, most in (("one", 30.0, 0.0, 20.0), ("two", 1.0, 0.9, 20.0)):
        threading.Timer(0.1, pods.watcher._take, ("Pod", False, ("team", name))).start()
        start = time.monotonic()
        pods.watcher.pause(pause)
        assert least <= time.monotonic() - start < most
        pods.read()


def test_a_pause_is_short_without_a_watch(pods: Pods) -> None:
    watch = live(pods)
    watch.live = False
    start = time.monotonic()
    pods.watcher.pause(30.0, unwatched=0.1)
    assert time.monotonic() - start < 20


def test_what_matters_as_a_whole(pods: Pods) -> None:
    live(pods)
    assert not pods.watcher.changed("Pod")
    pods.watcher._take("Pod", True, ("team", "any"))
    assert pods.watcher.changed("Pod") and not pods.watcher.changed("Pod")
    # Without a watch it may always have changed.
    assert pods.watcher.changed("Node") and pods.watcher.changed("Node")


def test_a_refusal_is_said_once(pods: Pods) -> None:
    pods.refuse = status(403, "Forbidden", 'User "jane" cannot watch resource "pods"')
    pods.watcher.follow("Pod", "team")
    for _ in range(3):
        pods.watcher.pause(0.2, unwatched=0.2)
    (sentence,) = pods.said
    assert 'cannot watch resource "pods"' in sentence and sentence.startswith("note: polling")


def test_a_real_watch_wakes_up(pods: Pods) -> None:
    pods.watcher.follow("Pod", "team")
    pods.read()
    before = pods.reads
    pods.change("one")
    end = time.monotonic() + 10
    while pods.read() == before and time.monotonic() < end:
        pods.watcher.pause(1.0)
    assert pods.reads > before


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, 0.001)


def failing(*errors: ClusterError) -> Callable[[], str]:
    left = list(errors)

    def ask() -> str:
        if left:
            raise left.pop(0)
        return "answer"

    return ask


def patience(said: list[str], deadline: float | None = None) -> tuple[Patience, Clock]:
    clock = Clock()
    return Patience(said.append, deadline, clock.sleep, clock), clock


@pytest.mark.parametrize("status", [410, 429, 500, 503])
def test_what_passes_is_waited_out_and_said_once(status: int) -> None:
    said: list[str] = []
    waiting, clock = patience(said)
    errors = [Answered(status, "busy"), ClusterError("no connection"), Answered(status, "busy")]
    assert waiting.ask(failing(*errors)) == "answer"
    assert said == ["busy; trying again", "the API server answers again"] and clock.now > 1
    assert waiting.ask(failing()) == "answer" and len(said) == 2


@pytest.mark.parametrize("error", [Answered(403, "cannot list"), Answered(404, "no"), ClusterError("credentials", 401)])
def test_what_does_not_pass_is_raised(error: ClusterError) -> None:
    waiting, _ = patience([])
    with pytest.raises(ClusterError) as raised:
        waiting.ask(failing(error))
    assert raised.value is error


def test_the_deadline_holds_during_an_outage() -> None:
    waiting, clock = patience([], deadline=7.0)
    with pytest.raises(TimedOut):
        waiting.ask(failing(*[ClusterError("down")] * 1000))
    assert 7 <= clock.now < 8


def test_a_long_outage_ends_waiting() -> None:
    waiting, clock = patience([])
    with pytest.raises(ClusterError, match="down"):
        waiting.ask(failing(*[ClusterError("down")] * 1000))
    assert OUTAGE_SECONDS < clock.now < OUTAGE_SECONDS + 10


def test_pauses_end_at_the_deadline() -> None:
    waiting, clock = patience([], deadline=1.5)
    waiting.pause(1.0)
    assert not waiting.expired()
    waiting.pause(1.0)
    assert waiting.expired() and clock.now == 1.5
