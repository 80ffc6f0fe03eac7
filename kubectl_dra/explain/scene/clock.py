"""How long something has lasted at least: by the newest time in the cluster's objects, not by our clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.phrase import Phrase, Words, say

HOURS_SAID: Final = 48
"""Longer times are said in days."""


class Clock:
    """Tells how old things were when the cluster was read. A saved cluster may have been read long ago."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._newest: str | None = None

    @property
    def newest(self) -> str:
        """The newest time that pods, claims and events name; RFC 3339, empty where there is none."""
        if self._newest is None:
            self._newest = max(_times(self._snapshot), default="")
        return self._newest

    def age(self, since: str) -> timedelta:
        """How long ago a time was at least; nothing where that cannot be told."""
        then, now = _parsed(since), _parsed(self.newest)
        return max(timedelta(), now - then) if then is not None and now is not None else timedelta()

    def lasting(self, since: str) -> Words:
        """`` for over 20 hours``: at least how long; nothing for less than a minute, or where nobody knows."""
        minutes = int(self.age(since).total_seconds()) // 60
        hours = minutes // 60
        if hours > HOURS_SAID:
            return _over(hours // 24, "day")
        if hours:
            return _over(hours, "hour")
        return _over(minutes, "minute") if minutes else ""


def _over(count: int, unit: str) -> Phrase:
    return say(" for over {count:" + unit + "}", count=count)


def _times(snapshot: Snapshot) -> Iterator[str]:
    # The API writes all of them alike, in UTC: as texts they are in the order of time.
    for pod in snapshot.pods.values():
        yield pod.metadata.creation_timestamp
        yield from (condition.last_transition_time for condition in pod.conditions)
    for claim in snapshot.claims.values():
        yield claim.metadata.creation_timestamp
        yield claim.allocation.timestamp if claim.allocation is not None else ""
    yield from (event.last for event in snapshot.events)


def _parsed(time: str) -> datetime | None:
    try:
        return datetime.fromisoformat(time) if time else None
    except ValueError:
        return None
