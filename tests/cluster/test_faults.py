"""Servers, proxies, plugins and tokens that misbehave: a request ends in time, in little memory, with one sentence."""

from __future__ import annotations

import gzip
import json
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.cluster import client as client_module
from kubectl_dra.cluster import transport
from kubectl_dra.cluster.client import Client, wait_before
from kubectl_dra.cluster.connection import ConnectionOptions, connect
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.snapshot import KINDS
from kubectl_dra.errors import ClusterError
from tools.api_server import GROUP, Answer, APIServer, Asked, kubeconfig, own_certificate, status

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SECRET = "eyJhbGciOiJSUzI1NiIsImtpZCI6IlNFQ1JFVCJ9"


class Raw:
    """A server that does whatever a test does with the socket, once for each connection."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self._serve = serve
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._one, args=(sock,), daemon=True).start()

    def _one(self, sock: socket.socket) -> None:
        with sock:
            try:
                sock.recv(65536)
                self._serve(sock)
            except OSError:
                pass

    def close(self) -> None:
        # To close the listener alone leaves the thread that accepts waiting for ever.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def raw(request: pytest.FixtureRequest) -> Iterator[Callable[[Callable[[socket.socket], None]], Raw]]:
    made: list[Raw] = []

    def make(serve: Callable[[socket.socket], None]) -> Raw:
        made.append(Raw(serve))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def server() -> Iterator[APIServer]:
    started = APIServer()
    yield started
    started.close()


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[APIServer]:
    """Credentials are only sent over TLS."""
    started = APIServer(tls=own_certificate(tmp_path))
    yield started
    started.close()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def client_of(directory: Path, server: str, timeout: float | None = 1.0, proxy: str = "") -> Client:
    cluster = {"proxy-url": proxy} if proxy else {}
    config = directory / "config"
    config.write_text(json.dumps(kubeconfig(server, {"token": SECRET}, **cluster)))
    return ApiServer(ConnectionOptions(kubeconfig=str(config), request_timeout=timeout)).client


def slowly(*parts: bytes, pause: float = 0.05, endless: bytes = b"") -> Callable[[socket.socket], None]:
    def serve(sock: socket.socket) -> None:
        for part in parts:
            sock.sendall(part)
            time.sleep(pause)
        while endless:
            sock.sendall(endless)
            time.sleep(pause)

    return serve


@pytest.mark.parametrize(
    ("serve", "message"),
    [
        (slowly(b"", pause=30), "did not answer within 1 s"),
        (slowly(HEAD + b"Content-Length: 99999\r\n\r\n{", endless=b" "), "did not answer within 1 s"),
        (slowly(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", endless=b"1\r\n{\r\n"), "did not answer within 1 s"),
        (slowly(b"HTTP/1.1 200 OK\r\n", endless=b"X"), "did not answer within 1 s"),
        (slowly(HEAD, endless=b"A: b\r\n", pause=0.2), "did not answer within 1 s"),
        (slowly(HEAD, endless=b"A" * 4096, pause=0), "a header is too long"),
        (slowly(HEAD, endless=b"A: b\r\n", pause=0), "the connection failed: "),
        (slowly(HEAD + b"Content-Length: 99\r\n\r\n{"), "the answer breaks off"),
        (slowly(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"), "the answer breaks off"),
        (slowly(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"), "the connection failed: "),
        (slowly(HEAD + b"Content-Encoding: br\r\nContent-Length: 3\r\n\r\nabc"), "unrequested encoding"),
        (slowly(b"SSH-2.0-OpenSSH\r\n"), "the answer is not HTTP"),
        (slowly(), "the connection failed: "),
        (slowly(b"HTTP/1.1 -1 x\r\n\r\n"), "the answer is not HTTP"),
    ],
)
def test_a_request_ends_in_time(
    raw: Callable[..., Raw], tmp_path: Path, serve: Callable[[socket.socket], None], message: str
) -> None:
    client = client_of(tmp_path, f"http://{raw(serve).address}")
    began = time.monotonic()
    with pytest.raises(ClusterError) as caught:
        client.get("/x")
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert time.monotonic() - began < 5


def test_no_limit_means_none(raw: Callable[..., Raw], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubectl_dra.cluster.connection._DEFAULT_SECONDS", 0.3)
    late = slowly(b"", HEAD + b"Content-Length: 2\r\n\r\n{}", pause=0.8)
    assert client_of(tmp_path, f"http://{raw(late).address}", 0.0).get("/x") == {}
    with pytest.raises(ClusterError, match=r"within 0.3 s"):
        client_of(tmp_path, f"http://{raw(late).address}", None).get("/x")


def test_a_handshake_that_does_not_end(raw: Callable[..., Raw], tmp_path: Path) -> None:
    client = client_of(tmp_path, f"https://{raw(slowly(b'', pause=30)).address}")
    with pytest.raises(ClusterError, match="did not answer within 1 s"):
        client.get("/x")


def test_retries_and_waits_are_part_of_the_time(server: APIServer, tmp_path: Path) -> None:
    server.routes["/x"] = Answer(429, {}, (("Retry-After", "0.4"),), delay=0.2)
    client = client_of(tmp_path, server.url)
    began = time.monotonic()
    with pytest.raises(ClusterError, match="429"):
        client.get("/x")
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3", 3), ("1e9", 10), ("inf", 10), ("-inf", 0), ("-5", 0), ("nan", 1), ("soon", 1), ("", 1), ("0x10", 1)],
)
def test_retry_after(text: str, seconds: float) -> None:
    headers = Message()
    headers["Retry-After"] = text
    assert wait_before(transport.Reply(429, "", headers, b""), 2) == seconds


def test_an_answer_has_a_bound(server: APIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LARGEST_ANSWER", 1 << 20)
    bomb = gzip.compress(b'{"items": [' + b" " * (5 << 20) + b"]}")
    server.routes["/bomb"] = Answer(200, bomb, (("Content-Encoding", "gzip"),))
    server.routes["/long"] = Answer(200, b" " * (2 << 20))
    client = client_of(tmp_path, server.url)
    for path in ("/bomb", "/long"):
        with pytest.raises(ClusterError, match="the answer has more than"):
            client.get(path)


@pytest.mark.parametrize("tokens", [("same", "same"), ("a", "b")])
def test_a_list_has_an_end(server: APIServer, tmp_path: Path, tokens: tuple[str, str]) -> None:
    count = iter(range(1000))
    server.routes["/x"] = lambda asked: Answer(200, {"metadata": {"continue": tokens[next(count) % 2]}, "items": []})
    with pytest.raises(ClusterError, match="the list has no end"):
        client_of(tmp_path, server.url).list_items("/x")
    assert len(server.asked) < 5


def test_a_list_of_too_many_pages(server: APIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MOST_PAGES", 7)
    count = iter(range(1000))
    server.routes["/x"] = lambda asked: Answer(200, {"metadata": {"continue": str(next(count))}, "items": []})
    with pytest.raises(ClusterError, match="the list has no end"):
        client_of(tmp_path, server.url).list_items("/x")
    assert len(server.asked) == 8


def test_connections_are_kept(raw: Callable[..., Raw], tmp_path: Path) -> None:
    def serve(sock: socket.socket) -> None:
        for _ in range(3):
            sock.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}")
            sock.recv(65536)

    server = raw(serve)
    client = client_of(tmp_path, f"http://{server.address}")
    for _ in range(3):
        assert client.get("/x") == {}
    assert server.connections == 1
    # The fourth request finds the connection closed, and gets a new one.
    assert client.get("/x") == {}
    assert server.connections == 2


def test_a_server_that_closes_each_connection(raw: Callable[..., Raw], tmp_path: Path) -> None:
    server = raw(slowly(HEAD + b"Content-Length: 2\r\n\r\n{}", pause=0))
    client = client_of(tmp_path, f"http://{server.address}")
    for _ in range(3):
        assert client.get("/x") == {}
    assert server.connections == 3


def test_discovery_in_one_request(server: APIServer, tmp_path: Path) -> None:
    resources = [{"resource": name, "scope": "Cluster"} for name in ("resourceslices", "deviceclasses")]
    groups = [
        {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [{"resource": "x"}]}]},
        {"metadata": {"name": GROUP}, "versions": [{"version": "v1", "resources": resources, "freshness": "Current"}]},
    ]
    server.routes["/apis"] = {"kind": "APIGroupDiscoveryList", "items": groups}
    cluster = ApiServer(ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path)))
    assert cluster.dra_versions() == {"ResourceSlice": "v1", "DeviceClass": "v1"}
    assert server.paths() == ["/apis"]
    assert any("as=APIGroupDiscoveryList" in value for name, value in server.asked[0].headers if name == "Accept")


@pytest.mark.parametrize("path", ["/apis", f"/apis/{GROUP}", f"/apis/{GROUP}/v1"])
@pytest.mark.parametrize("answer", [{"versions": 5, "items": 5, "resources": "x"}, {"resources": [1], "items": [1]}])
def test_discovery_that_makes_no_sense(server: APIServer, tmp_path: Path, path: str, answer: Any) -> None:
    server.serve_group(v1=("resourceslices",))
    server.routes[path] = answer
    cluster = ApiServer(ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path)))
    try:
        cluster.dra_versions()
    except ClusterError as error:
        assert "discovery cannot be understood" in str(error)


def test_a_status_is_a_field_of_errors(server: APIServer, tmp_path: Path) -> None:
    client = client_of(tmp_path, server.url)
    for code in (401, 403, 404, 409, 500):
        server.routes["/x"] = status(code, "No", "no")
        with pytest.raises(ClusterError) as caught:
            client.get("/x")
        assert caught.value.status == code
    assert ClusterError("no connection").status == 0


@pytest.mark.parametrize("end", ["\n", "\r\n", " \n\n", ""])
def test_a_token_may_end_in_a_newline(secure: APIServer, tmp_path: Path, end: str) -> None:
    secure.routes["/x"] = {}
    (tmp_path / "token").write_text(SECRET + end)
    for user in ({"token": SECRET + end}, {"tokenFile": "token"}):
        config = secure.kubeconfig(tmp_path, **user)
        ApiServer(ConnectionOptions(kubeconfig=config)).client.get("/x")
        assert ("Authorization", f"Bearer {SECRET}") in secure.asked[-1].headers


@pytest.mark.parametrize("inside", ["\n", "\x00", " ", "\u2028", "é"])
def test_a_token_is_never_shown(secure: APIServer, tmp_path: Path, inside: str) -> None:
    token = f"{SECRET}{inside}{SECRET}"
    with pytest.raises(ClusterError, match="the token has characters") as caught:
        connect(ConnectionOptions(kubeconfig=secure.kubeconfig(tmp_path, token=token)))
    assert SECRET not in str(caught.value)


def test_a_password_in_the_address_is_used_and_not_shown(secure: APIServer, tmp_path: Path) -> None:
    secure.routes["/x"] = status(404, "NotFound", "nothing")
    config = tmp_path / "config"
    address = secure.url.replace("://", f"://jane:{SECRET}@") + f"/?token={SECRET}"
    unchecked: dict[str, Any] = {"insecure-skip-tls-verify": True}
    config.write_text(json.dumps(kubeconfig(address, {}, **unchecked)))
    cluster = ApiServer(ConnectionOptions(kubeconfig=str(config)))
    with pytest.raises(ClusterError) as caught:
        cluster.client.get("/x")
    assert SECRET not in str(caught.value) and SECRET not in cluster.server
    assert any(name == "Authorization" and value.startswith("Basic ") for name, value in secure.asked[-1].headers)


def _plugin(directory: Path, script: str) -> dict[str, Any]:
    path = directory / "plugin"
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}
    return {"exec": plugin}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("time.sleep(60)", "it did not answer within 2 s"),
        ("sys.stdout.close(); time.sleep(60)", "it did not answer within 2 s"),
        ("while True: sys.stdout.write('y' * 65536)", "it writes more than 1 MB"),
        ("while True: sys.stderr.write('y' * 65536)", "it writes more than 1 MB"),
        (f"sys.stderr.write('bad \\x1b[31m {SECRET}'); sys.exit(3)", "process returned 3. bad [31m …"),
        ("print('[]')", "malformed response"),
        ('print(\'{"kind": "ExecCredential", "status": 5}\')', "malformed response"),
    ],
)
def test_a_plugin_has_a_time_and_a_size(tmp_path: Path, script: str, message: str) -> None:
    config = tmp_path / "config"
    config.write_text(json.dumps(kubeconfig("https://one", _plugin(tmp_path, script))))
    began = time.monotonic()
    with pytest.raises(ClusterError) as caught:
        connect(ConnectionOptions(kubeconfig=str(config), request_timeout=2.0))
    assert message in str(caught.value) and SECRET not in str(caught.value)
    assert time.monotonic() - began < 10


def test_a_plugin_is_run_again_when_its_token_expires(secure: APIServer, tmp_path: Path) -> None:
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    user = _plugin(
        tmp_path,
        "import json, os; n = os.path.exists('ran'); open('ran', 'w').close()\n"
        "year = 2090 if n else 2020\n"
        "status = {'token': f'token{int(n)}', 'expirationTimestamp': f'{year}-01-01T00:00:00Z'}\n"
        f"print(json.dumps({{**{credential!r}, 'status': status}}))",
    )
    (tmp_path / "plugin").write_text((tmp_path / "plugin").read_text().replace("'ran'", repr(str(tmp_path / "ran"))))
    secure.routes["/x"] = {}
    client = ApiServer(ConnectionOptions(kubeconfig=secure.kubeconfig(tmp_path, **user))).client
    client.get("/x")
    client.get("/x")
    tokens = [value for asked in secure.asked for name, value in asked.headers if name == "Authorization"]
    assert tokens == ["Bearer token1", "Bearer token1"]


@pytest.mark.parametrize(
    ("server", "user", "message"),
    [
        (5, {}, "Expected `str`, got `int`"),
        ("ftp://x", {}, "is not a URL"),
        ("https://", {}, "is not a URL"),
        ("http://x:port", {}, "not a URL"),
        ("https://x", {"exec": "x"}, r"got `str` - at `\$.exec`"),
    ],
)
def test_entries_that_are_none(tmp_path: Path, server: Any, user: Any, message: str) -> None:
    config = tmp_path / "config"
    config.write_text(json.dumps(kubeconfig(server, user)))
    with pytest.raises(ClusterError, match=message):
        connect(ConnectionOptions(kubeconfig=str(config)))


def test_a_proxy_of_plain_http(server: APIServer, tmp_path: Path) -> None:
    client = client_of(tmp_path, "http://far.example:81/prefix", proxy=server.url.replace("//", "//a:b@"))
    server.routes["/prefix/x"] = {}
    assert client.get("/x") == {}
    assert ("Host", "far.example:81") in server.asked[0].headers
    assert ("Proxy-Authorization", "Basic YTpi") in server.asked[0].headers


@pytest.mark.parametrize(
    ("serve", "message"),
    [
        (slowly(b"HTTP/1.1 407 Proxy \x1b[31m Authentication\r\n\r\n"), "the proxy does not connect: 407 Proxy"),
        (slowly(b"nonsense\r\n\r\n"), "its answer is not HTTP"),
        (slowly(), "its answer is not HTTP"),
        (slowly(b"HTTP/1.1 200 OK\r\n", endless=b"A"), "did not answer within 1 s"),
        (slowly(endless=b"A" * 4096, pause=0), "its answer is not HTTP"),
    ],
)
def test_a_proxy_that_fails(
    raw: Callable[..., Raw], tmp_path: Path, serve: Callable[[socket.socket], None], message: str
) -> None:
    client = client_of(tmp_path, "https://far.example", proxy=f"http://{raw(serve).address}")
    with pytest.raises(ClusterError) as caught:
        client.get("/x")
    assert message in str(caught.value) and "\x1b" not in str(caught.value)


@pytest.mark.parametrize("proxy", ["socks4://x:1", "https://x:1", "http://x:port", "http://"])
def test_a_proxy_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    with pytest.raises(ClusterError, match="the proxy of the kubeconfig is not of the form"):
        client_of(tmp_path, "https://far.example", proxy=proxy)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(ClusterError, match="the proxy of the environment is not of the form"):
        client_of(tmp_path, "https://far.example")
    for none in ("example", "*", "far.example:443", "10.0.0.0/8,.example"):
        monkeypatch.setenv("NO_PROXY", none)
        client_of(tmp_path, "https://far.example")
    client_of(tmp_path, "https://127.0.0.1:6443")


def test_what_is_asked_is_told(server: APIServer, tmp_path: Path) -> None:
    sent: list[transport.Sent] = []
    transport.observers.append(sent.append)
    try:
        server.routes["/x"] = {"a": 1}
        client_of(tmp_path, server.url).get("/x", {"limit": "1"})
    finally:
        transport.observers.remove(sent.append)
    assert [(one.method, one.url, one.status, one.size) for one in sent] == [("GET", f"{server.url}/x?limit=1", 200, 8)]


def test_requests_in_a_row(server: APIServer, tmp_path: Path) -> None:
    """Every answer takes a moment: reading a small cluster takes few of them."""
    server.serve_group(v1=("resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates"))
    resources = [
        {"resource": name}
        for name in ("resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates", "devicetaintrules")
    ]
    groups = [{"metadata": {"name": GROUP}, "versions": [{"version": "v1", "resources": resources}]}]
    server.routes["/apis"] = {"kind": "APIGroupDiscoveryList", "items": groups}
    moment = 0.3

    def listed(asked: Asked) -> Answer:
        return Answer(200, {"items": []}, delay=moment)

    for one in resources:
        server.routes[f"/apis/{GROUP}/v1/{one['resource']}"] = listed
    for name in ("pods", "nodes", "namespaces", "resourcequotas", "events"):
        server.routes[f"/api/v1/{name}"] = listed
    server.routes["/version"] = Answer(200, {"gitVersion": "v1.36.4"}, delay=moment)
    cluster = ApiServer(ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path)))
    began = time.monotonic()
    assert cluster.read_snapshot().unread(KINDS) == ()
    assert time.monotonic() - began < 4.9 * moment


def test_bytes_that_are_no_text_are_replaced(tmp_path: Path, server: APIServer) -> None:
    item = b'{"metadata": {"name": "n", "annotations": {"a": "\xff\xc3"}}}'
    server.routes["/api/v1/nodes"] = Answer(200, b'{"kind": "NodeList", "apiVersion": "v1", "items": [%s]}' % item)
    found = client_of(tmp_path, server.url).list_items("/api/v1/nodes")
    assert found[0]["metadata"]["annotations"] == {"a": "\ufffd\ufffd"}


def _blanks(size: int) -> bytes:
    data = gzip.compress(b'{"items": [' + b" " * size + b"]}")
    return HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data) + data


def test_what_gzip_may_become_is_limited(tmp_path: Path, raw: Callable[..., Raw]) -> None:
    packed = _blanks(200 << 20)
    hostile = raw(lambda sock: sock.sendall(packed))
    with pytest.raises(ClusterError, match="the answer unpacks to more than 100 times its size"):
        client_of(tmp_path, f"http://{hostile.address}", 30).get("/x")


def test_all_answers_of_a_server_have_one_budget(
    tmp_path: Path, raw: Callable[..., Raw], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four answers at a time, none of which is too large by itself."""
    monkeypatch.setattr(transport, "LARGEST_TOGETHER", 4 << 20)
    together = threading.Barrier(4)

    def serve(sock: socket.socket) -> None:
        sock.sendall(HEAD + b"Content-Length: 3000000\r\n\r\n" + b" " * 1_900_000)
        together.wait(20)
        sock.sendall(b" " * 1_099_998 + b"{}")

    hostile = raw(serve)
    client = client_of(tmp_path, f"http://{hostile.address}", 30)
    errors: list[str] = []

    def ask() -> None:
        try:
            client.get("/x")
        except ClusterError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any("its answers have more than 4 MB together" in error for error in errors)
    # What was lost is given back.
    alone = raw(lambda sock: sock.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}"))
    assert client_of(tmp_path, f"http://{alone.address}", 30).get("/x") == {}
