"""A watch comes back after everything that ends it, and says where nothing can be watched."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cluster import watch as module
from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.cluster.watch import Watch
from tools.api_server import Answer, APIServer, Asked, status

PATH = "/api/v1/pods"
CLOSE = (("Connection", "close"),)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[APIServer]:
    monkeypatch.setattr(module, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(module, "_LONGEST_WAIT", 0.02)
    started = APIServer()
    yield started
    started.close()


def event(kind: str, version: str, name: str = "one") -> bytes:
    metadata = {"name": name, "namespace": "team", "resourceVersion": version}
    return json.dumps({"type": kind, "object": {"metadata": metadata}}).encode() + b"\n"


def error(code: int) -> bytes:
    return json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "gone"}}).encode() + b"\n"


class Script:
    """Lists are at version 5, 6, ...; each watch is answered with the next of ``answers``, the last one hangs."""

    def __init__(self, server: APIServer, directory: Path, *answers: Answer) -> None:
        self.told: list[Key | None] = []
        self.since: list[str] = []
        self._answers = list(answers)
        self._lists = 4
        server.routes[PATH] = self._answer
        client = ApiServer(ConnectionOptions(kubeconfig=server.kubeconfig(directory))).client
        self.watch = Watch(client, PATH, self.told.append)

    def _answer(self, asked: Asked) -> Answer:
        if "watch" not in asked.query:
            assert asked.query["limit"] == "1"
            self._lists += 1
            return Answer(200, {"metadata": {"resourceVersion": str(self._lists)}, "items": []})
        assert asked.query["allowWatchBookmarks"] == "true"
        self.since.append(asked.query["resourceVersion"])
        return self._answers.pop(0) if self._answers else Answer(200, b"", CLOSE, delay=3)

    def run(self, done: Any, seconds: float = 10) -> None:
        self.watch.start()
        end = time.monotonic() + seconds
        while not done() and time.monotonic() < end:
            time.sleep(0.01)
        self.watch.stop()
        assert done(), (self.told, self.since, self.watch.refused)


def stream(*lines: bytes) -> Answer:
    return Answer(200, b"".join(lines), CLOSE)


def test_goes_on_after_the_last_change_or_bookmark(server: APIServer, tmp_path: Path) -> None:
    """Servers end a watch after some minutes, proxies whenever they like."""
    script = Script(
        server,
        tmp_path,
        stream(event("ADDED", "11"), event("MODIFIED", "12", "two")),
        stream(event("BOOKMARK", "20", "")),
        stream(event("DELETED", "21")[:-20]),
    )
    script.run(lambda: len(script.since) == 4)
    assert script.since == ["5", "12", "20", "20"]
    # None at the start, and after each end of a connection.
    assert script.told == [None, ("team", "one"), ("team", "two"), None, None, None]


@pytest.mark.parametrize("gone", [stream(event("ADDED", "11"), error(410)), status(410, "Expired", "too old")])
def test_begins_anew_when_the_version_is_forgotten(server: APIServer, tmp_path: Path, gone: Answer) -> None:
    script = Script(server, tmp_path, gone, stream(event("ADDED", "30", "three")))
    script.run(lambda: ("team", "three") in script.told)
    assert script.since[:2] == ["5", "6"]
    assert script.told[script.told.index(("team", "three")) - 1] is None


@pytest.mark.parametrize("code", [429, 500, 503])
def test_tries_again_when_the_server_is_busy(server: APIServer, tmp_path: Path, code: int) -> None:
    busy = status(code, "Busy", "later")
    script = Script(server, tmp_path, busy, busy, stream(event("ADDED", "30")))
    script.run(lambda: ("team", "one") in script.told)
    assert script.since[:3] == ["5", "5", "5"]


def test_an_error_that_is_not_known_begins_anew(server: APIServer, tmp_path: Path) -> None:
    script = Script(server, tmp_path, stream(event("ADDED", "11"), error(500)))
    script.run(lambda: len(script.since) == 2)
    assert script.since == ["5", "6"]


def test_a_server_that_is_away(server: APIServer, tmp_path: Path) -> None:
    script = Script(server, tmp_path)
    server.close()
    script.watch.start()
    time.sleep(0.3)
    script.watch.stop()
    assert not script.watch.live and not script.watch.refused and not script.told


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405])
def test_a_refusal_is_said_and_nothing_tried_again(server: APIServer, tmp_path: Path, code: int) -> None:
    script = Script(server, tmp_path, status(code, "No", 'User "jane" cannot watch resource "pods"'))
    script.run(lambda: bool(script.watch.refused))
    assert str(code) in script.watch.refused or 'cannot watch resource "pods"' in script.watch.refused
    time.sleep(0.1)
    assert len(script.since) == 1 and not script.watch.live


def test_nothing_is_told_after_the_end(server: APIServer, tmp_path: Path) -> None:
    late = Answer(200, event("ADDED", "11"), CLOSE, delay=0.5)
    script = Script(server, tmp_path, late)
    script.watch.start()
    time.sleep(0.2)
    script.watch.stop()
    time.sleep(0.6)
    assert script.told == []


def test_what_is_not_an_event(server: APIServer, tmp_path: Path) -> None:
    """A page of a proxy, say: no change, and the watch is tried again."""
    script = Script(
        server, tmp_path, stream(b"<html>\n"), stream(b"[]\n", b'{"object": 7}\n', b'{"object": {"metadata": 7}}\n')
    )
    script.run(lambda: len(script.since) == 3)
    assert script.told == [None, None, ("", ""), ("", ""), None]


def test_a_day_of_events_leaves_nothing_behind(server: APIServer, tmp_path: Path) -> None:
    batch = [stream(*(event("MODIFIED", str(n), f"pod-{n}") for n in range(500))) for _ in range(20)]
    sizes: list[int] = []
    told = [0]

    def tell(key: Key | None) -> None:
        told[0] += 1
        if told[0] % 500 == 0:
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])

    script = Script(server, tmp_path, *batch)
    script.watch = Watch(ApiServer(ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path))).client, PATH, tell)
    # What other tests left behind is not looked through each time, which took longer than the watch may on a busy
    # machine.
    gc.freeze()
    tracemalloc.start()
    try:
        script.run(lambda: len(sizes) >= 20, 60)
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    # The least of some, because one may be measured while a batch is on its way. The test's own server remembers what
    # it was asked.
    assert min(sizes[15:]) - min(sizes[5:10]) < 100_000
