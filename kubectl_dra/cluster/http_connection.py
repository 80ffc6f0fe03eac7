"""One connection to an API server: sockets with deadlines, TLS, and the way through a proxy.

The sockets take the time that is left before every read, so a server that sends a byte now and then gains none.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from enum import Enum
from threading import Thread
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct

from kubectl_dra.cluster.proxies import SOCKS, SOCKS_PORT, through_socks
from kubectl_dra.text import whole_number

_CONNECT_SECONDS: Final = 15.0
_PROXY_HEAD: Final = 1 << 14


class Failure(Enum):
    """Where a request failed."""

    CONNECT = "connect"
    TLS = "tls"
    PROXY = "proxy"
    TIME_OUT = "time-out"
    TOO_LARGE = "too large"
    BROKEN = "broken"


class TransportError(Exception):
    """A request without a usable answer. ``reason`` is a few words, without anything secret."""

    def __init__(self, failure: Failure, reason: str = "") -> None:
        super().__init__(reason)
        self.failure = failure
        self.reason = reason


class Endpoint(Struct, frozen=True):
    """Where requests go. ``prefix`` is the path in front of all paths; ``proxy`` is a URL (http, socks5), or
    empty.

    ``tls`` is None for plain HTTP; ``tls_name`` is the name that the certificate must have.
    ``packed`` says whether answers may come compressed. ``identity`` counts the client certificates that ``tls`` has
    had: a connection with an earlier one is of no use.
    """

    host: str
    port: int
    prefix: str = ""
    tls: ssl.SSLContext | None = None
    tls_name: str = ""
    proxy: str = ""
    packed: bool = True
    identity: Callable[[], int] = lambda: 0


class _Timed:
    """A socket whose reads end at ``deadline``, or after ``silence`` seconds without a byte."""

    deadline: float | None = None
    silence: float | None = None

    def recv_into(self, *arguments: Any) -> int:
        own: Any = self
        own.settimeout(_left(self.deadline, self.silence))
        count: int = super().recv_into(*arguments)  # type: ignore[misc]
        return count


class _PlainSocket(_Timed, socket.socket):
    pass


class _TLSSocket(_Timed, ssl.SSLSocket):
    pass


class ServerConnection(http.client.HTTPConnection):
    """One connection to the server, through its proxy where it has one."""

    def __init__(self, endpoint: Endpoint, proxy: Any) -> None:
        super().__init__(endpoint.host, endpoint.port)
        # The header Host is without it.
        self.default_port = http.client.HTTP_PORT if endpoint.tls is None else http.client.HTTPS_PORT
        self._endpoint = endpoint
        self._proxy = proxy
        self._socks = proxy is not None and proxy.scheme in SOCKS
        self._deadline: float | None = None
        self._silence: float | None = None
        self._identity = endpoint.identity()

    @property
    def outdated(self) -> bool:
        """Whether the client has another certificate by now."""
        return self._identity != self._endpoint.identity()

    def begin(self, deadline: float | None, silence: float | None) -> None:
        """Set the limits for the next request."""
        self._deadline, self._silence = deadline, silence
        if self.sock is not None:
            own: Any = self.sock
            own.deadline, own.silence = deadline, silence
            own.settimeout(_left(deadline, silence))

    def target(self, path: str) -> str:
        """The target in the request line: the whole URL for a plain HTTP proxy."""
        path = f"{self._endpoint.prefix}{path}"
        if not self._reads_requests():
            return path
        host, port = self._endpoint.host, self._endpoint.port
        return f"http://{address_of(host, port).removesuffix(f':{http.client.HTTP_PORT}')}{path}"

    def for_proxy(self) -> Sequence[tuple[str, str]]:
        """Headers that a plain HTTP proxy reads from the request itself."""
        return self._login() if self._reads_requests() else ()

    def _reads_requests(self) -> bool:
        """Whether a proxy reads the requests themselves, because they go unencrypted over HTTP."""
        return self._proxy is not None and not self._socks and self._endpoint.tls is None

    def _login(self) -> Sequence[tuple[str, str]]:
        if not self._proxy.username:
            return ()
        word = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
        return (("Proxy-Authorization", f"Basic {b64encode(word.encode()).decode()}"),)

    def connect(self) -> None:
        """Connect, through the proxy if there is one. Raises TransportError."""
        end, proxy = self._endpoint, self._proxy
        host, port = (end.host, end.port) if proxy is None else (proxy.hostname or "", proxy.port or 80)
        if self._socks and not proxy.port:
            port = SOCKS_PORT
        try:
            sock: Any = _connected(host, port, self._deadline)
            self.sock = sock
            self.begin(self._deadline, self._silence)
            if self._socks:
                login = unquote(proxy.username or ""), unquote(proxy.password or "")
                through_socks(sock, end.host, end.port, *login)
            elif proxy is not None and end.tls is not None:
                self._through_proxy(sock)
        except TimeoutError:
            raise TransportError(Failure.TIME_OUT) from None
        except OSError as error:
            raise TransportError(Failure.CONNECT if proxy is None else Failure.PROXY, words_of(error)) from None
        if end.tls is None:
            return
        end.tls.sslsocket_class = _TLSSocket
        sock.settimeout(_left(self._deadline, _CONNECT_SECONDS))
        try:
            name = end.tls_name or end.host
            # Of a name that is none, Python would leave the socket open.
            if b"\0" in name.encode("idna"):
                raise ValueError("a name with a NUL is in no certificate")
            self.sock = end.tls.wrap_socket(sock, server_hostname=name)
        except TimeoutError:
            raise TransportError(Failure.TIME_OUT) from None
        except (ssl.SSLError, OSError, ValueError) as error:
            raise TransportError(Failure.TLS, words_of(error)) from None

    def _through_proxy(self, sock: Any) -> None:
        """Ask the proxy for a tunnel. Raises OSError, TransportError."""
        address = address_of(self._endpoint.host, self._endpoint.port)
        lines = (f"CONNECT {address} HTTP/1.1", f"Host: {address}", *map(": ".join, self._login()))
        sock.sendall("\r\n".join((*lines, "", "")).encode())
        answer, byte = bytearray(), bytearray(1)
        while not answer.endswith(b"\r\n\r\n"):
            # Byte by byte, so that nothing of the tunnel is taken with it.
            if not sock.recv_into(byte) or len(answer) > _PROXY_HEAD:
                raise TransportError(Failure.PROXY, "its answer is not HTTP")
            answer += byte
        version, _, status = answer.split(b"\r\n", 1)[0].partition(b" ")
        if not version.startswith(b"HTTP/") or not status.startswith(b"2"):
            said = "".join(mark if mark.isprintable() else " " for mark in status.decode("latin-1"))
            raise TransportError(Failure.PROXY, said.strip()[:200] or "its answer is not HTTP")


def _connected(host: str, port: int, deadline: float | None) -> _PlainSocket:
    """A socket to the first address of the host that answers. Raises OSError."""
    last: OSError = OSError("the name has no address")
    for family, kind, protocol, _, address in _addresses(host, port, deadline):
        sock = _PlainSocket(family, kind, protocol)
        try:
            sock.settimeout(_left(deadline, _CONNECT_SECONDS))
            sock.connect(address)
        except OSError as error:
            sock.close()
            last = error
            continue
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
    raise last


def _addresses(host: str, port: int, deadline: float | None) -> Any:
    """The addresses of the name. Looked up in a thread, because a lookup has no time-out. Raises OSError."""
    answers: list[Any] = []

    def look() -> None:
        try:
            answers.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            answers.append(error if isinstance(error, OSError) else OSError("not a host name"))

    if deadline is None or whole_number(host.replace(".", "")) is not None:
        look()
    else:
        thread = Thread(target=look, daemon=True)
        thread.start()
        thread.join(_left(deadline, None))
    if not answers:
        raise TimeoutError
    if isinstance(answers[0], OSError):
        raise answers[0]
    return answers[0]


def _left(deadline: float | None, most: float | None) -> float | None:
    """Seconds for the next step. Raises TimeoutError if none are left."""
    if deadline is None:
        return most
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds if most is None else min(seconds, most)


def address_of(host: str, port: int) -> str:
    """Host and port of a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def words_of(error: BaseException) -> str:
    """A short text for a system or TLS error."""
    text = getattr(error, "verify_message", None) or getattr(error, "strerror", None) or str(error)
    return " ".join(str(text).split()).rstrip(".") or type(error).__name__
