"""The one thread that reads the cluster and computes, so that the screen never waits.

One, not several: how long ``explain`` may search is bounded in the CPU time of the whole process.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from threading import Condition, Thread
from typing import Any, Final, NamedTuple, Protocol, TextIO

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.command import ClusterFlags
from kubectl_dra.errors import DraError
from kubectl_dra.explain.overview import Overview, pending
from kubectl_dra.explain.settings import Settings
from kubectl_dra.ui.tables import ClusterView, look

# Where the screen gets what it shows, and what it may do there; the command line gives it a cluster, live or saved.

Ask = Callable[[str], bool]
"""Asks a person whether to go on."""


class Tainting(NamedTuple):
    """A taint of one device to add, as a person types it (KEY[=VALUE]:EFFECT); without one, our rules to remove."""

    device: DeviceID
    taint: str = ""
    reason: str = ""


class ScreenSource(Protocol):
    """A cluster, live or saved."""

    @property
    def live(self) -> bool:
        """Whether the cluster changes and can be changed; saved objects are only read."""

    @property
    def place(self) -> str:
        """Which cluster this is, in a few words."""

    @property
    def where(self) -> ClusterFlags:
        """The flags that choose the cluster, for commands to repeat."""

    def read(self, progress: Progress) -> tuple[Snapshot, Settings, str]:
        """The cluster, what is assumed of it, and the namespace to show (empty for all). Raises DraError."""

    def switch(self, namespace: str) -> None:
        """Show another namespace from the next reading on; empty for all. Raises DraError."""

    def described(self, kind: str, name: str, namespace: str) -> Any:
        """An object as it is written, or as far as it was read; None if there is none. Raises DraError."""

    def completed(self, snapshot: Snapshot, pods: Iterable[Pod], *, everything: bool) -> Snapshot:
        """The snapshot with the further kinds that affect these pods, or ``everything`` pending. Raises DraError."""

    def passes(self, error: DraError) -> bool:
        """Whether a cluster that answered before may answer again after this error."""

    def follow(self, changed: Callable[[], None]) -> None:
        """Watch the cluster: ``changed`` is called, in another thread, when anything may have changed."""

    def followed(self) -> bool:
        """Whether every change is reported now; else the cluster has to be asked now and then."""

    def close(self) -> None:
        """Stop watching."""

    def taint(self, wanted: Tainting, out: TextIO, ask: Ask, *, only_say: bool) -> int:
        """Taint or untaint as the commands of that name do, writing to ``out`` what they say.

        ``only_say``: write nothing, only say what would happen. Returns the command's exit code.

        Raises:
            DraError: what the command ends with, such as a rule that may not be written.
        """


CALM_SECONDS: Final = 0.5
"""Changes rarely come alone: how long to wait for more before reading again."""
SHARE: Final = 10
"""Reading takes at most this part of the time: a busy cluster is not read without end."""
UNWATCHED_SECONDS: Final = 5.0
REFRESH_SECONDS: Final = 60.0
"""Seconds that a view is trusted without news: proxies may hold back a watch's events."""
Job = Callable[[], None]


class BackgroundWorker:
    """Reads a source whenever it may have changed, and does the jobs that the screen asks for in between.

    ``seen`` is told of a new view, ``explained`` of what is pending in it, ``said`` of progress (empty: at rest),
    ``failed`` of an error, and whether it is the end. All of them are called in the worker's thread.
    """

    def __init__(
        self,
        source: ScreenSource,
        seen: Callable[[ClusterView], None],
        explained: Callable[[Overview], None],
        said: Callable[[str], None],
        failed: Callable[[Exception, bool], None],
    ) -> None:
        self._source = source
        self._seen = seen
        self._explained = explained
        self._said = said
        self._failed = failed
        self._jobs: deque[Job] = deque()
        self._condition = Condition()
        self._wanted = True
        self._ended = False
        self._changed_at = 0.0
        self._read_at = 0.0
        self._took = 0.0
        self._known = False

    def start(self) -> None:
        """Start to work. The thread is a daemon: nobody waits for a slow server after the end."""
        Thread(target=self._run, daemon=True).start()

    def end(self) -> None:
        """Stop as soon as possible; nothing is told afterwards."""
        with self._condition:
            self._ended = True
            self._condition.notify_all()
        self._source.close()

    def do(self, job: Job) -> None:
        """Do something soon, between two steps of what is being done."""
        with self._condition:
            self._jobs.append(job)
            self._condition.notify_all()

    def read_again(self) -> None:
        """Read the source as soon as possible."""
        with self._condition:
            self._wanted = True
            self._condition.notify_all()

    def _changed(self) -> None:
        with self._condition:
            self._changed_at = self._changed_at or time.monotonic()
            self._condition.notify_all()

    def _run(self) -> None:
        try:
            while not self._ended:
                self._work_off()
                if self._due() <= 0:
                    self._read()
                    continue
                with self._condition:
                    if not self._jobs and not self._ended:
                        self._condition.wait(max(0.05, min(self._due(), REFRESH_SECONDS)))
        except _Ended:
            pass
        except Exception as error:
            self._failed(error, True)

    def _due(self) -> float:
        """In how many seconds the source is to be read."""
        if self._wanted:
            return 0.0
        if not self._source.live:
            return REFRESH_SECONDS
        now = time.monotonic()
        rest = self._read_at + self._took * SHARE - now
        if self._changed_at:
            return max(rest, self._changed_at + CALM_SECONDS - now)
        patience = REFRESH_SECONDS if self._source.followed() else UNWATCHED_SECONDS
        return max(rest, self._read_at + patience - now)

    def _work_off(self) -> None:
        while self._jobs and not self._ended:
            self._jobs.popleft()()

    def _step(self, sentence: str) -> None:
        if self._ended:
            raise _Ended
        self._said(sentence)
        self._work_off()

    def _read(self) -> None:
        began = time.monotonic()
        self._wanted, self._changed_at = False, 0.0
        try:
            snapshot, settings, namespace = self._source.read(self._said)
            if not self._known:
                self._source.follow(self._changed)
            seen = look(snapshot, settings, namespace, moment(snapshot).at)
            self._seen(seen)
            self._known = True
            waiting = [pod for pod in snapshot.pods.values() if not pod.finished]
            snapshot = self._source.completed(snapshot, waiting, everything=True)
            self._explained(pending(snapshot, namespace, settings, self._step))
        except DraError as error:
            self._failed(error, not (self._known and self._source.passes(error)))
        self._read_at = time.monotonic()
        self._took = self._read_at - began
        self._said("")


class _Ended(Exception):
    """The screen is gone."""
