"""A way to the API server that can be cut, go away, or lead nowhere: bytes are passed on as they come."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Final

_CHUNK: Final = 1 << 16


class Front:
    """Listens on a port of this machine and passes every connection on to a server."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.silent = False
        """Whether what comes in is taken and never answered."""
        self._listener: socket.socket | None = None
        self.port = 0
        self.come_back()

    def come_back(self) -> None:
        """Listen, on the same port as before."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def go_away(self) -> None:
        """Refuse connections, and cut those that there are."""
        listener, self._listener = self._listener, None
        if listener is not None:
            # Closing alone would leave the thread in accept, and the port open.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def cut(self) -> None:
        """End all connections, as a load balancer does that restarts."""
        with self._lock:
            ends, self._open = self._open, set()
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client = listener.accept()[0]
                server = socket.create_connection(self._server)
            except OSError:
                return
            with self._lock:
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK):
                if not self.silent:
                    target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)
