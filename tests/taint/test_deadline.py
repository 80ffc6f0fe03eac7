"""A client with a deadline does not wait for a server that hangs, or tries again, beyond it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_dra.cluster.client import Client
from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.errors import ClusterError
from tools.api_server import Answer, APIServer

SLOW = Answer(200, {"kind": "Status"}, (("Connection", "close"),), delay=25)
BUSY = Answer(429, {}, (("Retry-After", "5"), ("Connection", "close")))


@pytest.fixture
def server() -> Iterator[APIServer]:
    started = APIServer()
    yield started
    started.close()


def client_of(server: APIServer, directory: Path, timeout: float | None = None) -> Client:
    return ApiServer(ConnectionOptions(kubeconfig=server.kubeconfig(directory), request_timeout=timeout)).client


@pytest.mark.parametrize("timeout", [None, 0.0, 30.0])
@pytest.mark.parametrize("left", [-1.0, 1.0])
def test_a_request_gets_what_is_left_and_a_second_at_least(
    server: APIServer, tmp_path: Path, timeout: float | None, left: float
) -> None:
    server.routes["/x"] = SLOW
    client = client_of(server, tmp_path, timeout)
    start = time.monotonic()
    with client.until(start + left), pytest.raises(ClusterError, match="did not answer"):
        client.get("/x")
    assert 0.9 < time.monotonic() - start < 15


def test_nothing_is_tried_again_after_the_deadline(server: APIServer, tmp_path: Path) -> None:
    server.routes["/x"] = BUSY
    client = client_of(server, tmp_path)
    start = time.monotonic()
    with client.until(start + 3), pytest.raises(ClusterError, match="429"):
        client.get("/x")
    assert time.monotonic() - start < 2 and len(server.asked) == 1


def test_the_nearest_deadline_holds_and_ends(server: APIServer, tmp_path: Path) -> None:
    client = client_of(server, tmp_path)
    now = time.monotonic()
    with client.until(now + 5):
        with client.until(now + 50):
            assert not client.has(10)
        with client.until(None):
            assert not client.has(10) and client.has(1)
        with client.until(now + 1):
            assert not client.has(2)
        assert client.has(2)
    assert client.has(1e9)
