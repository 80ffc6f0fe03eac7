"""Snapshots that are taken again and again, and an answer as of some time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cluster.files import drop_oldest, last_before, path_at, taken
from kubectl_dra.errors import InputError
from tests.cli.conftest import Dra
from tests.metrics.test_follow import objects
from tools.watched_server import WatchedServer

NIGHT = datetime(2026, 11, 24, 3, 0, tzinfo=UTC)
ASKED = ("explain", "pod/serve-0", "-n", "ml", "--snapshot", "ring")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which each pause puts on; the fifth ends it all."""
    now = [NIGHT.timestamp()]
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += 600
        if len(pauses) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr("kubectl_dra.cli.snapshot.time.time", lambda: now[0])
    monkeypatch.setattr("kubectl_dra.cli.snapshot.time.sleep", pause)
    return pauses


def test_a_ring_of_snapshots_answers_as_of_then(dra: Dra, tmp_path: Path, clock: list[float], monkeypatch: Any) -> None:
    server = WatchedServer(objects())
    config = server.kubeconfig(tmp_path)
    (tmp_path / "ring").mkdir()
    (tmp_path / "ring" / "notes.txt").write_text("mine")
    write = path_at

    def later(folder: Path, at: datetime) -> Path:
        # The pod goes before the fourth, and the server is away at the fifth.
        if len(clock) == 3:
            server.delete("Pod", "serve-0", "ml")
        if len(clock) == 4:
            server.close()
        return write(folder, at)

    monkeypatch.setattr("kubectl_dra.cli.snapshot.path_at", later)
    ran = dra("snapshot", "--every", "10m", "--keep", "3", "-o", "ring", "--kubeconfig", config)
    assert ran.code == 130 and "trying again in 10m" in ran.err
    assert [snapshot.at for snapshot in taken(tmp_path / "ring")] == [
        NIGHT + timedelta(minutes=10 * tens) for tens in (1, 2, 3)
    ]
    assert (tmp_path / "ring" / "notes.txt").exists()
    assert all(0 <= pause <= 600 for pause in clock)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    then = dra(*ASKED, "--at", "2026-11-24T03:25Z", "-o", "json")
    assert then.json["causes"][0]["code"] == "selector-matches-nothing"
    assert "taken at 2026-11-24T03:20:00Z" in then.err
    assert "serve-0" in dra(*ASKED, "--at", "2026-11-24T04:00+00:00").err


@pytest.mark.parametrize(
    ("at", "said"),
    [("yesterday", "is no time"), ("2026-11-24T02:00Z", "there is no snapshot of 2026-11-24T02:00:00Z or before")],
)
def test_times_that_say_nothing(dra: Dra, tmp_path: Path, at: str, said: str) -> None:
    (tmp_path / "ring").mkdir()
    path_at(tmp_path / "ring", NIGHT).write_text("{}")
    ran = dra(*ASKED, "--at", at)
    assert ran.code == 2 and said in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--every", "10m"), "add -o DIRECTORY"),
        (("--every", "10m", "-o", "x.json"), "add -o DIRECTORY"),
        (("--every", "1s", "-o", "."), "at least 10s"),
        (("--every", "often", "-o", "."), "--every: "),
        (("--every", "10m", "-o", ".", "--snapshot", "x.yaml"), "leave --snapshot"),
    ],
)
def test_wrong_usage(dra: Dra, words: tuple[str, ...], said: str) -> None:
    ran = dra("snapshot", *words)
    assert ran.code == 2 and said in ran.err


def test_at_needs_a_directory(dra: Dra) -> None:
    assert "add --snapshot DIRECTORY" in dra("explain", "pod/a", "--at", "8h").err


def test_the_newest_stay(tmp_path: Path) -> None:
    for hour in range(5):
        path_at(tmp_path, NIGHT + timedelta(hours=hour)).write_text("{}")
    drop_oldest(tmp_path, 2)
    assert [snapshot.at.hour for snapshot in taken(tmp_path)] == [6, 7]
    assert last_before(tmp_path, NIGHT + timedelta(hours=3, minutes=59)).at.hour == 6
    with pytest.raises(InputError, match="the oldest is of"):
        last_before(tmp_path, NIGHT)
