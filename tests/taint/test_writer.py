"""Writes against a server on a real socket: what is sent, what is tried again, what is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_dra.cluster.client import Answered
from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.writer import Conflict, Writer
from kubectl_dra.errors import ClusterError
from tools.api_server import Answer, APIServer, Asked, status

PATH = "/apis/resource.k8s.io/v1/devicetaintrules/r"
OBJECT = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}}


@pytest.fixture
def server() -> Iterator[APIServer]:
    started = APIServer()
    yield started
    started.close()


class Sleeps(list[float]):
    """Remembers how long was slept, without sleeping."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def writer(server: APIServer, directory: Path, sleeps: Sleeps, *, dry_run: bool = False) -> Writer:
    cluster = ApiServer(ConnectionOptions(kubeconfig=server.kubeconfig(directory)))
    return Writer(cluster.client, dry_run=dry_run, sleep=sleeps)


def after(*answers: Answer) -> object:
    """A route that gives these answers in turn, the last one for ever."""
    left = list(answers)

    def answer(asked: Asked) -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


# The server does not read bodies, so each connection is used once.
CLOSE = ("Connection", "close")
OK = Answer(200, OBJECT, (CLOSE,))
BUSY = Answer(429, {}, (("Retry-After", "2"), CLOSE))


def test_apply_says_who_and_what_state_it_is_for(server: APIServer, tmp_path: Path) -> None:
    server.routes[PATH] = OK
    assert writer(server, tmp_path, Sleeps()).apply(PATH, OBJECT, version="5") == OBJECT
    (asked,) = server.asked
    assert asked.method == "PATCH"
    assert asked.query == {"fieldManager": "kubectl-dra", "fieldValidation": "Strict", "force": "false"}
    assert ("Content-Type", "application/apply-patch+yaml") in asked.headers


def test_dry_run_is_in_every_write(server: APIServer, tmp_path: Path) -> None:
    server.routes[PATH] = OK
    dry = writer(server, tmp_path, Sleeps(), dry_run=True)
    dry.apply(PATH, OBJECT)
    dry.create(PATH, OBJECT)
    dry.delete(PATH, "uid")
    assert [asked.method for asked in server.asked] == ["PATCH", "POST", "DELETE"]
    assert all(asked.query["dryRun"] == "All" for asked in server.asked)


def test_throttling_is_waited_out(server: APIServer, tmp_path: Path) -> None:
    sleeps = Sleeps()
    server.routes[PATH] = after(BUSY, BUSY, OK)  # type: ignore[assignment]
    assert writer(server, tmp_path, sleeps).apply(PATH, OBJECT) == OBJECT
    assert sleeps == [2.0, 2.0] and len(server.asked) == 3


def test_throttling_for_ever(server: APIServer, tmp_path: Path) -> None:
    server.routes[PATH] = BUSY
    with pytest.raises(Answered) as refused:
        writer(server, tmp_path, Sleeps()).apply(PATH, OBJECT)
    assert refused.value.status == 429 and len(server.asked) == 6


def test_refusals_are_not_tried_again(server: APIServer, tmp_path: Path) -> None:
    server.routes[PATH] = status(403, "Forbidden", 'User "jane" cannot patch resource "devicetaintrules"')
    with pytest.raises(Answered, match="cannot patch resource") as refused:
        writer(server, tmp_path, Sleeps()).apply(PATH, OBJECT)
    assert refused.value.status == 403 and len(server.asked) == 1


def test_conflicts_name_the_other_managers(server: APIServer, tmp_path: Path) -> None:
    causes = [{"reason": "FieldManagerConflict", "message": 'conflict with "kubectl-edit": .spec', "field": ".spec"}]
    body = {"kind": "Status", "message": "Apply failed", "details": {"causes": causes}}
    server.routes[PATH] = Answer(409, body, (CLOSE,))
    with pytest.raises(Conflict) as conflict:
        writer(server, tmp_path, Sleeps()).apply(PATH, OBJECT)
    assert conflict.value.owners == ("kubectl-edit",)
    server.routes[PATH] = status(409, "Conflict", "the object has been modified")
    with pytest.raises(Conflict) as conflict:
        writer(server, tmp_path, Sleeps()).apply(PATH, OBJECT)
    assert conflict.value.owners == ()


def test_deleting(server: APIServer, tmp_path: Path) -> None:
    server.routes[PATH] = Answer(200, {"kind": "Status"})
    assert writer(server, tmp_path, Sleeps()).delete(PATH, "uid")
    server.routes.clear()
    assert not writer(server, tmp_path, Sleeps()).delete(PATH, "uid")
    server.routes[PATH] = status(409, "Conflict", "the UID does not match")
    with pytest.raises(Conflict):
        writer(server, tmp_path, Sleeps()).delete(PATH, "uid")


def test_a_server_that_is_away_comes_back_or_is_named(server: APIServer, tmp_path: Path) -> None:
    sleeps = Sleeps()
    writing = writer(server, tmp_path, sleeps)
    server.close()
    with pytest.raises(ClusterError, match="run the same command again"):
        writing.apply(PATH, OBJECT)
    assert len(sleeps) == 5


@pytest.mark.parametrize(
    "other", [{**OBJECT, "kind": "Pod"}, {**OBJECT, "metadata": {"name": "other"}}, {**OBJECT, "metadata": "r"}, {}]
)
def test_an_answer_about_another_object_is_not_believed(
    server: APIServer, tmp_path: Path, other: dict[str, object]
) -> None:
    server.routes[PATH] = Answer(200, other, (CLOSE,))
    with pytest.raises(ClusterError, match="another object"):
        writer(server, tmp_path, Sleeps()).apply(PATH, OBJECT)
