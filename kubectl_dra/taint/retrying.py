"""Asks a cluster repeatedly while it restarts, throttles or forgets."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kubectl_dra.cluster.client import UNAUTHORIZED, Answered
from kubectl_dra.errors import ClusterError

T = TypeVar("T")

POLL_SECONDS: Final = 1.0
OUTAGE_SECONDS: Final = 300.0
"""How long an API server may be unavailable before we give up."""
_PASSING: Final = frozenset((408, 410, 429, 500, 502, 503, 504))


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
            except Answered as error:
                if error.status not in _PASSING:
                    raise
                self._away(error)
            except ClusterError as error:
                if error.status == UNAUTHORIZED:
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
