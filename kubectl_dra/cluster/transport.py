"""HTTP to one API server over kept-alive connections. Deadlines cover whole requests, and answers are limited
in size.
"""

from __future__ import annotations

import http.client
import socket
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from email.message import Message
from queue import Full, Queue
from select import select
from threading import Event, Lock, Thread
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from kubectl_dra.cluster.http_connection import (
    Endpoint,
    Failure,
    ServerConnection,
    TransportError,
    address_of,
    words_of,
)

LARGEST_ANSWER: Final = 512 * 2**20
"""Bytes of one decoded answer: a page of 500 objects is a few megabytes."""
LARGEST_TOGETHER: Final = 512 * 2**20
"""Bytes of all answers that are being read from a server at a time."""
_SUSPECT: Final = 16 * 2**20
_RATIO: Final = 100
"""Lists of equal objects compress to a fiftieth; blanks to a thousandth."""
_STEP: Final = 1 << 18
_LONGEST_EVENT: Final = 64 * 2**20


class Sent(NamedTuple):
    """A request that was answered. ``size`` counts the bytes of the decoded answer, ``seconds`` covers everything."""

    method: str
    url: str
    status: int
    size: int
    seconds: float


observers: Final[list[Callable[[Sent], None]]] = []
"""Called with every answer. The command line adds one for ``-v``."""


class Reply(NamedTuple):
    """A complete, unpacked answer."""

    status: int
    reason: str
    headers: Message
    data: bytes


class _Room:
    """Number of bytes that all answers together may still have. Several threads take from it at once."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = Lock()

    def take(self, size: int) -> None:
        """Raises TransportError: there is not so much."""
        with self._lock:
            self._left -= size
            if self._left < 0:
                raise TransportError(
                    Failure.TOO_LARGE, f"its answers have more than {LARGEST_TOGETHER >> 20} MB together"
                )

    def give_back(self, size: int) -> None:
        """What was taken is read, or lost."""
        with self._lock:
            self._left += size


class Transport:
    """Sends requests to an endpoint. Several threads may use it at once."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._idle: list[ServerConnection] = []
        self._room = _Room(LARGEST_TOGETHER)
        scheme = "http" if endpoint.tls is None else "https"
        self._proxy = urlsplit(endpoint.proxy) if endpoint.proxy else None
        self._url = f"{scheme}://{address_of(endpoint.host, endpoint.port)}{endpoint.prefix}"

    def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None = None,
        deadline: float | None = None,
    ) -> Reply:
        """Send a request and read the whole answer before ``deadline`` (``time.monotonic``; None: no limit).

        Raises:
            TransportError: no connection, no answer in time, a truncated answer, or one larger than LARGEST_ANSWER.
        """
        began = time.monotonic()
        connection, response = self._open(method, target, headers, body, deadline, None)
        try:
            data = _body(response, self._room)
        except BaseException as error:
            connection.close()
            raise _told(error) from None
        reply = Reply(response.status, response.reason, response.headers, data)
        if connection.sock is not None:
            self._idle.append(connection)
        _tell(Sent(method, self._url + target, reply.status, len(data), time.monotonic() - began))
        return reply

    def stream(self, target: str, headers: Sequence[tuple[str, str]], silence: float) -> Stream:
        """Open a streamed answer; ``silence`` seconds without a byte end it. Raises as ``request``."""
        began = time.monotonic()
        connection, response = self._open("GET", target, headers, None, None, silence)
        _tell(Sent("GET", self._url + target, response.status, 0, time.monotonic() - began))
        return Stream(connection, response, self._room)

    def _open(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]],
        body: bytes | None,
        deadline: float | None,
        silence: float | None,
    ) -> tuple[ServerConnection, http.client.HTTPResponse]:
        while True:
            connection = self._kept()
            fresh = connection is None
            try:
                if connection is None:
                    connection = ServerConnection(self._endpoint, self._proxy)
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

    def _kept(self) -> ServerConnection | None:
        """A connection that can still be used, if any."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            with suppress(OSError, ValueError):
                open_ = connection.sock is not None and not select([connection.sock], (), (), 0)[0]
                if open_ and not connection.outdated:
                    return connection
            connection.close()


class Stream:
    """An answer that is read line by line."""

    def __init__(self, connection: ServerConnection, response: http.client.HTTPResponse, room: _Room) -> None:
        self._connection = connection
        self._room = room
        self._socket: Any = connection.sock
        self._response = response
        self.status: Final = response.status
        self.reason: Final = response.reason

    def whole(self) -> Reply:
        """The whole answer of a refused request. Raises TransportError."""
        try:
            return Reply(self.status, self.reason, self._response.headers, _body(self._response, self._room))
        except BaseException as error:
            raise _told(error) from None

    def lines(self) -> Iterator[bytes]:
        """The lines as they arrive, until the answer ends for any reason."""
        rest = b""
        # Reading raises AttributeError or ValueError too when another thread closes the connection.
        with suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            while data := self._response.read1(1 << 16):
                *lines, rest = (rest + data).split(b"\n")
                yield from lines
                if len(rest) > _LONGEST_EVENT:
                    return

    def shutdown(self) -> None:
        """End the stream from another thread."""
        with suppress(OSError, AttributeError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Discard the connection."""
        self._response.close()
        self._connection.close()


def _body(response: http.client.HTTPResponse, room: _Room) -> bytes:
    """The unpacked answer. Raises TransportError if it is too large; reading may raise other errors."""
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip"):
        raise TransportError(Failure.BROKEN, "the answer has an unrequested encoding")
    unpack = zlib.decompressobj(31) if encoding == "gzip" else None
    parts: list[bytes] = []
    size = packed = 0
    try:
        while data := response.read(_STEP):
            packed += len(data)
            # Step by step: a packed piece may become a thousand times as much.
            part = data if unpack is None else unpack.decompress(data, _SUSPECT)
            while part:
                size += len(part)
                room.take(len(part))
                if size > LARGEST_ANSWER:
                    raise TransportError(Failure.TOO_LARGE)
                if size > max(_SUSPECT, _RATIO * packed):
                    raise TransportError(Failure.TOO_LARGE, f"the answer unpacks to more than {_RATIO} times its size")
                parts.append(part)
                part = b"" if unpack is None else unpack.decompress(unpack.unconsumed_tail, _SUSPECT)
        if response.length or (unpack is not None and size and not unpack.eof):
            raise TransportError(Failure.BROKEN, "the answer breaks off")
        return b"".join(parts)
    finally:
        room.give_back(size)


def _told(error: BaseException) -> BaseException:
    """The error as callers know it. Errors that do not concern the connection stay as they are."""
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
        return TransportError(Failure.BROKEN, words_of(error))
    if isinstance(error, ValueError):
        # Its text may hold a header, and with it a token.
        return TransportError(Failure.BROKEN, "the request or its answer is not valid HTTP")
    return error


def _tell(sent: Sent) -> None:
    for observer in observers:
        observer(sent)


# Several streams at once: each is produced in its own thread, and all are consumed in the caller's.

T = TypeVar("T")
HANDFUL: Final = 6
"""Requests at a time: few enough for a server's fair queues."""
_AHEAD: Final = 2
_LOOK_SECONDS: Final = 0.2
"""Seconds between two looks of a waiting producer whether anybody still consumes."""


class _End(NamedTuple):
    error: BaseException | None


def side_by_side(jobs: Sequence[Callable[[], Iterable[T]]], workers: int = HANDFUL) -> Iterator[tuple[int, T]]:
    """The results of the jobs as they arrive, each with the job's index.

    Producers run only slightly ahead of the consumer. The first error of any job is raised; the other jobs
    then end.
    """
    queue: Queue[tuple[int, T | _End]] = Queue(_AHEAD)
    waiting = iter(tuple(enumerate(jobs)))
    stopped = Event()

    def handed_over(item: tuple[int, T | _End]) -> bool:
        """Whether the consumer still wants it. Waits for room."""
        while not stopped.is_set():
            with suppress(Full):
                queue.put(item, timeout=_LOOK_SECONDS)
                return True
        return False

    def work() -> None:
        # Taking the next job is one step of the interpreter, so no two threads get the same.
        for index, job in waiting:
            try:
                for item in job():
                    if not handed_over((index, item)):
                        return
            except BaseException as error:
                handed_over((index, _End(error)))
                return
            if not handed_over((index, _End(None))):
                return

    for _ in range(min(workers, len(jobs))):
        Thread(target=work, daemon=True).start()
    pending = len(jobs)
    try:
        while pending:
            index, item = queue.get()
            if not isinstance(item, _End):
                yield index, item
            elif item.error is not None:
                raise item.error
            else:
                pending -= 1
    finally:
        stopped.set()
