"""What ``metrics`` does: count a cluster and print the metrics once, or serve them as long as it runs."""

from __future__ import annotations

from kubectl_dra.api.releases import UNTOLD
from kubectl_dra.cli.assumed import assumed
from kubectl_dra.cli.explain.reading import all_completed, read_cluster, scheduler_config, settings_of, with_daemon_sets
from kubectl_dra.cli.metrics import MetricsFlags
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.console import put
from kubectl_dra.errors import UsageError
from kubectl_dra.metrics.fleet import NODE_POOL_LABELS, fleet_of

EXIT_UNDETERMINED = 3


def run(flags: MetricsFlags, connection: ConnectionFlags) -> int:
    """Prints or serves; returns the exit code.

    Raises:
        DraError: wrong usage, input that cannot be read, a cluster that does not answer.
    """
    # What is wrong with it is said before anything is read.
    assumed(Snapshot(), flags.release, flags.gates)
    scheduler_config(flags.as_explain(), UNTOLD)
    labels = flags.node_pool_labels or NODE_POOL_LABELS
    if flags.listen:
        if flags.snapshots:
            raise UsageError("--listen watches a live cluster; without it the metrics of a snapshot are printed once")
        from kubectl_dra.cli.metrics.serving import serve

        return serve(flags, connection, labels)
    explain = flags.as_explain()
    snapshot, _ = read_cluster(explain, connection)
    snapshot = all_completed(snapshot, explain, connection)
    if not flags.snapshots:
        snapshot = with_daemon_sets(snapshot, connection)
    fleet = fleet_of(snapshot, settings_of(explain, snapshot), labels)
    from kubectl_dra.metrics.exposition import text_of

    put(text_of(fleet))
    return EXIT_UNDETERMINED if fleet.unread or fleet.unexplained else 0
