"""What ``drivers`` does: read, join drivers with their pods, report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from kubectl_dra.cli.drivers import DriversFlags, DriversOutput
from kubectl_dra.cli.live import Progress, connection_options, read_saved
from kubectl_dra.cli.notes import tell_age
from kubectl_dra.cli.options import ConnectionFlags, cluster_flags
from kubectl_dra.cluster.moment import moment
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.concerns import concerns_of
from kubectl_dra.drivers.daemons import NO_POD_MADE
from kubectl_dra.drivers.drivers_on_nodes import NodeDrivers, joined
from kubectl_dra.drivers.while_away import drain_check
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.explain.unread import NotSeen
from kubectl_dra.text import did_you_mean_or_known

KINDS: Final = ("ResourceSlice", "DeviceClass", "ResourceClaim", "Node", "Pod", "DaemonSet", "Event")
"""The kinds that tell how drivers are; of events those about pods that nobody can make."""
EXIT_NO: Final = 1
EXIT_UNDETERMINED: Final = 3


def run(asked: DriversFlags, connection: ConnectionFlags) -> int:
    """Lists and prints; returns the exit code.

    Raises:
        DraError: wrong usage, a name that does not exist, input that cannot be read, a cluster that does not answer.
    """
    if asked.drain_check and len(asked.nodes) != 1:
        raise UsageError("--drain-check is about one node: add --node NODE")
    if asked.drain_check and asked.output is DriversOutput.name:
        raise UsageError("--drain-check lists claims and pods: use -o text, wide, json or yaml")
    if asked.watch and (asked.drain_check or asked.output not in (DriversOutput.text, DriversOutput.wide)):
        raise UsageError("--watch shows the table: leave --drain-check and other outputs out")
    if asked.watch:
        from kubectl_dra.cli.watched import watched

        watched(lambda: _look(asked, connection))
    snapshot = _read(asked, connection)
    snapshot.require_dra()
    found = _chosen(joined(snapshot), asked, snapshot)
    if asked.drain_check:
        return _drain(asked, connection, found, snapshot)
    _print(found, asked, connection, snapshot)
    if any(row.state.broken for row in found.rows):
        return EXIT_NO
    if found.gaps or any(row.state.open for row in found.rows):
        return EXIT_UNDETERMINED
    return 0 if found.rows else EXIT_NO


def _look(asked: DriversFlags, connection: ConnectionFlags) -> tuple[NodeDrivers, Callable[[], None]]:
    """The drivers, and what prints them."""
    snapshot = _read(asked, connection)
    snapshot.require_dra()
    found = _chosen(joined(snapshot), asked, snapshot)
    return found, lambda: _print(found, asked, connection, snapshot)


def _print(found: NodeDrivers, asked: DriversFlags, connection: ConnectionFlags, snapshot: Snapshot) -> None:
    # What is usual is so among all nodes, not among those that were asked for.
    concerns = concerns_of(snapshot, joined(snapshot).rows)
    output = asked.output.value
    if output in ("json", "yaml"):
        from kubectl_dra.report.drivers import to_json
        from kubectl_dra.report.table import write

        write(to_json(found, concerns), output, sys.stdout)
    else:
        from kubectl_dra.report.drivers import write_drivers
        from kubectl_dra.report.notes import sentences
        from kubectl_dra.report.paint import tell

        for note in sentences(map(NotSeen, found.gaps)):
            tell(f"note: {note}")
        at = moment(snapshot)
        if output != "name":
            tell_age(at)
        where = cluster_flags(asked, connection)
        write_drivers(
            found,
            concerns,
            at.at,
            asked.color.value,
            drivers=asked.drivers,
            nodes=asked.nodes,
            output=output,
            where=where,
            limit=asked.limit,
            headers=not asked.no_headers,
        )


def _chosen(found: NodeDrivers, asked: DriversFlags, snapshot: Snapshot) -> NodeDrivers:
    """The rows that were asked for. Raises InputError for a name that nothing has."""
    drivers = {row.driver for row in found.rows}
    for name in asked.drivers:
        if name not in drivers and not found.gaps:
            raise InputError(f"there is no driver {name}; {did_you_mean_or_known(name, drivers)}")
    for name in asked.nodes:
        if name not in snapshot.nodes and not snapshot.is_gap("Node"):
            raise InputError(f"there is no node {name}; {did_you_mean_or_known(name, snapshot.nodes)}")
    rows = (
        row
        for row in found.rows
        if (not asked.drivers or row.driver in asked.drivers) and (not asked.nodes or row.node in asked.nodes)
    )
    return found._replace(rows=tuple(rows))


def _drain(asked: DriversFlags, connection: ConnectionFlags, drivers: NodeDrivers, snapshot: Snapshot) -> int:
    from kubectl_dra.drivers.while_away import WhileAway, updates_of

    (node,) = asked.nodes
    checks = [drain_check(snapshot, node, driver) for driver in asked.drivers or ("",)]
    claims = tuple(claim for check in checks for claim in check.claims)
    found = checks[0]._replace(claims=claims, updates=updates_of(drivers.rows))
    output = asked.output.value
    if output in ("json", "yaml"):
        from kubectl_dra.report.drivers import drain_json
        from kubectl_dra.report.table import write

        write(drain_json(found, node), output, sys.stdout)
    else:
        from kubectl_dra.report.drivers import write_drain
        from kubectl_dra.report.notes import sentences
        from kubectl_dra.report.paint import tell

        for note in sentences(map(NotSeen, found.gaps)):
            tell(f"note: {note}")
        write_drain(found, node, asked.color.value, where=cluster_flags(asked, connection))
    if found.gaps or found.pods(WhileAway.UNKNOWN):
        return EXIT_UNDETERMINED
    return EXIT_NO if found.pods(WhileAway.WAITS, WhileAway.HANGS) else 0


def _read(asked: DriversFlags, connection: ConnectionFlags) -> Snapshot:
    if asked.snapshots:
        with Progress() as progress:
            return read_saved(asked, progress=progress)
    from kubectl_dra.cluster.live import About, ApiServer

    cluster = ApiServer(connection_options(connection, ""))
    with Progress() as progress:
        return cluster.read_snapshot(KINDS, progress=progress, about=About("", reason=NO_POD_MADE))
