"""A small API server on a real socket, which answers what a test tells it and remembers what was asked."""

from __future__ import annotations

import gzip
import json
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

GROUP = "resource.k8s.io"


class Answer(NamedTuple):
    """One HTTP answer; ``body`` is sent as JSON, or as it is when it is bytes. ``delay`` is in seconds."""

    status: int
    body: Any
    headers: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0


class Asked(NamedTuple):
    """One request that arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: list[tuple[str, str]]
    body: bytes = b""


Route = Callable[[Asked], Answer] | Answer | dict[str, Any] | list[Any]


def status(code: int, reason: str, message: str) -> Answer:
    """An error as the API server sends it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    return Answer(code, {**body, "code": code})


def forbidden(resource: str, scope: str = "at the cluster scope") -> Answer:
    return status(403, "Forbidden", f'{resource} is forbidden: User "jane" cannot list resource {scope}')


class APIServer:
    """Serves ``routes``: path to an answer, an object, a list of items, or a function of the request."""

    def __init__(self, date: str = "", tls: ssl.SSLContext | None = None) -> None:
        """``date``: what it takes the time to be, as HTTP writes it; else it is right. ``tls``: its certificate."""
        self.routes: dict[str, Route] = {}
        self.asked: list[Asked] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _handle(self) -> None:
                parts = urlsplit(self.path)
                sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = Asked(self.command, parts.path, dict(parse_qsl(parts.query)), self.headers.items(), sent)
                owner.asked.append(asked)
                answer = owner.answer(asked)
                time.sleep(answer.delay)
                body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                zipped = len(body) > 1000 and "gzip" in self.headers.get("Accept-Encoding", "")
                body = gzip.compress(body) if zipped else body
                self.send_response(answer.status)
                for name, value in (*answer.headers, ("Content-Length", str(len(body)))):
                    self.send_header(name, value)
                if zipped:
                    self.send_header("Content-Encoding", "gzip")
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _handle

            def date_time_string(self, timestamp: float | None = None) -> str:
                return date or super().date_time_string(timestamp)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            # As many callers at a time as a real one: with five, the next ones ask again after a second.
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                # A client that gave up waiting.
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._secure = tls is not None
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http{'s' if self._secure else ''}://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, asked: Asked) -> Answer:
        route = self.routes.get(asked.path)
        if route is None:
            return status(404, "NotFound", "the server could not find the requested resource")
        if callable(route):
            return route(asked)
        if isinstance(route, Answer):
            return route
        if isinstance(route, list):
            return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": route})
        return Answer(200, route)

    def serve_group(self, **kinds: tuple[str, ...]) -> None:
        """Discovery of the group: version to its resources, as ``v1=("resourceclaims",)``."""
        self.routes[f"/apis/{GROUP}"] = {
            "kind": "APIGroup",
            "versions": [{"groupVersion": f"{GROUP}/{version}", "version": version} for version in kinds],
        }
        for version, plurals in kinds.items():
            names = [*plurals, *(f"{plural}/status" for plural in plurals)]
            self.routes[f"/apis/{GROUP}/{version}"] = {"resources": [{"name": name} for name in names]}

    def kubeconfig(self, directory: Path, **user: Any) -> str:
        """Writes a kubeconfig for this server, context ``test`` with namespace ``team``; gives its path."""
        path = directory / "kubeconfig"
        unchecked: dict[str, Any] = {"insecure-skip-tls-verify": True} if self._secure else {}
        path.write_text(json.dumps(kubeconfig(self.url, user or {"token": "secret"}, **unchecked)))
        return str(path)

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]


def kubeconfig(server: str, user: Any, name: str = "test", **cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
    }


def own_certificate(directory: Path) -> ssl.SSLContext:
    """The TLS of a server whose certificate nobody else signed."""
    pair = [str(directory / name) for name in ("key.pem", "certificate.pem")]
    made = ["-nodes", "-subj", "/CN=somebody else", "-days", "1", "-keyout", pair[0], "-out", pair[1]]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    subprocess.run(["openssl", "req", "-x509", *curve, *made], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair[1], pair[0])
    return context


def paged(kind: str, items: list[Any], size: int) -> Callable[[Asked], Answer]:
    """A list in pages of ``size``, as the API server does it for ``limit`` and ``continue``."""

    def answer(asked: Asked) -> Answer:
        start = int(asked.query.get("continue", "0"))
        part, end = items[start : start + size], start + size
        meta: dict[str, Any] = {"resourceVersion": "7"}
        if end < len(items):
            meta |= {"continue": str(end), "remainingItemCount": len(items) - end}
        return Answer(200, {"kind": f"{kind}List", "apiVersion": "v1", "metadata": meta, "items": part})

    return answer
