"""What ``metrics`` does: count a cluster and print the metrics once, or serve them as long as it runs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Collection, Sequence
from typing import Final

from kubectl_dra.api.releases import UNTOLD
from kubectl_dra.cli.explain.reading import (
    all_completed,
    kinds_to_complete,
    read_cluster,
    scheduler_config,
    settings_of,
    with_daemon_sets,
)
from kubectl_dra.cli.flags import MetricsFlags
from kubectl_dra.cli.live import connection_options
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.release import assumed
from kubectl_dra.cluster.follow import FollowedCluster
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.pointed_objects import Pointer
from kubectl_dra.cluster.snapshot import KINDS, Snapshot
from kubectl_dra.drivers.daemons import NO_POD_MADE
from kubectl_dra.errors import UsageError
from kubectl_dra.exit_codes import EXIT_UNDETERMINED
from kubectl_dra.explain.pending_alike import pods_with_devices
from kubectl_dra.metrics.exposition import FleetKeeper, listen, text_of
from kubectl_dra.metrics.fleet import NODE_POOL_LABELS, FleetCounts, fleet_of
from kubectl_dra.neighbours.pointers import pointers
from kubectl_dra.report.color import tell
from kubectl_dra.safe_output import put
from kubectl_dra.text import whole_number


def run(flags: MetricsFlags, connection: ConnectionFlags) -> int:
    """Prints or serves; returns the exit code."""
    # What is wrong with it is said before anything is read.
    assumed(Snapshot(), flags.release, flags.gates)
    scheduler_config(flags, UNTOLD)
    labels = flags.node_pool_labels or NODE_POOL_LABELS
    if flags.listen:
        if flags.snapshots:
            raise UsageError("--listen watches a live cluster; without it the metrics of a snapshot are printed once")
        return serve(flags, connection, labels)
    snapshot, _ = read_cluster(flags, connection, everything=True)
    snapshot = all_completed(snapshot, flags, connection)
    if not flags.snapshots:
        snapshot = with_daemon_sets(snapshot, connection)
    fleet = fleet_of(snapshot, settings_of(flags, snapshot), labels)
    put(text_of(fleet))
    return EXIT_UNDETERMINED if fleet.unread or fleet.unexplained else 0


MOST_PORTS: Final = 65535
SWITCH_SECONDS: Final = 0.0005


def serve(flags: MetricsFlags, connection: ConnectionFlags, node_pool_labels: Sequence[str]) -> int:
    """Serves until it is interrupted or terminated; returns the exit code."""
    host, port = address(flags.listen)
    options = connection_options(connection, "")
    cluster = FollowedCluster(lambda: ApiServer(options))
    keeper = FleetKeeper(cluster, Counting(flags, node_pool_labels), lambda text: tell(f"note: {text}"))
    try:
        server = listen(host, port, keeper.registry(), lambda: keeper.ready)
    except OSError as error:
        raise UsageError(f"--listen {flags.listen}: {error.strerror or error}") from None
    tell(f"note: serving http://{host or '0.0.0.0'}:{server.server_port}/metrics; Ctrl-C ends it")
    # This takes days, and each count leaves garbage.
    gc.enable()
    # A scrape that comes while a count runs waits for the interpreter whenever it has written or read something.
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        cluster.start((*KINDS, "DaemonSet"), {"Event": {"fieldSelector": f"reason={NO_POD_MADE}"}})
        keeper.run()
    finally:
        cluster.stop()
        server.shutdown()
        server.server_close()
    return 0


def address(text: str) -> tuple[str, int]:
    """The host (empty for all addresses) and port of ``--listen``. Raises UsageError."""
    host, colon, digits = text.rpartition(":")
    port = whole_number(digits, 5)
    bare = ":" in host and not (host[0] == "[" and host[-1] == "]")
    if port is None or port > MOST_PORTS or not colon or bare:
        hint = f"; did you mean :{digits}?" if port is not None and not colon else ""
        raise UsageError(f'--listen: "{text}" is not [HOST]:PORT, such as :9412 or 127.0.0.1:9412{hint}')
    return host.strip("[]"), port


class Counting:
    """Counts with what the flags assume of the cluster, as ``explain -A`` does."""

    def __init__(self, flags: MetricsFlags, node_pool_labels: Sequence[str]) -> None:
        self._asked = flags
        self._labels = node_pool_labels

    def kinds(self, snapshot: Snapshot) -> Collection[str | Pointer]:
        waiting = [pod for pod in snapshot.pods.values() if not pod.finished]
        kinds = (kind for _, kind in kinds_to_complete(snapshot, waiting, self._asked, everything=True))
        concerned = pods_with_devices(snapshot, settings_of(self._asked, snapshot))
        return {*kinds, *(pointer.request for pointer in pointers(concerned, snapshot))}

    def count(self, snapshot: Snapshot) -> FleetCounts:
        return fleet_of(snapshot, settings_of(self._asked, snapshot), self._labels)
