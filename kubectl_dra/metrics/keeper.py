"""Keeps the metrics of a live cluster current: a scrape is answered from what is known, and never waits."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Collection, Iterator
from threading import Event
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from kubectl_dra.cluster.follow import FollowedCluster
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import ClusterError
from kubectl_dra.metrics.exposition import PREFIX, fleet_families
from kubectl_dra.metrics.fleet import FleetCounts

CALM_SECONDS: Final = 1.0
"""The shortest pause between two counts: changes rarely come alone."""
SHARE: Final = 0.5
"""A pause is as long as this part of the count before: no cluster is counted without end."""
REFRESH_SECONDS: Final = 60.0
"""Seconds that a count is trusted without news: what is late becomes overdue without a change."""
_TICK: Final = 1.0
_KIND: Final = ("kind",)


class FleetCounting(Protocol):
    """What is asked of a snapshot; the command line says what is assumed of its cluster."""

    def kinds(self, snapshot: Snapshot) -> Collection[str | Pointer]:
        """Further kinds, and objects of other layers, that decide about what waits in it."""

    def count(self, snapshot: Snapshot) -> FleetCounts:
        """Its counts."""


class FleetKeeper:
    """Counts a followed cluster again whenever it has changed, in the thread that calls ``run``.

    The lag of a cause is at most the pause and two counts: what changes just after one has begun is in the next.
    """

    def __init__(self, cluster: FollowedCluster, counting: FleetCounting, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._counting = counting
        self._say = say
        self._said = ""
        self._stopped = Event()
        self._families: tuple[Metric, ...] | None = None
        self._counted_at = 0.0
        self._counts = self._errors = 0
        self._took = 0.0

    @property
    def ready(self) -> bool:
        """Whether there is something to tell."""
        return self._families is not None

    def end(self) -> None:
        """Let ``run`` return."""
        self._stopped.set()

    def run(self) -> None:
        """Count until ``end``.

        Raises:
            Exception: what the first count ends with. Later ones are said and counted, and the next is tried.
        """
        next_at = 0.0
        while not self._stopped.is_set():
            self._try(self._cluster.tend)
            changed = self._cluster.wait(_TICK)
            now = time.monotonic()
            if not self._cluster.known or now < next_at:
                # A change that is known already does not make anybody wait.
                if changed:
                    self._stopped.wait(min(max(next_at - now, 0.1), _TICK))
                continue
            if not changed and now < next_at + REFRESH_SECONDS:
                continue
            if self._families is None:
                self.count()
                # What was read first stays: looking through it for garbage again and again would delay scrapes.
                gc.collect()
                gc.freeze()
            else:
                self._try(self._count_undisturbed)
            next_at = time.monotonic() + max(CALM_SECONDS, self._took * SHARE)

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
            self._said = ""
        except Exception as error:
            self._errors += 1
            sentence = str(error) if isinstance(error, ClusterError) else f"{type(error).__name__}: {error}"
            if sentence != self._said:
                self._said = sentence
                self._say(sentence)

    def _count_undisturbed(self) -> None:
        """Count, and collect garbage only afterwards: amid a count there is most to look through, and scrapes wait."""
        gc.disable()
        try:
            self.count()
        finally:
            gc.enable()

    def count(self) -> None:
        """Count the cluster as it is known now; not while further kinds have to be read first."""
        began = time.monotonic()
        snapshot = self._cluster.snapshot()
        if self._families is None:
            snapshot.require_dra()
        if self._cluster.follow(self._counting.kinds(snapshot)):
            return
        # Made once: a scrape only writes them.
        self._families = tuple(fleet_families(self._counting.count(snapshot)))
        self._cluster.told()
        self._counts += 1
        self._counted_at = time.time()
        self._took = time.monotonic() - began

    def collect(self) -> Iterator[Metric]:
        """The metrics of the cluster as last counted, and those of counting."""
        yield from self._families or ()
        text = "How old the oldest change is that these metrics do not have, or how long none could be told."
        yield GaugeMetricFamily(f"{PREFIX}lag_seconds", text, value=self._cluster.lag())
        yield GaugeMetricFamily(f"{PREFIX}count_duration_seconds", "How long the last count took.", value=self._took)
        text = "When these metrics were counted."
        yield GaugeMetricFamily(f"{PREFIX}count_timestamp_seconds", text, value=self._counted_at)
        yield CounterMetricFamily(f"{PREFIX}counts", "How often they were counted.", value=self._counts)
        text = "Counts that failed, and times that the server could not be asked for its release."
        yield CounterMetricFamily(f"{PREFIX}count_errors", text, value=self._errors)
        families: tuple[GaugeMetricFamily | CounterMetricFamily, ...] = (
            GaugeMetricFamily(f"{PREFIX}watch_up", "Whether changes are told as they happen.", labels=_KIND),
            GaugeMetricFamily(f"{PREFIX}objects", "Objects that are known.", labels=_KIND),
            CounterMetricFamily(f"{PREFIX}lists", "How often all objects were read.", labels=_KIND),
            CounterMetricFamily(f"{PREFIX}changes", "Changes that were told.", labels=_KIND),
            CounterMetricFamily(f"{PREFIX}list_errors", "How often objects could not be read.", labels=_KIND),
        )
        for own in self._cluster.counts():
            for family, value in zip(families, own[1:], strict=True):
                family.add_metric((own.kind,), value)
        yield from families

    def registry(self) -> CollectorRegistry:
        """All of them, and those of the process."""
        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        return registry
