"""Requests to an API server, with one clear sentence for every failure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

from msgspec import json

from kubectl_dra.cluster.connection import Connection
from kubectl_dra.cluster.http_connection import Failure, TransportError
from kubectl_dra.cluster.reader import Page, page, whole
from kubectl_dra.cluster.snapshot import Progress
from kubectl_dra.cluster.transport import LARGEST_ANSWER, Reply, Stream, Transport
from kubectl_dra.command import kubectl
from kubectl_dra.errors import ClusterError

PAGE: Final = 500
EXPIRED: Final = 410
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
PASSING: Final = frozenset((408, 429, 500, 502, 503, 504))
MOST_PAGES: Final = 20_000
"""Limit for one list: ten million objects."""
_MANY_PAGES: Final = 1000
_LEAST_ON_A_PAGE: Final = 10
"""After many pages they must have had so many objects each: servers fill pages, as far as a selector lets them."""
_BUSY: Final = frozenset((429, 502, 503, 504))
_TRIES: Final = 10
"""Attempts if the answer says when to retry, as in client-go; the request's deadline may end them earlier."""
_TRIES_UNASKED: Final = 4
_LONGEST_WAIT: Final = 10.0
_LEAST_READ_SECONDS: Final = 1.0
_LEAST_WRITE_SECONDS: Final = 10.0
_JSON: Final = "application/json"


class Answered(ClusterError):
    """The server refused one request; ``status`` is the HTTP code. The caller decides whether that is fatal."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message, status)
        if status == FORBIDDEN:
            self.commands = (("Which permissions are missing, and which role has them", kubectl("dra", "can")),)


def passes(error: ClusterError) -> bool:
    """Whether a cluster that answered before may answer again."""
    return error.status in PASSING if isinstance(error, Answered) else error.status != UNAUTHORIZED


class NoAnswer(ClusterError):
    """A write got no answer, so it is unknown whether it was carried out. ``cause`` is a word for what happened."""

    def __init__(self, message: str, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


class Client:
    """Reads from one API server. All writes go through ``send``, which only cluster.writer uses.

    ``seconds`` limits each request as a whole: connecting, the complete answer, waiting for a busy server,
    and retries. None means no limit.
    """

    def __init__(
        self, connection: Connection, seconds: float | None = 60.0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._transport = Transport(connection.endpoint)
        self._authorization = connection.authorization
        self._impersonation = connection.impersonation
        self._packed = connection.endpoint.packed
        self._sleep = sleep
        self._seconds = seconds
        self._deadline: float | None = None
        self._date = ""
        self.server: Final = connection.server

    @property
    def time(self) -> datetime:
        """The time by the server's clock, as it was in its last answer; by ours where it does not tell."""
        try:
            return parsedate_to_datetime(self._date)
        except ValueError:
            return datetime.now(UTC)

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = _JSON) -> dict[str, Any]:
        """The JSON object at a path of the API server.

        Answers 429, 502, 503 and 504 are retried: four attempts in all, or ten if Retry-After says when.

        Raises:
            Answered: any answer other than 2xx, except 401.
            ClusterError: 401, no connection, no answer in time, or an answer that is not Kubernetes'.
        """
        return self._dict(self._get(path, query, accept), path)

    def text(self, path: str) -> str:
        """The content of a path that is not JSON, such as metrics. Raises as ``get``."""
        return self._get(path).decode(errors="replace")

    def send(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any], content_type: str
    ) -> Reply:
        """Send a write once. Returns the server's answer, whatever it is, for ``received``.

        Raises NoAnswer: the connection broke, or no answer came in time; ClusterError: no TLS connection.
        """
        headers = [*self._headers(_JSON), ("Content-Type", content_type)]
        seconds = self._left(_LEAST_WRITE_SECONDS)
        try:
            # As it is: an apply is read as YAML, which does not know JSON's escapes of characters beyond U+FFFF.
            return self._transport.request(method, _target(path, query), headers, json.encode(body), _end(seconds))
        except TransportError as error:
            if error.failure is Failure.TLS:
                raise self._failed(error, path, seconds) from None
            raise NoAnswer(f"{self.server}: {method}: {error.reason}", error.failure.value) from None

    def received(self, reply: Reply, path: str) -> dict[str, Any]:
        """The object in the answer to a write. Raises as ``get``."""
        if 200 <= reply.status < 300:
            return self._dict(reply.data, path)
        raise self._refused(reply, path)

    def follow(self, path: str, query: Mapping[str, str], silence: float) -> Stream:
        """Open a streamed answer, such as a watch. The caller reads and closes it.

        After ``silence`` seconds without a byte, reading ends.

        Raises:
            Answered, ClusterError: as ``get``, at the first attempt.
        """
        try:
            stream = self._transport.stream(_target(path, query), self._headers(_JSON, packed=False), silence)
            if 200 <= stream.status < 300:
                return stream
            try:
                raise self._refused(stream.whole(), path)
            finally:
                stream.close()
        except TransportError as error:
            raise self._failed(error, path, silence) from None

    def list_items(
        self, path: str, query: Mapping[str, str] | None = None, progress: Progress | None = None
    ) -> list[dict[str, Any]]:
        """All items of a list, each with apiVersion and kind and without managedFields.

        If the list expires during paging (410), it is read once more.

        Raises:
            Answered, ClusterError: as ``get``.
        """
        try:
            return [whole(item, page) for page in self.pages(path, query, progress) for item in page.items]
        except Answered as error:
            if error.status != EXPIRED:
                raise
        return [whole(item, page) for page in self.pages(path, query, progress) for item in page.items]

    def pages(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        *,
        pods: bool = False,
    ) -> Iterator[Page]:
        """The pages of a list. For ``pods`` they hold decoded objects instead of items, if all have the usual
        shape.

        Requests the newest state: with ``resourceVersion=0``, servers ignore the limit and return all objects
        at once, and since 1.34 they answer from their cache anyway.

        Raises:
            Answered, ClusterError: as ``get``; 410 if the list expires during paging; a list without an end.
        """
        parameters = {**(query or {}), "limit": str(PAGE)}
        count, tokens = 0, set[str]()
        while True:
            page = self._page(self._get(path, parameters), path, pods=pods)
            count += page.size
            if progress is not None:
                remaining = page.metadata.remaining_item_count
                total = f" of about {count + remaining}" if remaining is not None and remaining > 0 else ""
                progress(f"{page.item_kind or 'objects'}: {count}{total}")
            yield page
            token = page.metadata.token
            if not token:
                return
            if token in tokens or len(tokens) >= MOST_PAGES:
                raise ClusterError(f"{self.server}{path}: the list has no end: the server gives the same pages again")
            if len(tokens) >= _MANY_PAGES and count < _LEAST_ON_A_PAGE * len(tokens):
                raise ClusterError(f"{self.server}{path}: the list has no end: the server gives nearly empty pages")
            tokens.add(token)
            parameters["continue"] = token

    @contextmanager
    def until(self, deadline: float | None) -> Iterator[None]:
        """A context in which requests get only the time left until ``deadline`` (``time.monotonic``; None: no
        change).

        They get at least a second, and a write gets ten so that its outcome becomes known. Nothing is retried
        after the deadline.
        """
        before = self._deadline
        known = [limit for limit in (before, deadline) if limit is not None]
        self._deadline = min(known, default=None)
        try:
            yield
        finally:
            self._deadline = before

    def has(self, seconds: float) -> bool:
        """Whether that much time is left until the deadline."""
        return self._deadline is None or time.monotonic() + seconds < self._deadline

    def _get(self, path: str, query: Mapping[str, str] | None = None, accept: str = _JSON) -> bytes:
        """The text of a successful answer. Raises as ``get``."""
        seconds = self._left(_LEAST_READ_SECONDS)
        end = _end(seconds)
        for attempt in range(1, _TRIES + 1):
            try:
                reply = self._transport.request("GET", _target(path, query), self._headers(accept), None, end)
            except TransportError as error:
                raise self._failed(error, path, seconds) from None
            self._date = reply.headers.get("Date") or self._date
            if 200 <= reply.status < 300:
                return _unicode(reply.data)
            wait = wait_before(reply, attempt)
            in_time = self.has(wait) and (end is None or time.monotonic() + wait < end)
            last = attempt >= (_TRIES if "Retry-After" in reply.headers else _TRIES_UNASKED)
            if reply.status not in _BUSY or last or not in_time:
                raise self._refused(reply, path)
            self._sleep(wait)
        raise AssertionError("unreachable")

    def _left(self, least: float) -> float | None:
        """Seconds that a request may take; a little even after the deadline."""
        if self._deadline is None:
            return self._seconds
        seconds = max(self._deadline - time.monotonic(), least)
        return seconds if self._seconds is None else min(self._seconds, seconds)

    def _headers(self, accept: str, *, packed: bool = True) -> list[tuple[str, str]]:
        out = [("Accept", accept), ("User-Agent", "kubectl-dra"), *self._impersonation]
        if packed and self._packed:
            out.append(("Accept-Encoding", "gzip"))
        authorization = self._authorization()
        if authorization:
            out.append(("Authorization", authorization))
        return out

    def _dict(self, data: bytes, path: str) -> dict[str, Any]:
        answer = _loaded(data)
        if not isinstance(answer, dict):
            raise self._not_json(path)
        return answer

    def _page(self, data: bytes, path: str, *, pods: bool) -> Page:
        try:
            decoded = page(data, pods=pods)
        except ValueError:
            raise self._not_json(path) from None
        if decoded is None:
            raise ClusterError(f"{self.server}{path}: the answer is not a list of Kubernetes objects")
        return decoded

    def _not_json(self, path: str) -> ClusterError:
        return ClusterError(f"{self.server}{path}: the answer is not JSON; is this an API server?")

    def _failed(self, error: TransportError, path: str, seconds: float | None) -> ClusterError:
        """The error for a request without an answer."""
        reason = error.reason
        if error.failure is Failure.TIME_OUT:
            within = f" within {seconds:g} s" if seconds is not None else ""
            return ClusterError(f"{self.server} did not answer{within}; try again, or give --request-timeout")
        if error.failure is Failure.TOO_LARGE:
            return ClusterError(
                f"{self.server}{path}: {reason or f'the answer has more than {LARGEST_ANSWER >> 20} MB'}"
            )
        text = {
            Failure.CONNECT: f"no connection: {reason}; is the cluster up, and the address right?",
            Failure.TLS: f"no TLS connection: {reason}; check the certificate authority of the kubeconfig's cluster",
            Failure.PROXY: f"the proxy does not connect: {reason}",
        }.get(error.failure, f"the connection failed: {reason}")
        return ClusterError(f"{self.server}: {text}")

    def _refused(self, reply: Reply, path: str) -> ClusterError:
        status, answer = reply.status, _loaded(reply.data)
        said = answer.get("message") if isinstance(answer, dict) else None
        reason = " ".join(str(said or f"HTTP {status} {reply.reason or ''}").split())
        if status == UNAUTHORIZED:
            message = (
                f"{self.server} does not accept the credentials (401): log in again, or check the kubeconfig's user"
            )
            return ClusterError(message, status)
        if status == 429 or status >= 500:
            return Answered(status, f"{self.server} cannot answer {path} now ({status}): {reason}")
        if 300 <= status < 400:
            return Answered(status, f"{self.server} answers with a redirect; is this an API server?")
        return Answered(status, f"{self.server}{path}: {reason}")


def segment(text: str) -> str:
    """A name as one segment of a path."""
    return quote(text, safe="")


def wait_before(reply: Reply, attempt: int) -> float:
    """Seconds to wait after a refused attempt: ``Retry-After``, or twice as long each time."""
    try:
        seconds = float(reply.headers.get("Retry-After") or "")
    except ValueError:
        seconds = math.nan
    if math.isnan(seconds):
        seconds = 0.5 * 2 ** (attempt - 1)
    return min(max(seconds, 0.0), _LONGEST_WAIT)


def _unicode(data: bytes) -> bytes:
    """The text with U+FFFD for bytes that are no UTF-8, as Go's decoder reads it."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return data.decode(errors="replace").encode()
    return data


def _loaded(data: bytes) -> Any:
    """The JSON value, or None for invalid JSON."""
    try:
        return json.decode(data)
    except ValueError:
        return None


def _target(path: str, query: Mapping[str, str] | None) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _end(seconds: float | None) -> float | None:
    return None if seconds is None else time.monotonic() + seconds
