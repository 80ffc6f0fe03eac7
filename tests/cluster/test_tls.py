"""TLS without a check of the certificate, as a program of its own: nothing warns besides us."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.errors import ClusterError
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


@pytest.mark.parametrize("name", ["\0", "x\0.example", "a" * 300, " ", "-.", "\x1b[2J"])
def test_a_name_that_no_certificate_has(url: str, name: str, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(json.dumps(kubeconfig(url, {"token": "secret"}, **{"tls-server-name": name})))
    with pytest.raises(ClusterError) as caught:
        ApiServer(ConnectionOptions(kubeconfig=str(config))).client.get("/version")
    assert "\x1b" not in str(caught.value) and "secret" not in str(caught.value)


class Callers(Empty):
    """Keeps connections open, and writes down whose certificate each request came with."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        connection: Any = self.connection
        ((_, name),) = connection.getpeercert()["subject"][0]
        self.seen.append(name)
        super().do_GET()


PLUGIN = """#!{python}
import json, os, sys, time
ran = os.path.exists({ran!r})
open({ran!r}, "w").close()
name = {second!r} if ran else {first!r}
text = dict(clientCertificateData=open(name + ".pem").read(), clientKeyData=open(name + ".key").read())
end = time.time() + (3600 if ran else 32.5)
text["expirationTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
print(json.dumps(dict(apiVersion="client.authentication.k8s.io/v1", kind="ExecCredential", status=text)))
"""


def test_a_certificate_of_a_plugin_is_renewed(tmp_path: Path) -> None:
    """Also where the connection that was made with the first one is still open."""
    context = own_certificate(tmp_path)
    context.verify_mode = ssl.CERT_REQUIRED
    for name in ("first", "second"):
        files = ["-keyout", str(tmp_path / f"{name}.key"), "-out", str(tmp_path / f"{name}.pem")]
        made = ["-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", f"/CN={name}"]
        subprocess.run(["openssl", "req", *made, "-days", "1", *files], check=True, capture_output=True)
        context.load_verify_locations(tmp_path / f"{name}.pem")
    plugin = tmp_path / "plugin"
    names = {name: str(tmp_path / name) for name in ("first", "second", "ran")}
    plugin.write_text(PLUGIN.format(python=sys.executable, **names))
    plugin.chmod(0o755)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Callers)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    user = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    config = tmp_path / "config"
    url = f"https://127.0.0.1:{server.server_port}"
    unchecked: dict[str, Any] = {"insecure-skip-tls-verify": True}
    config.write_text(json.dumps(kubeconfig(url, {"exec": user}, **unchecked)))
    client = ApiServer(ConnectionOptions(kubeconfig=str(config))).client
    began = time.monotonic()
    client.get("/version")
    assert Callers.seen == ["first"] or time.monotonic() - began > 1
    # It is taken for expired half a minute before that.
    time.sleep(3)
    client.get("/version")
    client.get("/version")
    server.shutdown()
    server.server_close()
    assert Callers.seen[1:] == ["second", "second"]


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
