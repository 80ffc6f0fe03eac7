"""Metrics as text, once or over HTTP: Prometheus' library writes them, in its format or in OpenMetrics."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, generate_latest, make_wsgi_app
from prometheus_client.core import Metric

from kubectl_dra.metrics.families import fleet_families
from kubectl_dra.metrics.fleet import FleetCounts

_INDEX: Final = b"kubectl dra metrics: /metrics, /livez, /readyz\n"


class _Once:
    """Collects the metrics of one moment."""

    def __init__(self, fleet: FleetCounts) -> None:
        self._fleet = fleet

    def collect(self) -> Iterator[Metric]:
        return fleet_families(self._fleet)


def text_of(fleet: FleetCounts) -> str:
    """The metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Once(fleet))
    return generate_latest(registry).decode()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _SixServer(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = 30

    def log_message(self, format: str, *args: Any) -> None:
        """A scrape is not worth a line."""


def listen(host: str, port: int, registry: CollectorRegistry, ready: Callable[[], bool]) -> WSGIServer:
    """Serve /metrics, /livez and /readyz in threads of their own. An empty host means all addresses.

    Raises:
        OSError: the address is in use, or none of this machine.
    """
    metrics = make_wsgi_app(registry)

    def application(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            answer: Iterable[bytes] = metrics(environ, respond)
            return answer
        pages = {"/": ("200 OK", _INDEX), "/livez": ("200 OK", b"ok\n")}
        pages["/readyz"] = (
            ("200 OK", b"ok\n") if ready() else ("503 Service Unavailable", b"the cluster is being read\n")
        )
        status, body = pages.get(path, ("404 Not Found", _INDEX))
        respond(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))])
        return [body]

    six = ":" in host or (not host and socket.has_dualstack_ipv6())
    server = make_server(host or ("::" if six else ""), port, application, _SixServer if six else _Server, _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server
