"""The metrics as text, once or over HTTP: their names, labels and help, written by Prometheus' library."""

from __future__ import annotations

import gc
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import add, attrgetter
from socketserver import ThreadingMixIn
from threading import Event, Thread
from typing import Any, Final, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
    make_wsgi_app,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from kubectl_dra import __version__
from kubectl_dra.cluster.follow import FollowedCluster
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.health import DriverState
from kubectl_dra.errors import ClusterError
from kubectl_dra.explain.devices.alike_devices import CapacityRoom
from kubectl_dra.metrics.fleet import DEVICE_STATES, Counts, FleetCounts, Labels, Waiting, bounded
from kubectl_dra.usage.choices import ClaimState

PREFIX: Final = "kubectl_dra_"
_CLAIM_STATES: Final = tuple(state.value for state in ClaimState)
_DRIVER_STATES: Final = tuple(state.value for state in DriverState)


def fleet_families(fleet: FleetCounts) -> Iterator[Metric]:
    """The metrics of a cluster; what could not be counted is missing."""
    yield from _by_state("devices", "Devices by state, each once.", ("driver", "node_pool"), fleet.devices)
    text = "Devices by class and state; a device of several classes counts in each."
    yield from _by_state("device_class_devices", text, ("device_class", "driver", "node_pool"), fleet.class_devices)
    text = "The largest number of devices of a class that one request can still get, all on one node."
    largest: Mapping[Labels, float] | None = None
    if fleet.largest is not None:
        largest = {(name,): largest_request.count for name, largest_request in fleet.largest.items()}
    yield from _counted("device_class_largest_request", text, ("device_class",), largest, max)
    yield from _rooms(fleet.room)
    text = "How many further pods that ask for so many devices of a class get them, as far as devices decide."
    yield from _counted("device_class_fitting_pods", text, ("device_class", "devices"), fleet.fits)
    yield from _waiting("pending_pods", "Pods that wait for devices, to start or to end", fleet.pods)
    yield from _waiting("pending_claims", "ResourceClaims that no pod uses and that get no devices", fleet.lone_claims)
    text = "ResourceClaims by state; the devices of unused and ended ones are idle."
    yield from _by_state("claims", text, ("namespace",), fleet.claims, _CLAIM_STATES)
    text = "Devices that the claims of a namespace hold."
    yield from _counted("namespace_devices_held", text, ("namespace",), fleet.held)
    text = "Idle devices: held by claims of a namespace that are unused, or whose pods have ended."
    yield from _counted("namespace_devices_idle", text, ("namespace",), fleet.idle)
    text = "Nodes by how a driver is on them: healthy, crashing, publishes-nothing and so on."
    yield from _by_state("driver_nodes", text, ("driver",), fleet.drivers, _DRIVER_STATES)
    text = "Devices in use that a kubelet reports to be unhealthy."
    yield from _counted("unhealthy_devices", text, ("driver",), fleet.unhealthy)
    text = "Pods that run with a device whose NoExecute taint will end them."
    yield from _counted("pods_to_evict", text, ("namespace",), fleet.evicted)
    text = "Kinds that could not be read; what depends on them is missing, or undetermined."
    yield from _counted("unread", text, ("kind", "reason"), fleet.unread)
    text = "Pods and claims that wait and were not explained, because it took too long."
    yield from _counted("unexplained_objects", text, (), {(): fleet.unexplained})
    text = "When the cluster was as these metrics say."
    yield from _counted("cluster_timestamp_seconds", text, (), {(): fleet.at.at.timestamp()})
    info = InfoMetricFamily(f"{PREFIX}build", "This program.")
    info.add_metric((), {"version": __version__})
    yield info


def _rooms(room: Mapping[Labels, CapacityRoom] | None) -> Iterator[Metric]:
    """The capacity of classes whose devices can be shared, of which no number of devices says how much is left."""
    labels = ("device_class", "capacity")
    for name, text, value in (
        ("", "Capacity of a class's devices that can be shared.", attrgetter("total")),
        ("_remaining", "What is left of it, on all devices together.", attrgetter("left")),
        ("_largest_request", "The most that one request can get: what is left on one device.", attrgetter("most")),
    ):
        amounts: Mapping[Labels, float] | None = None
        if room is not None:
            amounts = {key: value(capacity_room).approximate_float() for key, capacity_room in room.items()}
        merge = max if name == "_largest_request" else add
        yield from _counted(f"device_class_capacity{name}", text, labels, amounts, merge)


def _counted(
    name: str,
    text: str,
    labels: Labels,
    counts: Mapping[Labels, float] | None,
    merge: Callable[[float, float], float] = add,
) -> Iterator[Metric]:
    if counts is not None:
        family = GaugeMetricFamily(f"{PREFIX}{name}", text, labels=labels)
        for values, number in sorted(bounded(counts, merge, float).items()):
            family.add_metric(values, number)
        yield family


def _by_state(
    name: str, text: str, labels: Labels, counts: Counts | None, states: Sequence[str] = DEVICE_STATES
) -> Iterator[Metric]:
    """With all states of each combination of the other labels: a series that comes with its first count says less."""
    if counts is None:
        return
    groups: dict[Labels, Counter[str]] = {}
    for (*values, state), number in counts.items():
        groups.setdefault(tuple(values), Counter())[state] += number
    family = GaugeMetricFamily(f"{PREFIX}{name}", text, labels=(*labels, "state"))
    for group, numbers in sorted(bounded(groups, add, Counter.total).items()):
        for state in states:
            family.add_metric((*group, state), numbers[state])
    yield family


def _waiting(name: str, text: str, table: Mapping[Labels, Waiting] | None) -> Iterator[Metric]:
    if table is None:
        return
    labels = ("namespace", "cause", "verdict")
    counts = GaugeMetricFamily(f"{PREFIX}{name}", f"{text}, by the cause that explain names.", labels=labels)
    text = "When the oldest of these was created."
    oldest = GaugeMetricFamily(f"{PREFIX}{name}_oldest_timestamp_seconds", text, labels=labels)
    for values, waiting in sorted(bounded(table, Waiting.together, lambda counted: counted.number).items()):
        counts.add_metric(values, waiting.number)
        if waiting.oldest:
            oldest.add_metric(values, waiting.oldest)
    yield counts
    yield oldest


_INDEX: Final = b"kubectl dra metrics: /metrics, /livez, /readyz\n"


class _Once:
    """Collects the metrics of one moment."""

    def __init__(self, fleet: FleetCounts) -> None:
        self._fleet = fleet

    def collect(self) -> Iterator[Metric]:
        return fleet_families(self._fleet)


def text_of(fleet: FleetCounts) -> str:
    """The metrics in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Once(fleet))
    return generate_latest(registry).decode()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _SixServer(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = 30

    def log_message(self, format: str, *args: Any) -> None:
        """A scrape is not worth a line."""


def listen(host: str, port: int, registry: CollectorRegistry, ready: Callable[[], bool]) -> WSGIServer:
    """Serve /metrics, /livez and /readyz in threads of their own. An empty host means all addresses.

    Raises:
        OSError: the address is in use, or none of this machine.
    """
    metrics = make_wsgi_app(registry)

    def application(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            answer: Iterable[bytes] = metrics(environ, respond)
            return answer
        pages = {"/": ("200 OK", _INDEX), "/livez": ("200 OK", b"ok\n")}
        pages["/readyz"] = (
            ("200 OK", b"ok\n") if ready() else ("503 Service Unavailable", b"the cluster is being read\n")
        )
        status, body = pages.get(path, ("404 Not Found", _INDEX))
        respond(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))])
        return [body]

    six = ":" in host or (not host and socket.has_dualstack_ipv6())
    server = make_server(host or ("::" if six else ""), port, application, _SixServer if six else _Server, _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


# Keeps the metrics of a live cluster current: a scrape is answered from what is known, and never waits.


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
