"""Ages at the time when the cluster was read, and the time that things normally take."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import moment, parse
from kubectl_dra.explain.phrase import Phrase, Words, say

HOURS_SAID: Final = 48
"""Longer times are said in days."""
GIVEN: Final = timedelta(seconds=30)
"""Time given to a controller for its work before anything counts as stuck.

It takes about a second, and longer while another replica takes over: the lease of kube-controller-manager and
kube-scheduler lasts 15 seconds, and they try every 2 seconds to get it.
"""
CLAIM_CONTROLLER: Final = "the resource claim controller"
GROUP_MAKER: Final = "the controller that makes the group"
SCHEDULER: Final = "the scheduler"


class UnderWay(NamedTuple):
    """A controller's normal work: which controller, and the seconds it has taken so far."""

    by: str
    seconds: int


class Clock:
    """Tells how old things were when the cluster was read. A saved cluster may have been read long ago."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @cached_property
    def now(self) -> datetime:
        """When the cluster was read."""
        return moment(self._snapshot).at

    def age(self, since: str) -> timedelta:
        """Time passed since ``since``, at least; zero if it is unknown."""
        then = parse(since)
        return max(timedelta(), self.now - then) if then is not None else timedelta()

    def overdue(self, since: str) -> bool:
        """Whether what was to be over then should be by now."""
        return self.age(since) >= GIVEN

    def fresh(self, since: str) -> bool:
        """Whether controllers have had less time than they are given; False where it is unknown."""
        return parse(since) is not None and self.age(since) < GIVEN

    def lasting(self, since: str) -> Words:
        """`` for over 20 hours``: the time since, at least; empty for less than a minute, or if it is unknown."""
        count, unit = self._amount(since)
        return say(" for over {count:" + unit + "}", count=count) if unit != "second" else ""

    def ago(self, since: str) -> Phrase:
        """``20 hours ago``: how long ago a time was, rounded down."""
        count, unit = self._amount(since)
        if (count, unit) == (1, "hour"):
            count, unit = int(self.age(since).total_seconds()) // 60, "minute"
        return say("{count:" + unit + "} ago", count=count)

    def _amount(self, since: str) -> tuple[int, str]:
        """An age in the largest unit that says enough."""
        seconds = int(self.age(since).total_seconds())
        hours = seconds // 3600
        if hours > HOURS_SAID:
            return hours // 24, "day"
        if hours:
            return hours, "hour"
        return (seconds // 60, "minute") if seconds >= 60 else (seconds, "second")


def under_way(by: str, since: str, snapshot: Snapshot) -> UnderWay | None:
    """A controller's work since a time of the API; None if it has lasted too long, or the time is unknown."""
    clock = Clock(snapshot)
    return UnderWay(by, int(clock.age(since).total_seconds())) if clock.fresh(since) else None


def all_under_way(waits: Iterable[tuple[str, str]], snapshot: Snapshot) -> UnderWay | None:
    """The longest of several waits, each by whom and since when; None where one is over, or there is none."""
    running = [under_way(by, since, snapshot) for by, since in waits]
    longest = max(filter(None, running), key=lambda wait: wait.seconds, default=None)
    return None if None in running else longest
