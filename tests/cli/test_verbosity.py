"""``-v=LEVEL``."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kubectl_dra.cli.main import taken_out
from tests.cli.conftest import Dra


@pytest.mark.parametrize(
    ("words", "rest", "level"),
    [
        (["explain", "pod/a"], ["explain", "pod/a"], 0),
        (["explain", "-v", "pod/a"], ["explain", "pod/a"], 1),
        (["-vvv", "explain"], ["explain"], 3),
        (["explain", "-v=6", "-v"], ["explain"], 6),
        (["explain", "-v", "6", "pod/a"], ["explain", "pod/a"], 6),
        (["explain", "--v=9"], ["explain"], 9),
        (["lint", "--", "-v"], ["lint", "--", "-v"], 0),
        (["--version"], ["--version"], 0),
        (["explain", "--verify"], ["explain", "--verify"], 0),
    ],
)
def test_the_flag(words: list[str], rest: list[str], level: int) -> None:
    assert taken_out(words) == (rest, level)


class Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"gitVersion": "v1.36.0"}).encode()
        self.send_response(200 if self.path == "/version" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_requests_and_times_are_said_on_standard_error(dra: Dra) -> None:
    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        quiet = dra("version", "-s", address, "-o", "json")
        some = dra("version", "-s", address, "-o", "json", "-v")
        much = dra("version", "-s", address, "-o", "json", "-v=6")
        after = dra("version", "-s", address, "-o", "json")
    finally:
        server.shutdown()
        server.server_close()
    assert quiet.err == after.err == "" and quiet.out == some.out == much.out
    assert "took " in some.err and "GET" not in some.err
    assert f"-v: GET {address}/version 200 in " in much.err
    assert f"-v: GET {address}/apis/resource.k8s.io 404 in " in much.err
