"""When a cluster was read: what the age of everything in a snapshot is counted from."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from kubectl_dra.api.times import parse, stamp
from kubectl_dra.cluster.snapshot import Snapshot


class Moment(NamedTuple):
    """A time. ``saved``: it lies in the past, because the objects come from files."""

    at: datetime
    saved: bool

    def __str__(self) -> str:
        return stamp(self.at)


def moment(snapshot: Snapshot) -> Moment:
    """When a snapshot was read.

    Of a live cluster and of a file that ``kubectl dra snapshot`` wrote this is known. Other files are as old at least
    as the newest time in their objects. Where no object has a time, it is now.
    """
    known = parse(snapshot.read_at) or parse(max(_times(snapshot), default=""))
    return Moment(datetime.now(UTC), saved=False) if known is None else Moment(known, saved=not snapshot.server)


def _times(snapshot: Snapshot) -> Iterator[str]:
    # The API writes all of them alike, in UTC: as texts they are in the order of time.
    for pod in snapshot.pods.values():
        yield pod.metadata.creation_timestamp
        yield from (condition.last_transition_time for condition in pod.conditions)
    for claim in snapshot.claims.values():
        yield claim.metadata.creation_timestamp
        yield claim.allocation.timestamp if claim.allocation is not None else ""
    yield from (event.last for event in snapshot.events)
