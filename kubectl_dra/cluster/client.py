"""GET requests to an API server, as raw JSON, with one clear sentence for everything that can go wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from kubectl_dra.cluster.kubeconfig import Connection
from kubectl_dra.errors import ClusterError

if TYPE_CHECKING:
    from kubectl_dra.cluster.pages import Page

Progress = Callable[[str], None]
"""Is told, in a few words, what is being read."""

PAGE: Final = 500
EXPIRED: Final = 410
_CONNECT_TIMEOUT: Final = 15.0
_READ_TIMEOUT: Final = 60.0
_TRIES: Final = 4
_LONGEST_WAIT: Final = 10.0
_LEAST_READ_TIMEOUT: Final = 1.0
_LEAST_WRITE_TIMEOUT: Final = 10.0


class Answered(ClusterError):
    """The server refused one request; ``status`` is the HTTP code. Not always fatal: see the caller."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NoAnswer(ClusterError):
    """A write got no answer: whether it was carried out is not known. ``cause`` names the error of the connection."""

    def __init__(self, message: str, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


class Client:
    """Reads from one API server. All writes go through ``send``, which only cluster.writer uses.

    ``request_timeout`` is in seconds for each request; 0 waits for ever, None takes a minute.
    """

    def __init__(
        self,
        connection: Connection,
        request_timeout: float | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        from kubernetes import client

        self._configuration = connection.configuration
        self._impersonation = connection.impersonation
        self._sleep = sleep
        self._timeout = request_timeout
        self._deadline: float | None = None
        self.server: Final[str] = connection.configuration.host.rstrip("/")
        try:
            self._pool = client.ApiClient(connection.configuration).rest_client.pool_manager
        except (OSError, ValueError) as error:
            raise ClusterError(f"{self.server}: the connection cannot be set up: {error}") from None

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON object at a path of the API server.

        Answers 429, 502, 503 and 504 are tried again a few times, as long as Retry-After says.

        Raises:
            Answered: any answer that is not 2xx, except 401.
            ClusterError: 401, no connection, no answer in time, or an answer that is not Kubernetes'.
        """
        return self._dict(self._get(path, query), path)

    def text(self, path: str) -> str:
        """What is at a path and is not JSON, such as the metrics. Raises as ``get``."""
        return self._get(path).decode(errors="replace")

    def send(self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any], content_type: str) -> Any:
        """Sends a write once; returns whatever the server answers, for ``received``.

        Raises:
            NoAnswer: the connection broke, or no answer came in time.
            ClusterError: no TLS connection.
        """
        import json

        import urllib3
        from urllib3 import exceptions

        url = f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = self._headers()
        headers["Content-Type"] = content_type
        read = self._read_timeout(_LEAST_WRITE_TIMEOUT)
        try:
            return self._pool.request(
                method,
                url,
                # As it is: an apply is read as YAML, which does not know JSON's escapes of characters beyond U+FFFF.
                body=json.dumps(body, ensure_ascii=False).encode(),
                headers=headers,
                timeout=urllib3.Timeout(
                    connect=_CONNECT_TIMEOUT if read is None else min(_CONNECT_TIMEOUT, read), read=read
                ),
                retries=False,
                redirect=False,
            )
        except exceptions.SSLError as error:
            raise ClusterError(f"{self.server}: no TLS connection: {_reason(error)}") from None
        except (exceptions.HTTPError, OSError) as error:
            raise NoAnswer(f"{self.server}: {method}: {_reason(error)}", type(error).__name__) from None

    def received(self, response: Any, path: str) -> dict[str, Any]:
        """The object that a write was answered with. Raises as ``get``."""
        return self._object(response, path)

    def _get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """The text of an answer, which is a good one. Raises as ``get``."""
        url = f"{self.server}{path}" + (f"?{urlencode(query)}" if query else "")
        for attempt in range(1, _TRIES + 1):
            response = self._request(url)
            if response.status in (429, 502, 503, 504) and attempt < _TRIES:
                seconds = wait_before(response, attempt)
                if self.has(seconds):
                    self._sleep(seconds)
                    continue
            if 200 <= response.status < 300:
                data: bytes = response.data
                return data
            raise self._refused(response, path)
        raise AssertionError("unreachable")

    def follow(self, path: str, query: Mapping[str, str], silence: float) -> Any:
        """Opens an answer that comes bit by bit, such as a watch; the caller reads and closes the response.

        ``silence`` is the number of seconds without a byte after which reading it fails.

        Raises:
            Answered, ClusterError: as ``get``, at the first try.
        """
        from urllib3 import exceptions

        response = self._request(f"{self.server}{path}?{urlencode(query)}", silence)
        if 200 <= response.status < 300:
            return response
        try:
            raise self._refused(response, path)
        except exceptions.HTTPError as error:
            raise ClusterError(f"{self.server}: the connection failed: {_reason(error)}") from None
        finally:
            response.close()

    def _dict(self, data: bytes, path: str) -> dict[str, Any]:
        try:
            answer = _loaded(data)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._not_json(path)
        return answer

    def _object(self, response: Any, path: str) -> dict[str, Any]:
        """The object of an answer. Raises as ``get``."""
        if 200 <= response.status < 300:
            return self._dict(response.data, path)
        raise self._refused(response, path)

    def _not_json(self, path: str) -> ClusterError:
        return ClusterError(f"{self.server}{path}: the answer is not JSON; is this an API server?")

    def list_items(
        self, path: str, query: Mapping[str, str] | None = None, progress: Progress | None = None
    ) -> list[dict[str, Any]]:
        """All items of a list, as ``pages`` gives them.

        When the server has forgotten the list it was paging through (410), the list is read once more.

        Raises:
            Answered, ClusterError: as ``get``.
        """
        try:
            return [item for page in self.pages(path, query, progress) for item in page]
        except Answered as error:
            if error.status != EXPIRED:
                raise
        return [item for page in self.pages(path, query, progress) for item in page]

    def pages(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        *,
        ahead: bool = False,
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """The items of a list, page by page, each with apiVersion and kind and without managedFields.

        Items are read from a page as they are asked for; with ``ahead`` while the next page is on its way.

        Raises:
            Answered, ClusterError: as ``get``; 410 when the list has expired on the way.
        """
        from kubectl_dra.cluster.pages import Ahead

        asked = {**(query or {}), "limit": str(PAGE)}
        count, data = 0, self._get(path, asked)
        while True:
            page = self._page(data, path)
            count += page.size
            meta = page.head["metadata"]
            token = meta.get("continue") or ""
            fetch = partial(self._get, path, {**asked, "continue": token})
            coming = Ahead(fetch) if token and ahead else None
            if progress is not None:
                left = meta.get("remainingItemCount")
                total = f" of about {count + left}" if isinstance(left, int) and left > 0 else ""
                progress(f"{str(page.head.get('kind') or 'objects').removesuffix('List')}: {count}{total}")
            yield self._completed(page, path)
            if not token:
                return
            data = fetch() if coming is None else coming.result()

    def _page(self, data: bytes, path: str) -> Page:
        from kubectl_dra.cluster.pages import split

        try:
            page = split(data)
        except ValueError:
            raise self._not_json(path) from None
        if page is None or not isinstance(page.head.setdefault("metadata", {}), dict):
            raise self._no_list(path)
        return page

    def _completed(self, page: Page, path: str) -> Iterator[dict[str, Any]]:
        api_version, kind = page.head.get("apiVersion"), str(page.head.get("kind") or "").removesuffix("List")
        try:
            for item in page.items:
                if not isinstance(item, dict):
                    raise self._no_list(path)
                item.setdefault("apiVersion", api_version)
                item.setdefault("kind", kind)
                metadata = item.get("metadata")
                if isinstance(metadata, dict):
                    metadata.pop("managedFields", None)
                yield item
        except ValueError:
            raise self._not_json(path) from None

    def _no_list(self, path: str) -> ClusterError:
        return ClusterError(f"{self.server}{path}: the answer is not a list of Kubernetes objects")

    def _request(self, url: str, silence: float | None = None) -> Any:
        """One GET; with ``silence`` (seconds between two bytes) its answer is still to be read. Raises as ``get``."""
        import urllib3
        from urllib3 import exceptions

        read = self._read_timeout(_LEAST_READ_TIMEOUT) if silence is None else silence
        connect = _CONNECT_TIMEOUT if read is None else min(_CONNECT_TIMEOUT, read)
        try:
            return self._pool.request(
                "GET",
                url,
                headers=self._headers(),
                timeout=urllib3.Timeout(connect=connect, read=read),
                retries=False,
                redirect=False,
                preload_content=silence is None,
            )
        except exceptions.NewConnectionError as error:
            # Before time-outs, of which urllib3 takes it to be one.
            raise ClusterError(
                f"{self.server}: no connection: {_reason(error)}; is the cluster up, and the address right?"
            ) from None
        except exceptions.TimeoutError:
            seconds = f"{connect if read is None else read:g}"
            raise ClusterError(
                f"{self.server} did not answer within {seconds} s; try again, or give --request-timeout"
            ) from None
        except exceptions.SSLError as error:
            raise ClusterError(
                f"{self.server}: no TLS connection: {_reason(error)}; check the certificate authority of the "
                "kubeconfig's cluster"
            ) from None
        except exceptions.ProxyError as error:
            raise ClusterError(f"{self.server}: the proxy does not connect: {_reason(error)}") from None
        except (exceptions.HTTPError, OSError, ValueError) as error:
            raise ClusterError(f"{self.server}: the connection failed: {_reason(error)}") from None

    @contextmanager
    def until(self, deadline: float | None) -> Iterator[None]:
        """Within it requests get what time is left until ``deadline`` (of ``time.monotonic``; None changes nothing).

        They get a second at least, and a write ten, of which it should be known whether it was carried out. After the
        deadline none is tried again.
        """
        before = self._deadline
        known = [each for each in (before, deadline) if each is not None]
        self._deadline = min(known, default=None)
        try:
            yield
        finally:
            self._deadline = before

    def has(self, seconds: float) -> bool:
        """Whether there is so much time until the deadline."""
        return self._deadline is None or time.monotonic() + seconds < self._deadline

    def _read_timeout(self, least: float) -> float | None:
        whole: float | None = _READ_TIMEOUT if self._timeout is None else self._timeout or None
        if self._deadline is None:
            return whole
        left = max(self._deadline - time.monotonic(), least)
        return left if whole is None else min(whole, left)

    def _headers(self) -> Any:
        import urllib3

        headers = urllib3.HTTPHeaderDict(
            {"Accept": "application/json", "Accept-Encoding": "gzip", "User-Agent": "kubectl-dra"}
        )
        for name, value in self._impersonation:
            headers.add(name, value)
        for setting in self._configuration.auth_settings().values():
            if setting["in"] == "header" and setting["value"]:
                headers[setting["key"]] = setting["value"]
        return headers

    def _refused(self, response: Any, path: str) -> ClusterError:
        status = response.status
        try:
            answer = _loaded(response.data)
        except ValueError:
            answer = None
        said = answer.get("message") if isinstance(answer, dict) else None
        reason = " ".join(str(said).split()) if said else f"HTTP {status} {response.reason or ''}".strip()
        if status == 401:
            return ClusterError(
                f"{self.server} does not accept the credentials (401): log in again, or check the kubeconfig's user"
            )
        if status == 429 or status >= 500:
            return Answered(status, f"{self.server} cannot answer {urlsplit(path).path} now ({status}): {reason}")
        if 300 <= status < 400:
            return Answered(status, f"{self.server} answers with a redirect; is this an API server?")
        return Answered(status, f"{self.server}{path}: {reason}")


def segment(text: str) -> str:
    """A name as one segment of a path."""
    return quote(text, safe="")


def _loaded(data: bytes) -> Any:
    from orjson import loads

    return loads(data)


def wait_before(response: Any, attempt: int) -> float:
    """Seconds to wait after a refused attempt: what ``Retry-After`` says, else twice as long each time."""
    try:
        seconds = float(response.headers.get("Retry-After") or "")
    except ValueError:
        seconds = 0.5 * 2 ** (attempt - 1)
    return float(min(max(seconds, 0.0), _LONGEST_WAIT))


def _reason(error: BaseException) -> str:
    """The innermost reason, without the memory addresses that urllib3 writes into messages."""
    inner: BaseException = error
    while True:
        deeper = getattr(inner, "reason", None) or inner.__cause__ or inner.__context__
        if not isinstance(deeper, BaseException) or deeper is inner:
            break
        inner = deeper
    text = getattr(inner, "strerror", None) or getattr(inner, "verify_message", None) or str(inner)
    return " ".join(str(text).rpartition("object at 0x")[2].split()).rstrip(".") or type(inner).__name__
