"""A server that answers discovery as a real one does, and all else, or everything, as a test wants."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

Misbehave = Callable[[socket.socket, str], None]
"""Answers one request for a path on an open connection, which is closed afterwards."""

GROUP: Final = "resource.k8s.io"
PLURALS: Final = ("resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates", "devicetaintrules")
DISCOVERY: Final[Mapping[str, Any]] = {
    "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.2"},
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "items": [
            {
                "metadata": {"name": GROUP},
                "versions": [
                    {"version": "v1", "resources": [{"resource": name, "scope": "Cluster"} for name in PLURALS]}
                ],
            }
        ],
    },
    f"/apis/{GROUP}": {"kind": "APIGroup", "versions": [{"groupVersion": f"{GROUP}/v1", "version": "v1"}]},
    f"/apis/{GROUP}/v1": {"resources": [{"name": name} for name in PLURALS]},
}
_PATH: Final = re.compile(rb"[A-Z]+ ([^ ?]*)")


def answer(body: Any, status: str = "200 OK", *headers: str) -> bytes:
    """A whole HTTP answer; a body that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(data)}", *headers]
    return "\r\n".join((*head, "", "")).encode() + data


class HostileServer:
    """Serves ``misbehave`` for every path, or for all but those of discovery; ``heads`` are of all requests."""

    def __init__(self, misbehave: Misbehave, *, discovery: bool, tls: ssl.SSLContext | None = None) -> None:
        self._misbehave = misbehave
        self._discovery = discovery
        self._tls = tls
        self.heads: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http{'' if tls is None else 's'}://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    @property
    def asked(self) -> int:
        """How many requests there were."""
        return len(self.heads)

    def _serve(self, plain: socket.socket) -> None:
        with plain, suppress(OSError):
            # Nobody waits for a test that has ended.
            plain.settimeout(20)
            sock = plain if self._tls is None else self._tls.wrap_socket(plain, server_side=True)
            request = b""
            while b"\r\n\r\n" not in request:
                data = sock.recv(65536)
                if not data:
                    return
                request += data
            self.heads.append(request.partition(b"\r\n\r\n")[0])
            found = _PATH.match(request)
            path = found[1].decode() if found else "/"
            if self._discovery and path in DISCOVERY:
                sock.sendall(answer(DISCOVERY[path], "200 OK", "Connection: close"))
            else:
                self._misbehave(sock, path)

    def close(self) -> None:
        # To close the listener alone leaves the thread that accepts waiting for ever.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
