"""A way to the API server that can be closed: what a client sees while the server is restarted, or a network is cut."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from tools.controlplane.plane import ControlPlane
from tools.live.second_server import ApiServer


class Gate:
    """Passes TCP connections on to an API server while it is open; closing it cuts those that there are.

    As a ``proxy`` it wants to be asked for that (CONNECT).
    """

    def __init__(self, plane: ControlPlane | ApiServer, *, proxy: bool = False) -> None:
        config = json.loads(plane.kubeconfig.read_text())
        self._proxy = proxy
        server = urlsplit(config["clusters"][0]["cluster"]["server"])
        assert server.hostname is not None and server.port is not None
        self._target = (server.hostname, server.port)
        self._config = config
        self._connections: list[socket.socket] = []
        self._listener = self._listen(0)
        self.port = self._listener.getsockname()[1]

    def kubeconfig(self, directory: Path) -> Path:
        """A kubeconfig that goes through the gate."""
        for cluster in self._config["clusters"]:
            if self._proxy:
                cluster["cluster"]["proxy-url"] = f"http://127.0.0.1:{self.port}"
            else:
                cluster["cluster"]["server"] = f"https://127.0.0.1:{self.port}"
        path = directory / "gate.json"
        path.write_text(json.dumps(self._config))
        return path

    def close(self) -> None:
        """The server is gone: connections break, new ones are refused."""
        # Closing alone would leave a waiting accept() to take one more connection.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._connections.clear()

    def open(self) -> None:
        """The server is back at the same address."""
        self._listener = self._listen(self.port)

    def _listen(self, port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(near,), daemon=True).start()

    def _pass_on(self, near: socket.socket) -> None:
        try:
            if self._proxy:
                _asked_to_connect(near)
            far = socket.create_connection(self._target)
        except OSError:
            # The server is away, and so is the way to it.
            near.close()
            return
        self._connections += [near, far]
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _asked_to_connect(near: socket.socket) -> None:
    head = b""
    while not head.endswith(b"\r\n\r\n") and (byte := near.recv(1)):
        head += byte
    if head.startswith(b"CONNECT "):
        near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for side in (source, sink):
        with suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
