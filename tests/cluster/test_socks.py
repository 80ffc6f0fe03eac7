"""Through a SOCKS 5 proxy: with and without login, to names and numbers, and what a proxy may do wrong."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kubectl_dra.cluster.client import Client
from kubectl_dra.errors import ClusterError
from tests.cluster.test_faults import Raw, client_of, slowly
from tools.api_server import APIServer

FAR = "far.example"
Login = tuple[bytes, bytes]


class Socks:
    """A proxy that leads everywhere to one address, and remembers what it was asked."""

    def __init__(self, to: str, login: Login | None = None) -> None:
        host, _, port = to.rpartition(":")
        self._to = (host, int(port))
        self._login = login
        self.asked: list[tuple[int, bytes, int]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._one, args=(self._listener.accept()[0],), daemon=True).start()

    def _one(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as read:
            methods = read.read(read.read(2)[1])
            method = 2 if self._login else 0
            client.sendall(bytes((5, method if method in methods else 255)))
            if self._login:
                given = [read.read(read.read(1)[0]) for _ in range(2)] if read.read(1) == b"\1" else []
                client.sendall(bytes((1, given != [*self._login])))
            _, _, _, kind = read.read(4)
            address = read.read(read.read(1)[0] if kind == 3 else {1: 4, 4: 16}[kind])
            self.asked.append((kind, address, int.from_bytes(read.read(2), "big")))
            # It says a name of its own, which may have any length.
            client.sendall(bytes((5, 0, 0, 3, 5)) + b"proxy" + bytes(2))
            with socket.create_connection(self._to) as server:
                threading.Thread(target=_pass_on, args=(server, client), daemon=True).start()
                _pass_on(client, server)

    def close(self) -> None:
        # To close the listener alone leaves the thread that accepts waiting for ever.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)


@pytest.fixture
def server() -> Iterator[APIServer]:
    started = APIServer()
    started.routes["/x"] = {"a": 1}
    yield started
    started.close()


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
@pytest.mark.parametrize(
    ("to", "kind", "address"),
    [(FAR, 3, FAR.encode()), ("10.1.2.3", 1, bytes((10, 1, 2, 3))), ("[fd00::1]", 4, b"\xfd" + bytes(14) + b"\1")],
)
@pytest.mark.parametrize("login", [None, (b"jane", b"p@ss")])
def test_requests_go_through_it(
    server: APIServer,
    tmp_path: Path,
    scheme: str,
    to: str,
    kind: int,
    address: bytes,
    login: Login | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proxy = Socks(server.url.removeprefix("http://"), login)
    user = "jane:p%40ss@" if login else ""
    try:
        url = f"{scheme}://{user}{proxy.address}"
        # A kubeconfig may not say socks5h, as kubectl has it; the environment may.
        if scheme == "socks5h":
            monkeypatch.setenv("HTTP_PROXY", url)
        client = client_of(tmp_path, f"http://{to}:81", proxy=url if scheme == "socks5" else "")
        assert client.get("/x") == client.get("/x") == {"a": 1}
    finally:
        proxy.close()
    assert proxy.asked == [(kind, address, 81)]
    assert not any(name == "Proxy-Authorization" for name, _ in server.asked[0].headers)


def test_the_environment_names_it(server: APIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Socks(server.url.removeprefix("http://"))
    monkeypatch.setenv("HTTP_PROXY", f"socks5://{proxy.address}")
    monkeypatch.setenv("NO_PROXY", "near.example")
    assert client_of(tmp_path, f"http://{FAR}").get("/x") == {"a": 1}
    proxy.close()
    with pytest.raises(ClusterError, match="no connection"):
        client_of(tmp_path, "http://near.example").get("/x")


@pytest.mark.parametrize(
    ("answers", "login", "message"),
    [
        ((b"",), "", "it closes the connection"),
        ((b"HTTP/1.1 400 Bad\r\n\r\n",), "", "its answer is not SOCKS 5"),
        ((b"\5\xff",), "", "it wants a login"),
        ((b"\5\2",), "", "it wants a login"),
        ((b"\5\xff",), "jane:secret-word@", "it wants another kind of login"),
        ((b"\5\2", b"\1\1"), "jane:secret-word@", "it does not accept the login"),
        ((b"\5\0", b"\5\5\0\1"), "", "the connection was refused"),
        ((b"\5\0", b"\5\2\0\1"), "", "its rules do not allow it"),
        ((b"\5\0", b"\5\x63\0\1"), "", "it refuses with code 99"),
        ((b"\5\0", b"\4\0\0\1"), "", "its answer is not SOCKS 5"),
        ((b"\5\0", b"\5\0\0\3"), "", "it closes the connection"),
        ((b"\5\0", b"\5\0\0\3\xffx"), "", "it closes the connection"),
    ],
)
def test_what_it_refuses_is_said(tmp_path: Path, answers: tuple[bytes, ...], login: str, message: str) -> None:
    def serve(sock: socket.socket) -> None:
        for part in answers[:-1]:
            sock.sendall(part)
            sock.recv(65536)
        sock.sendall(answers[-1])

    _fails(tmp_path, serve, login, f"the proxy does not connect: {message}")


def test_it_may_not_take_for_ever(tmp_path: Path) -> None:
    _fails(tmp_path, slowly(b"\5", pause=30), "", "did not answer within 1 s")
    _fails(tmp_path, slowly(b"\5\0\5\0\0\3\xff", endless=b"x", pause=0.2), "", "did not answer within 1 s")


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    proxy = Raw(lambda sock: sock.sendall(b"\5\0"))
    client = client_of(tmp_path, f"http://{'x' * 300}", proxy=f"socks5://{proxy.address}")
    with pytest.raises(ClusterError, match="longer than 255 bytes"):
        client.get("/x")
    proxy.close()


def _fails(folder: Path, serve: Callable[[socket.socket], None], login: str, message: str) -> None:
    proxy = Raw(serve)
    client: Client = client_of(folder, "https://far.example", proxy=f"socks5://{login}{proxy.address}")
    with pytest.raises(ClusterError) as caught:
        client.get("/x")
    assert message in str(caught.value) and "secret-word" not in str(caught.value)
    proxy.close()
