"""When a cluster was read: what the age of everything in a snapshot is counted from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Event, Snapshot


def parse(text: str) -> datetime | None:
    """A time of the API (RFC 3339), or None if invalid."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def stamp(time: datetime) -> str:
    """The time as the API writes it, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Moment(NamedTuple):
    """A time. ``saved``: it lies in the past, because the objects come from files."""

    at: datetime
    saved: bool

    def __str__(self) -> str:
        return stamp(self.at)


def moment(snapshot: Snapshot) -> Moment:
    """When a snapshot was read; now if nothing in it has a time."""
    known = parse(snapshot.read_at)
    return Moment(datetime.now(UTC), saved=False) if known is None else Moment(known, saved=not snapshot.server)


def newest(pods: Iterable[Pod], claims: Iterable[ResourceClaim], events: Iterable[Event]) -> str:
    """The newest time in objects: they were read then or later. Empty if none has one."""
    return max(_times(pods, claims, events), default="")


def _times(pods: Iterable[Pod], claims: Iterable[ResourceClaim], events: Iterable[Event]) -> Iterator[str]:
    # The API writes all of them alike, in UTC: as texts they are in the order of time.
    for pod in pods:
        yield pod.metadata.creation_timestamp
        yield from (condition.last_transition_time for condition in pod.conditions)
    for claim in claims:
        yield claim.metadata.creation_timestamp
        yield claim.allocation.timestamp if claim.allocation is not None else ""
    yield from (event.last for event in events)
