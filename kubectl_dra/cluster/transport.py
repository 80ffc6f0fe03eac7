"""HTTP to one API server over kept-alive connections: deadlines hold for a whole request, answers have a bound.

The sockets here take the time that is left before every read, so a server that sends a byte now and then gains none.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from email.message import Message
from enum import Enum
from select import select
from threading import Thread
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from msgspec import Struct

LARGEST_ANSWER: Final = 512 * 2**20
"""Bytes of one decoded answer: a page of 500 objects is a few megabytes."""
_CONNECT_SECONDS: Final = 15.0
_STEP: Final = 1 << 18
_LONGEST_EVENT: Final = 64 * 2**20
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


class Sent(NamedTuple):
    """A request that was answered; ``size`` counts the bytes of the decoded answer, ``seconds`` is all it took."""

    method: str
    url: str
    status: int
    size: int
    seconds: float


observers: Final[list[Callable[[Sent], None]]] = []
"""They are told of every answer. The command line adds itself for ``-v``."""


class Reply(NamedTuple):
    """An answer, read to its end and unpacked."""

    status: int
    reason: str
    headers: Message
    data: bytes


class Endpoint(Struct, frozen=True):
    """Where requests go. ``prefix`` is the path in front of all paths; ``proxy`` is an http:// URL, or empty.

    ``tls`` is None for plain HTTP; ``tls_name`` is the name that the certificate must have.
    ``packed`` says whether answers may come compressed.
    """

    host: str
    port: int
    prefix: str = ""
    tls: ssl.SSLContext | None = None
    tls_name: str = ""
    proxy: str = ""
    packed: bool = True


class Transport:
    """Sends requests to an endpoint; may be used by several threads at once."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._idle: list[_Connection] = []
        scheme = "http" if endpoint.tls is None else "https"
        self._proxy = urlsplit(endpoint.proxy) if endpoint.proxy else None
        self._url = f"{scheme}://{_address(endpoint.host, endpoint.port)}{endpoint.prefix}"

    def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None = None,
        deadline: float | None = None,
    ) -> Reply:
        """Sends a request and reads the whole answer until ``deadline`` (of ``time.monotonic``; None is none).

        Raises:
            TransportError: no connection, no answer in time, one that breaks off, or one above LARGEST_ANSWER.
        """
        began = time.monotonic()
        connection, response = self._open(method, target, headers, body, deadline, None)
        try:
            data = _body(response)
        except BaseException as error:
            connection.close()
            raise _told(error) from None
        reply = Reply(response.status, response.reason, response.headers, data)
        if connection.sock is not None:
            self._idle.append(connection)
        _tell(Sent(method, self._url + target, reply.status, len(data), time.monotonic() - began))
        return reply

    def stream(self, target: str, headers: Sequence[tuple[str, str]], silence: float) -> Stream:
        """Opens an answer that comes bit by bit; ``silence`` seconds without a byte end it. Raises as ``request``."""
        began = time.monotonic()
        connection, response = self._open("GET", target, headers, None, None, silence)
        _tell(Sent("GET", self._url + target, response.status, 0, time.monotonic() - began))
        return Stream(connection, response)

    def _open(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        deadline: float | None,
        silence: float | None,
    ) -> tuple[_Connection, http.client.HTTPResponse]:
        while True:
            connection = self._kept()
            fresh = connection is None
            try:
                if connection is None:
                    connection = _Connection(self._endpoint, self._proxy)
                    connection.begin(deadline, silence)
                    connection.connect()
                connection.begin(deadline, silence)
                connection.putrequest(method, connection.target(target), skip_accept_encoding=True)
                for name, value in (*headers, *connection.for_proxy()):
                    connection.putheader(name, value)
                if body is not None:
                    connection.putheader("Content-Length", str(len(body)))
                connection.endheaders(body)
                return connection, connection.getresponse()
            except BaseException as error:
                if connection is not None:
                    connection.close()
                if not fresh and method == "GET" and isinstance(error, ConnectionError | http.client.BadStatusLine):
                    # The server closed a connection that nobody used for a while.
                    continue
                raise _told(error) from None

    def _kept(self) -> _Connection | None:
        """A connection that the server has not closed, if there is one."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            with suppress(OSError, ValueError):
                if connection.sock is not None and not select([connection.sock], (), (), 0)[0]:
                    return connection
            connection.close()


class Stream:
    """An answer that is read line by line."""

    def __init__(self, connection: _Connection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._socket: Any = connection.sock
        self._response = response
        self.status: Final = response.status
        self.reason: Final = response.reason

    def whole(self) -> Reply:
        """The whole answer, for one that refuses. Raises TransportError."""
        try:
            return Reply(self.status, self.reason, self._response.headers, _body(self._response))
        except BaseException as error:
            raise _told(error) from None

    def lines(self) -> Iterator[bytes]:
        """The lines as they come, until the answer ends in whatever way."""
        rest = b""
        # Reading raises AttributeError or ValueError too when another thread closes the connection.
        with suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            while data := self._response.read1(1 << 16):
                *lines, rest = (rest + data).split(b"\n")
                yield from lines
                if len(rest) > _LONGEST_EVENT:
                    return

    def shutdown(self) -> None:
        """Ends it from another thread."""
        with suppress(OSError, AttributeError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Gives the connection up."""
        self._response.close()
        self._connection.close()


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


class _Connection(http.client.HTTPConnection):
    """One connection to the server, through its proxy where it has one."""

    def __init__(self, endpoint: Endpoint, proxy: Any) -> None:
        super().__init__(endpoint.host, endpoint.port)
        self._endpoint = endpoint
        self._proxy = proxy
        self._deadline: float | None = None
        self._silence: float | None = None

    def begin(self, deadline: float | None, silence: float | None) -> None:
        """Sets the limits of what comes now."""
        self._deadline, self._silence = deadline, silence
        if self.sock is not None:
            own: Any = self.sock
            own.deadline, own.silence = deadline, silence
            own.settimeout(_left(deadline, silence))

    def target(self, path: str) -> str:
        """What stands in the request line: for a proxy of plain HTTP the whole URL."""
        path = f"{self._endpoint.prefix}{path}"
        if self._proxy is None or self._endpoint.tls is not None:
            return path
        return f"http://{_address(self._endpoint.host, self._endpoint.port)}{path}"

    def for_proxy(self) -> Sequence[tuple[str, str]]:
        """Headers that a proxy of plain HTTP reads from the request itself."""
        return self._login() if self._proxy is not None and self._endpoint.tls is None else ()

    def _login(self) -> Sequence[tuple[str, str]]:
        if not self._proxy.username:
            return ()
        word = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
        return (("Proxy-Authorization", f"Basic {b64encode(word.encode()).decode()}"),)

    def connect(self) -> None:
        """Raises TransportError."""
        end, proxy = self._endpoint, self._proxy
        host, port = (end.host, end.port) if proxy is None else (proxy.hostname or "", proxy.port or 80)
        try:
            sock: Any = _connected(host, port, self._deadline)
            self.sock = sock
            self.begin(self._deadline, self._silence)
            if proxy is not None and end.tls is not None:
                self._through_proxy(sock)
        except TimeoutError:
            raise TransportError(Failure.TIME_OUT) from None
        except OSError as error:
            raise TransportError(Failure.CONNECT if proxy is None else Failure.PROXY, _words(error)) from None
        if end.tls is None:
            return
        end.tls.sslsocket_class = _TLSSocket
        sock.settimeout(_left(self._deadline, _CONNECT_SECONDS))
        try:
            self.sock = end.tls.wrap_socket(sock, server_hostname=end.tls_name or end.host)
        except TimeoutError:
            raise TransportError(Failure.TIME_OUT) from None
        except (ssl.SSLError, OSError, ValueError) as error:
            raise TransportError(Failure.TLS, _words(error)) from None

    def _through_proxy(self, sock: Any) -> None:
        """Asks the proxy for a tunnel. Raises OSError, TransportError."""
        address = _address(self._endpoint.host, self._endpoint.port)
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
    """What the name resolves to, looked up in a thread, because a lookup has no time-out. Raises OSError."""
    found: list[Any] = []

    def look() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.append(error if isinstance(error, OSError) else OSError("not a host name"))

    if deadline is None or host.replace(".", "").isdigit():
        look()
    else:
        thread = Thread(target=look, daemon=True)
        thread.start()
        thread.join(_left(deadline, None))
    if not found:
        raise TimeoutError
    if isinstance(found[0], OSError):
        raise found[0]
    return found[0]


def _left(deadline: float | None, most: float | None) -> float | None:
    """Seconds for the next step. Raises TimeoutError where none are left."""
    if deadline is None:
        return most
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left if most is None else min(left, most)


def _body(response: http.client.HTTPResponse) -> bytes:
    """The answer, unpacked. Raises TransportError where it is too large, and what reading raises."""
    packed = response.headers.get("Content-Encoding", "").strip().lower()
    if packed not in ("", "identity", "gzip"):
        raise TransportError(Failure.BROKEN, "the answer is packed in a way that was not asked for")
    unpack = zlib.decompressobj(31) if packed == "gzip" else None
    parts: list[bytes] = []
    size = 0
    while data := response.read(_STEP):
        part = data if unpack is None else unpack.decompress(data, LARGEST_ANSWER - size + 1)
        size += len(part)
        if size > LARGEST_ANSWER:
            raise TransportError(Failure.TOO_LARGE)
        parts.append(part)
    if response.length or (unpack is not None and size and not unpack.eof):
        raise TransportError(Failure.BROKEN, "the answer breaks off")
    return b"".join(parts)


def _told(error: BaseException) -> BaseException:
    """The error that callers know; what is not of a connection stays what it is."""
    if isinstance(error, TransportError):
        return error
    if isinstance(error, TimeoutError):
        return TransportError(Failure.TIME_OUT)
    if isinstance(error, http.client.LineTooLong):
        return TransportError(Failure.BROKEN, "a header is too long")
    if isinstance(error, http.client.BadStatusLine) and not isinstance(error, ConnectionError):
        return TransportError(Failure.BROKEN, "the answer is not HTTP")
    if isinstance(error, http.client.IncompleteRead):
        return TransportError(Failure.BROKEN, "the answer breaks off")
    if isinstance(error, OSError | http.client.HTTPException | zlib.error):
        return TransportError(Failure.BROKEN, _words(error))
    if isinstance(error, ValueError):
        # Its text may hold a header, and with it a token.
        return TransportError(Failure.BROKEN, "the request or its answer is not valid HTTP")
    return error


def _tell(sent: Sent) -> None:
    for observer in observers:
        observer(sent)


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _words(error: BaseException) -> str:
    text = getattr(error, "verify_message", None) or getattr(error, "strerror", None) or str(error)
    return " ".join(str(text).split()).rstrip(".") or type(error).__name__
