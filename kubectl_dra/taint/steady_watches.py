"""Watches of objects that go on while a cluster restarts, throttles or forgets."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from threading import Condition
from typing import Any, Final, TypeVar

from kubectl_dra.cluster.client import EXPIRED, passes
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.snapshot import Key
from kubectl_dra.cluster.watch import Watch
from kubectl_dra.errors import ClusterError

T = TypeVar("T")
POLL_SECONDS: Final = 1.0
OUTAGE_SECONDS: Final = 300.0
"""Seconds that an API server may be unavailable before we give up."""


class TimedOut(Exception):
    """The user's time limit has passed."""


@dataclass(slots=True)
class Patience:
    """A deadline (seconds of ``clock``; None means no limit), and where to report progress.

    ``limit`` is a context such as ``Client.until`` in which each request runs, so that none waits much longer
    than that.
    """

    say: Callable[[str], None]
    deadline: float | None = None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    limit: Callable[[float | None], AbstractContextManager[object]] = nullcontext
    _away_since: float | None = field(default=None, init=False)

    def expired(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and self.clock() >= self.deadline

    def pause(self, seconds: float = POLL_SECONDS) -> None:
        """Sleep, but not beyond the deadline."""
        self.sleep(self.within(seconds))

    def within(self, seconds: float) -> float:
        """That many seconds, or what is left until the deadline."""
        return seconds if self.deadline is None else min(seconds, max(0.0, self.deadline - self.clock()))

    def ask(self, question: Callable[[], T]) -> T:
        """The answer, as soon as the server gives one.

        Waits through lost connections, 429, 5xx and expired lists, and reports each once.

        Raises:
            TimedOut: the deadline passed without an answer.
            ClusterError: a permanent refusal (such as 403), or five minutes without any answer.
        """
        wait = 0.25
        while True:
            try:
                with self.limit(self.deadline):
                    answer = question()
            except ClusterError as error:
                if not passes(error) and error.status != EXPIRED:
                    raise
                self._away(error)
            else:
                if self._away_since is not None:
                    self._away_since = None
                    self.say("the API server answers again")
                return answer
            self.pause(wait)
            wait = min(wait * 2, 5.0)

    def _away(self, error: ClusterError) -> None:
        now = self.clock()
        if self._away_since is None:
            self._away_since = now
            self.say(f"{error}; trying again")
        elif now - self._away_since > OUTAGE_SECONDS:
            raise error
        if self.expired():
            raise TimedOut


# Objects of a cluster that we wait for: read once, and again whenever a watch says that they may have changed.

REFRESH_SECONDS: Final = 30.0
"""Seconds that an answer is trusted without news from the server: proxies may hold back a watch's events."""
_CALM_SECONDS: Final = 0.05
"""Changes rarely come alone: how long to wait for more before reading again."""
_READING: Final = object()


class Watcher:
    """Reads objects with ``patience``, and knows when to read again. Use it in a ``with`` statement.

    Only reads give the truth; a watch merely says that an object must be read again. So nothing needs to be
    caught up on after an expired resourceVersion or an outage. If nothing can be watched (no permission, no
    connection), everything is read every time, and ``pause`` is short.
    """

    def __init__(self, cluster: ApiServer, patience: Patience) -> None:
        self._cluster = cluster
        self.patience = patience
        self._watches: dict[tuple[str, str], Watch] = {}
        self._kept: dict[tuple[str, str, str], tuple[float, Any]] = {}
        self._changed: set[str] = set()
        self._woken = False
        self._condition = Condition()
        self._refused: set[str] = set()

    def __enter__(self) -> Watcher:
        # The entry point turned it off for short runs; this may take hours.
        gc.enable()
        return self

    def __exit__(self, *_: object) -> None:
        self._say_refusals()
        for watch in self._watches.values():
            watch.stop()
        self._watches.clear()

    def follow(
        self, kind: str, namespace: str = "", query: Mapping[str, str] | None = None, *, whole: bool = False
    ) -> None:
        """Start to watch a kind, in all namespaces or one; with a query, only what it selects.

        ``whole``: every change matters (see ``changed``), not only those of objects read by ``get``.
        """
        path = self.patience.ask(lambda: self._cluster.path(kind, namespace))
        if path is None or self._watch(kind, namespace):
            return
        take = partial(self._take, kind, whole)
        watch = self._watches[kind, namespace] = Watch(self._cluster.client, path, take, query)
        watch.start()

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any] | None:
        """An object as it is now, or None. Raises as ``Patience.ask``."""
        key, now = (kind, namespace, name), self.patience.clock()
        with self._condition:
            read, value = self._kept.get(key, (0.0, _READING))
            watch = self._watch(kind, namespace)
            if value is not _READING and watch is not None and watch.live and now - read < REFRESH_SECONDS:
                return value  # type: ignore[no-any-return]
            # A change that is told while the object is on its way takes this away.
            self._kept[key] = (now, _READING)
        answer = self.patience.ask(lambda: self._cluster.get(kind, name, namespace))
        with self._condition:
            if key in self._kept:
                self._kept[key] = (now, answer)
        return answer

    def changed(self, kind: str) -> bool:
        """Whether any object of a kind may have changed since the last call; always true if it is not watched."""
        with self._condition:
            changed = kind in self._changed
            self._changed.discard(kind)
            return changed or not any(watch.live for (watched, _), watch in self._watches.items() if watched == kind)

    def pause(self, longest: float, unwatched: float = POLL_SECONDS) -> None:
        """Wait for a change of what was read, for at most ``longest`` seconds and never beyond the deadline.

        ``unwatched`` is how long to wait if not everything is watched.
        """
        self._say_refusals()
        with self._condition:
            live = all(watch.live for watch in self._watches.values())
            if not self._woken:
                self._condition.wait(self.patience.within(longest if live else unwatched))
            woken, self._woken = self._woken, False
        if woken:
            self.patience.pause(_CALM_SECONDS)

    def _watch(self, kind: str, namespace: str) -> Watch | None:
        return self._watches.get((kind, "")) or self._watches.get((kind, namespace))

    def _take(self, kind: str, whole: bool, key: Key | None) -> None:
        with self._condition:
            if key is None:
                for kept in [kept for kept in self._kept if kept[0] == kind]:
                    del self._kept[kept]
            elif self._kept.pop((kind, *key), None) is None and not whole:
                return
            self._changed.add(kind)
            self._woken = True
            self._condition.notify_all()

    def _say_refusals(self) -> None:
        for (kind, _), watch in self._watches.items():
            if watch.refused and kind not in self._refused:
                self._refused.add(kind)
                self.patience.say(f"note: polling, because watching is refused: {watch.refused}")
