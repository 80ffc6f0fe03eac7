"""A way to the API server that a test can close: what a client sees while the server is restarted."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from tools.controlplane.plane import ControlPlane


class Gate:
    """Passes TCP connections on to a control plane while it is open; closing it cuts those that there are."""

    def __init__(self, plane: ControlPlane) -> None:
        config = json.loads(plane.kubeconfig.read_text())
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
        listener.listen()
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._connections += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for side in (source, sink):
        with suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
