"""A live cluster that is read once and then watched: its snapshot at any time, without reading it again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Condition
from typing import Any, Final, NamedTuple

from msgspec import json

from kubectl_dra.allocation.extended_resources import resources_of
from kubectl_dra.api.releases import Release
from kubectl_dra.cluster.builder import NestedList, SnapshotBuilder
from kubectl_dra.cluster.client import EXPIRED, Answered, passes
from kubectl_dra.cluster.duplicates import Kept, Place, essence
from kubectl_dra.cluster.kinds import is_namespaced
from kubectl_dra.cluster.live import ApiServer, queries_of
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.reader import Reader
from kubectl_dra.cluster.snapshot import UNREADABLE, Gap, Key, Snapshot
from kubectl_dra.cluster.time_read import parse, stamp
from kubectl_dra.cluster.watch import Watch
from kubectl_dra.errors import ClusterError, InputError

TEND_SECONDS: Final = 60.0
"""Seconds until what the server refused is asked for again, and its release and clock."""
_STRANGER: Final = timedelta(minutes=2)
"""Time that an event about an unknown pod is kept: it may come before the pod does."""


class SourceCounts(NamedTuple):
    """What became of one kind so far. ``live``: every change is told as it happens."""

    kind: str
    live: bool
    objects: int
    lists: int
    changes: int
    errors: int


class _Source:
    """The objects of a kind, or of one list of it, as the server last told them. The owner's condition guards them."""

    def __init__(self, owner: FollowedCluster, kind: str, query: Mapping[str, str], namespace: str = "") -> None:
        self.kind = kind
        self._namespace = namespace
        self._owner = owner
        self._query = query
        self._part = SnapshotBuilder(reader=owner.reader)
        self._gaps: dict[Key | None, list[Gap]] = {}
        self.known = self._denied = False
        self.lists = self.changes = self.errors = 0
        self._silent_since = owner.clock()
        self._watch: Watch | None = None

    def start(self) -> None:
        """Read it, and watch it from there on; also again, after a refusal. Raises ClusterError."""
        cluster = self._owner.cluster
        path: str | None = None
        try:
            unserved = cluster.unserved(self.kind)
            if unserved is None:
                path = cluster.path(self.kind, self._namespace)
        except Answered as error:
            if passes(error):
                raise
            # Who may not even ask where it is served does not lose the other kinds.
            unserved = cluster.gap(self.kind, self._namespace, error)
        if path is None:
            with self._owner.condition:
                self._refuse(unserved)
            return
        self._watch = Watch(cluster.client, path, self._ended, self._query, self)
        self._watch.start()

    def stop(self) -> None:
        """End the watch."""
        if self._watch is not None:
            self._watch.stop()

    @property
    def refused(self) -> bool:
        """Whether nothing more comes until it is started again."""
        return self._watch is None or bool(self._watch.refused)

    @property
    def silent_since(self) -> float | None:
        """Time since when changes may be missing; None while they come, or may not be read."""
        live = self._watch is not None and self._watch.live
        return None if live or self._denied else self._silent_since

    @property
    def objects(self) -> Mapping[Key, Kept]:
        """What is known."""
        return self._part.kept(self.kind)

    def counts(self) -> SourceCounts:
        """What became of it so far."""
        live = self._watch is not None and self._watch.live
        return SourceCounts(self.kind, live, len(self.objects), self.lists, self.changes, self.errors)

    def into(self, builder: SnapshotBuilder) -> None:
        """Add what is known to a builder."""
        builder.adopt(self.kind, self._part)
        for gap in (gap for gaps in self._gaps.values() for gap in gaps):
            builder.gap(gap)

    def read(self) -> str:
        """The version of the list that is read now."""
        cluster, part = self._owner.cluster, SnapshotBuilder(reader=self._owner.reader)
        place, gaps, version = Place(cluster.server), list[Gap](), ""
        path = cluster.path(self.kind, self._namespace)
        assert path is not None
        try:
            for page in cluster.client.pages(path, self._query, pods=self.kind == "Pod"):
                version = version or page.metadata.resource_version or ""
                with self._owner.condition:
                    gaps += part.add_page(page, self.kind, place)
        except ClusterError as error:
            with self._owner.condition:
                self.errors += 1
                if isinstance(error, Answered) and error.status != EXPIRED and not passes(error):
                    self._refuse(cluster.gap(self.kind, "", error))
            raise
        with self._owner.condition:
            self.lists += 1
            self._part, self._gaps, self.known, self._denied = part, {None: gaps}, True, False
            self._owner.changed()
        return version

    def _refuse(self, gap: Gap | None) -> None:
        """Nothing is known of it any more."""
        gaps: dict[Key | None, list[Gap]] = {None: [gap]} if gap is not None else {}
        if not self._denied or gaps != self._gaps:
            self._part, self._gaps = SnapshotBuilder(reader=self._owner.reader), gaps
            self.known = self._denied = True
            self._owner.changed()

    def take(self, change: str, content: Mapping[str, Any]) -> None:
        """Note a change; a change of fields that are not read, such as a heartbeat, does not count."""
        metadata = content.get("metadata") or {}
        key = (
            str(metadata.get("namespace") or "") if is_namespaced(self.kind) else "",
            str(metadata.get("name") or ""),
        )
        data = json.encode(content)
        with self._owner.condition:
            self.changes += 1
            before = self._part.drop(self.kind, key)
            gone = self._gaps.pop(key, None)
            if change != "DELETED":
                try:
                    self._part.add_item(data, Place(self._owner.cluster.server))
                except (InputError, NestedList) as error:
                    self._gaps[key] = [Gap(self.kind, UNREADABLE, detail=str(error))]
            if gone != self._gaps.get(key) or not _same(before, self.objects.get(key)):
                self._owner.changed()

    def forget_events(self, needed: Callable[[Any], bool]) -> None:
        """Drop events that are no longer needed."""
        for key in [key for key, kept in self.objects.items() if not needed(kept.object)]:
            self._part.drop(self.kind, key)

    def _ended(self, key: Key | None) -> None:
        """A connection begins anew, or has ended."""
        if key is None:
            self._silent_since = self._owner.clock()
            with self._owner.condition:
                self._owner.condition.notify_all()


class FollowedCluster:
    """A live cluster that is followed, kind by kind. ``connect`` is called anew after a refusal: credentials change.

    Events are kept only about pods that need devices, or run drivers: they are most of what changes.
    """

    def __init__(self, connect: Callable[[], ApiServer], clock: Callable[[], float] = time.monotonic) -> None:
        """Raises ClusterError where there is nothing to connect to."""
        self._connect = connect
        self.cluster = connect()
        self.clock = clock
        self.condition = Condition()
        self.reader = Reader(compact=True)
        self._sources: list[_Source] = []
        self._followed: set[str | Pointer] = set()
        self._changed_since: float | None = None
        self._taken_since: float | None = None
        self._release: Release | None = None
        self._served: Mapping[str, str] | None = None
        self._ahead = timedelta()
        self._tended = clock()

    def start(self, kinds: Iterable[str], queries: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Follow these kinds, and of one a further list. Raises ClusterError where the server cannot be reached."""
        self._look()
        self.follow(kinds)
        for kind, query in (queries or {}).items():
            self._add(kind, query)

    def follow(self, kinds: Iterable[str | Pointer]) -> bool:
        """Follow further kinds, or single objects of one. Returns whether there were any.

        Raises ClusterError: the server cannot be reached.
        """
        new = [kind for kind in dict.fromkeys(kinds) if kind not in self._followed]
        for kind in new:
            if isinstance(kind, str):
                for query in queries_of(kind):
                    self._add(kind, query)
            else:
                self._add(kind.kind, {"fieldSelector": f"metadata.name={kind.name}"}, kind.namespace)
            # Where that fails it is tried again with the next count.
            self._followed.add(kind)
        return bool(new)

    def _add(self, kind: str, query: Mapping[str, str], namespace: str = "") -> None:
        source = _Source(self, kind, query, namespace)
        source.start()
        self._sources.append(source)

    def stop(self) -> None:
        """End all watches."""
        for source in self._sources:
            source.stop()

    @property
    def known(self) -> bool:
        """Whether every kind was read, or refused, at least once."""
        return all(source.known for source in self._sources)

    def wait(self, seconds: float) -> bool:
        """Wait for a change, so long at most. Returns whether there is one that no snapshot has."""
        with self.condition:
            if self._changed_since is None:
                self.condition.wait(seconds)
            return self._changed_since is not None

    def changed(self) -> None:
        """Note that a new snapshot would differ by now. The condition is held."""
        if self._changed_since is None:
            self._changed_since = self.clock()
        self.condition.notify_all()

    def tend(self) -> None:
        """Ask now and then for what was refused, and for the server's release and clock. Raises ClusterError."""
        if self.clock() - self._tended < TEND_SECONDS:
            return
        self._tended = self.clock()
        refused = [source for source in self._sources if source.refused]
        if refused:
            self.cluster = self._connect()
        self._look()
        for source in refused:
            source.start()

    def _look(self) -> None:
        self._release = self.cluster.release() or self._release
        self._served = self.cluster.neighbours()
        self._ahead = self.cluster.client.time - datetime.now(UTC)

    def snapshot(self) -> Snapshot:
        """The cluster as it is known now. Until ``told``, ``lag`` counts from what is new in it."""
        now = datetime.now(UTC) + self._ahead
        builder = SnapshotBuilder(self.cluster.namespace, reader=self.reader)
        builder.cluster(self.cluster.server, self.cluster.context, self._served)
        builder.read_at(stamp(now))
        if self._release is not None:
            builder.server_release(self._release)
        with self.condition:
            pods = next((source for source in self._sources if source.kind == "Pod"), None)
            for source in self._sources:
                if source.kind == "Event" and pods is not None and pods.known:
                    source.forget_events(partial(_needed, pods=pods.objects, now=now))
                source.into(builder)
            self._taken_since = min(filter(None, (self._taken_since, self._changed_since)), default=None)
            self._changed_since = None
        return builder.build()

    def told(self) -> None:
        """What is new in the last snapshot is known to whoever asked for it."""
        self._taken_since = None

    def lag(self) -> float:
        """Seconds since the oldest change that nobody was told of, or since changes stopped coming."""
        since = [self._changed_since, self._taken_since, *(source.silent_since for source in self._sources)]
        now = self.clock()
        return max(0.0, now - min((moment for moment in since if moment is not None), default=now))

    def counts(self) -> Iterator[SourceCounts]:
        """What became of each kind so far."""
        counts: dict[str, SourceCounts] = {}
        for source in self._sources:
            own = source.counts()
            before = counts.get(own.kind)
            if before is not None:
                numbers = [number + other for number, other in zip(before[2:], own[2:], strict=True)]
                own = SourceCounts(own.kind, before.live and own.live, *numbers)
            counts[own.kind] = own
        yield from counts.values()


def _same(before: Kept | None, after: Kept | None) -> bool:
    if before is None or after is None:
        return before is after
    return bool(before.uid == after.uid and essence(before.object) == essence(after.object))


def _needed(event: Any, pods: Mapping[Key, Kept], now: datetime) -> bool:
    """Whether an event may explain something: that of a pod that runs without devices does not."""
    if event.kind != "Pod":
        return True
    kept = pods.get((event.namespace, event.name))
    if kept is None:
        last = parse(event.last)
        return last is None or now - last < _STRANGER
    pod = kept.object
    if pod.finished:
        return False
    return bool(pod.claims or pod.plugin is not None or pod.extended_resource_claim or resources_of(pod))
