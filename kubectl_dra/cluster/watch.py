"""A watch of one collection in a live cluster, in its own thread, which reconnects by itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from threading import Event, Thread
from typing import Any, Final, Protocol

from msgspec import json

from kubectl_dra.cluster.client import EXPIRED, Answered, Client, passes
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.cluster.transport import Stream
from kubectl_dra.errors import ClusterError
from kubectl_dra.manifests.changes import fields_at

_SERVER_SECONDS: Final = 240
"""The server ends a watch after this time, and the next one continues from there."""
_SILENCE_SECONDS: Final = 90.0
"""Servers send a bookmark about every minute. After a longer silence the connection counts as dead."""
_FIRST_WAIT: Final = 0.25
_LONGEST_WAIT: Final = 5.0
"""Answers after which the server is asked again."""


class WatchedStore(Protocol):
    """Keeps the objects of a collection as they are. Both methods are called in the watch's thread."""

    def read(self) -> str:
        """Read the collection anew. Returns the version after which changes are to be told. Raises ClusterError."""

    def take(self, change: str, content: Mapping[str, Any]) -> None:
        """Take a change (ADDED, MODIFIED or DELETED) of an object."""


class Watch:
    """Reports which objects of a collection may have changed, from ``start`` to ``stop``.

    ``changed`` is called in the watch's thread: with an object's key after it changed, and with None when any
    object may have changed, that is, at the start and after a disconnect. The watch resumes after the last
    change seen, or from the present if the server has forgotten that one (410). A ``store`` is told every change, and
    reads the collection at the start and when changes have been forgotten.

    While ``live``, every change is reported. Otherwise the watch is connecting or waiting to retry, or the
    server refuses watches altogether, as ``refused`` says (403 names the verb and the resource).
    """

    def __init__(
        self,
        client: Client,
        path: str,
        changed: Callable[[Key | None], None],
        query: Mapping[str, str] | None = None,
        store: WatchedStore | None = None,
    ) -> None:
        self._client = client
        self._store = store
        self._path = path
        self._query = dict(query or {})
        self._changed = changed
        self._version = ""
        self._stopped = Event()
        self._response: Stream | None = None
        self.live = False
        self.refused = ""

    def start(self) -> None:
        """Start watching."""
        Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """Stop; nothing is reported afterwards."""
        self._stopped.set()
        response = self._response
        if response is not None:
            response.shutdown()

    def _run(self) -> None:
        wait = _FIRST_WAIT
        while not self._stopped.is_set():
            try:
                if self._follow():
                    wait = _FIRST_WAIT
            except ClusterError as error:
                if isinstance(error, Answered) and error.status == EXPIRED:
                    self._version = ""
                elif not passes(error):
                    self.refused = str(error)
                    return
            except Exception as error:
                # Nobody sees what a thread ends with: without the watch it goes on by asking.
                self.refused = f"{type(error).__name__}: {error}"
                return
            finally:
                if self.live:
                    self.live = False
                    self._tell(None)
            self._stopped.wait(wait * random.uniform(0.8, 1.2))
            wait = min(wait * 2, _LONGEST_WAIT)

    def _follow(self) -> bool:
        """Run one connection to its end. Returns whether it delivered anything. Raises as ``Client.follow``."""
        fresh = not self._version
        if fresh and self._store is not None:
            self._version = self._store.read()
        elif fresh:
            head = self._client.get(self._path, {**self._query, "limit": "1"})
            self._version = str(fields_at(head, "metadata").get("resourceVersion") or "")
        query = {
            **self._query,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(_SERVER_SECONDS),
        }
        came = False
        response = self._response = self._client.follow(self._path, query, _SILENCE_SECONDS)
        try:
            if fresh:
                self._tell(None)
            self.live = True
            for event in () if self._stopped.is_set() else _events(response):
                self._take(event)
                came = True
        finally:
            self._response = None
            response.close()
        return came

    def _take(self, event: Mapping[str, Any]) -> None:
        """Raises Answered if the server sends an error in place of a change."""
        content = fields_at(event, "object")
        if event.get("type") == "ERROR":
            # Whatever it is, what came after the last change may not be told any more.
            self._version = ""
            raise Answered(
                EXPIRED if content.get("code") == EXPIRED else 500, str(content.get("message") or "the watch failed")
            )
        metadata = fields_at(content, "metadata")
        self._version = str(metadata.get("resourceVersion") or self._version)
        if event.get("type") != "BOOKMARK":
            if self._store is not None:
                self._store.take(str(event.get("type")), content)
            self._tell((str(metadata.get("namespace") or ""), str(metadata.get("name") or "")))

    def _tell(self, key: Key | None) -> None:
        if not self._stopped.is_set():
            self._changed(key)


def _events(response: Stream) -> Iterator[dict[str, Any]]:
    """The events of a watch, one per line, until the connection ends for any reason."""
    for line in response.lines():
        try:
            event = json.decode(line) if line.strip() else None
        except ValueError:
            return
        if isinstance(event, dict):
            yield event
