"""TLS without a check of the certificate, as a program of its own: nothing warns besides us."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tools.api_server import kubeconfig, own_certificate
from tools.hostile_server import DISCOVERY


class Empty(BaseHTTPRequestHandler):
    """A cluster without objects."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        body = json.dumps(DISCOVERY.get(path, {"kind": "List", "metadata": {}, "items": []})).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Empty)
    server.socket = own_certificate(tmp_path).wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("how", ["flag", "kubeconfig"])
def test_an_unchecked_certificate(url: str, how: str, tmp_path: Path) -> None:
    more: dict[str, Any] = {"insecure-skip-tls-verify": True} if how == "kubeconfig" else {}
    config = tmp_path / "config"
    config.write_text(json.dumps(kubeconfig(url, {"token": "secret"}, **more)))
    words = ["devices", "--kubeconfig", str(config), *(["--insecure-skip-tls-verify"] if how == "flag" else [])]
    command = [sys.executable, "-W", "always", "-m", "kubectl_dra", *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (1, "No device is published.\n")
    assert ran.stderr == ""
