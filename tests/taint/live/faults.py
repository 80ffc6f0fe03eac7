"""A front of the API server, over TLS of its own, that passes everything on, except where a test wants a fault."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tools.api_server import own_certificate
from tools.controlplane.plane import ControlPlane

LOST = 0
"""The request is carried out, but its answer never arrives."""
HANGS = -1
"""The request is taken, and nothing more happens until the front is closed."""


class Asked(NamedTuple):
    """A request: method and path with query."""

    method: str
    path: str


Fault = Callable[[Asked], int | None]
"""The HTTP status to answer instead of the server, ``LOST``, ``HANGS``, or None for no fault."""


class Front:
    """The front; ``asked`` remembers what was answered by the server itself."""

    def __init__(self, plane: ControlPlane, fault: Fault) -> None:
        config = json.loads(plane.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        target, context = urlsplit(cluster["server"]).netloc, ssl.create_default_context(cadata=authority)
        self.passed: list[Asked] = []
        self.faults: list[tuple[Asked, int]] = []
        self.closed = threading.Event()
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _handle(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = Asked(self.command, self.path)
                wrong = fault(asked)
                if wrong is not None:
                    front.faults.append((asked, wrong))
                if wrong == HANGS:
                    front.closed.wait()
                    self.close_connection = True
                    return
                if wrong:
                    body = json.dumps({"kind": "Status", "message": f"fault {wrong}"}).encode()
                    self._answer(wrong, body, {"Retry-After": "0"})
                    return
                connection = http.client.HTTPSConnection(target, context=context, timeout=30)
                kept = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
                connection.request(self.command, self.path, body or None, kept)
                answer = connection.getresponse()
                front.passed.append(asked)
                if "watch=1" in asked.path and answer.status == 200:
                    if wrong is None:
                        self._stream(answer)
                    self.close_connection = True
                    return
                data = answer.read()
                if wrong == LOST:
                    self.close_connection = True
                    return
                self._answer(answer.status, data, {"Content-Type": answer.headers.get("Content-Type") or ""})

            def _stream(self, answer: http.client.HTTPResponse) -> None:
                """Passes on what comes, as it comes, and ends the connection with it."""
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                with suppress(OSError, http.client.HTTPException):
                    while (data := answer.read1(65536)) and not front.closed.is_set():
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
                    self.wfile.write(b"0\r\n\r\n")
                self.close_connection = True

            def _answer(self, status: int, data: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        # Over plain HTTP nobody says who he is.
        with TemporaryDirectory() as folder:
            tls = own_certificate(Path(folder))
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self._config = config

    def kubeconfig(self, directory: Path) -> str:
        """A kubeconfig for the front."""
        for cluster in self._config["clusters"]:
            cluster["cluster"] = {"server": self.url, "insecure-skip-tls-verify": True}
        path = directory / "front.json"
        path.write_text(json.dumps(self._config))
        return str(path)

    def close(self) -> None:
        """Ends."""
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()


_HOP = frozenset(("host", "connection", "content-length", "accept-encoding"))
