"""What ``drivers`` does: read, join drivers with their pods, report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.cli import listing
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.list_flags import DriversFlags
from kubectl_dra.cli.options import ConnectionFlags, TableOutput
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import moment
from kubectl_dra.command import kubectl
from kubectl_dra.drivers.concerns import concerns_of
from kubectl_dra.drivers.daemons import NO_POD_MADE
from kubectl_dra.drivers.drain_check import WhileAway, awaiting, drain_check, evicted_beside, is_absent, updates_of
from kubectl_dra.drivers.drivers_on_nodes import NodeDrivers, joined
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.exit_codes import EXIT_NO, EXIT_UNDETERMINED
from kubectl_dra.explain.clock import Clock
from kubectl_dra.explain.driver_refusals import mendings
from kubectl_dra.explain.unread_kind import NotSeen
from kubectl_dra.report.json_output import write
from kubectl_dra.text import did_you_mean_or_known

KINDS: Final = ("ResourceSlice", "DeviceClass", "ResourceClaim", "Node", "Pod", "DaemonSet", "Event")
"""The kinds that tell how drivers are; of events those about pods that nobody can make or start."""
OF_TAINTS: Final = ("DeviceTaintRule",)
"""The kind that tells which devices are tainted by others than their drivers."""


def run(flags: DriversFlags, connection: ConnectionFlags, explained: str = "") -> int:
    """Lists and prints; returns the exit code. ``explained``: the driver that ``explain`` is asked about."""
    if flags.full and flags.limit is not None:
        raise UsageError("--full shows all drivers; leave --limit out")
    if flags.full and flags.output is TableOutput.text:
        flags = replace(flags, output=TableOutput.wide)
    if flags.drain_check and len(flags.nodes) != 1:
        raise _no_node(flags, connection)
    if flags.drain_check and flags.output is TableOutput.name:
        raise UsageError("--drain-check lists claims and pods: use -o text, wide, json or yaml")
    if flags.watch and (flags.drain_check or flags.output not in (TableOutput.text, TableOutput.wide)):
        raise UsageError("--watch shows the table: leave --drain-check and other outputs out")
    if flags.drain_check:
        return _drain(flags, connection)
    return listing.run(
        lambda: _look(flags, connection, explained), lambda drivers: _code(drivers, flags), watch=flags.watch
    )


def _no_node(flags: DriversFlags, connection: ConnectionFlags) -> UsageError:
    """Error that a drain check needs a node; a name alone was meant as that of one."""
    error = UsageError("--drain-check is about one node: add --node NODE")
    if len(flags.drivers) == 1 and not flags.nodes:
        (name,) = flags.drivers
        error = UsageError(f"--drain-check is about one node, and names of drivers stand where {name} does")
        command = kubectl("dra", "drivers", "--drain-check", "--node", name, others=(name,))
        error.commands = ((f"If {name} is the node", cluster_flags(flags, connection).asks(command)),)
    return error


def _code(drivers: NodeDrivers, flags: DriversFlags) -> int:
    # A class that nobody asks for is no fault of the cluster, but whoever names its driver is told no.
    if any(row.ails if flags.drivers or row.claims or row.hardware else row.state.broken for row in drivers.rows):
        return EXIT_NO
    if drivers.gaps or any(row.state.open for row in drivers.rows):
        return EXIT_UNDETERMINED
    return 0 if drivers.rows else EXIT_NO


def _read(flags: DriversFlags, connection: ConnectionFlags) -> tuple[NodeDrivers, Snapshot]:
    snapshot = listing.read(flags, connection, (*KINDS, *OF_TAINTS), reasons=(NO_POD_MADE, FAILED_PREPARE))
    return _chosen(joined(snapshot), flags, snapshot), snapshot


def _look(flags: DriversFlags, connection: ConnectionFlags, explained: str) -> tuple[NodeDrivers, Callable[[], None]]:
    """The drivers, and what prints them."""
    drivers, snapshot = _read(flags, connection)
    return drivers, lambda: _print(drivers, flags, connection, snapshot, explained)


def _print(
    drivers: NodeDrivers, flags: DriversFlags, connection: ConnectionFlags, snapshot: Snapshot, explained: str
) -> None:
    # What is usual is so among all nodes, not among those that were asked for.
    concerns = concerns_of(snapshot, joined(snapshot).rows)
    output, mends = flags.output.value, mendings(drivers.rows, snapshot)
    if output in ("json", "yaml"):
        from kubectl_dra.report.drivers import to_json

        found = to_json(drivers, concerns, explained, where=cluster_flags(flags, connection), mends=mends)
        write(found, output, sys.stdout, _code(drivers, flags))
    else:
        from kubectl_dra.report.drivers import write_drivers

        listing.tell_notes(map(NotSeen, drivers.gaps))
        at = moment(snapshot)
        if output != "name":
            listing.tell_age(at)
        where = cluster_flags(flags, connection)
        write_drivers(
            drivers,
            concerns,
            at.at,
            flags.color.value,
            drivers=flags.drivers,
            nodes=flags.nodes,
            output=output,
            where=where,
            limit=flags.limit,
            headers=not flags.no_headers,
            explained=explained,
            mends=mends,
        )


def _chosen(by_node: NodeDrivers, flags: DriversFlags, snapshot: Snapshot) -> NodeDrivers:
    """The rows that were asked for. Raises InputError for a name that nothing has."""
    drivers = {row.driver for row in by_node.rows}
    for name in flags.drivers:
        if name not in drivers and not by_node.gaps:
            raise InputError(f"there is no driver {name}; {did_you_mean_or_known(name, drivers)}")
    for name in flags.nodes:
        if name not in snapshot.nodes and not snapshot.is_gap("Node"):
            raise InputError(f"there is no node {name}; {did_you_mean_or_known(name, snapshot.nodes)}")
    rows = (
        row
        for row in by_node.rows
        if (not flags.drivers or row.driver in flags.drivers) and (not flags.nodes or row.node in flags.nodes)
    )
    return by_node._replace(rows=tuple(rows))


def _to_be_had(snapshot: Snapshot, node: str, flags: DriversFlags) -> int:
    """Number of devices of a node that new pods may get, or shares of them; 0 where that is not known."""
    from kubectl_dra.cli.release import assumed
    from kubectl_dra.explain.devices.device_state import DeviceState
    from kubectl_dra.explain.devices.inventory import take_inventory
    from kubectl_dra.explain.devices.wanted import Wanted

    known = snapshot.nodes.get(node)
    if known is None or known.unschedulable or snapshot.is_gap("ResourceSlice"):
        return 0
    cycle = assumed(snapshot).scheduler.cycle(snapshot)
    rows = take_inventory(snapshot, cycle, Wanted(nodes=(node,))).rows
    asked = (row for row in rows if not flags.drivers or row.id.driver in flags.drivers)
    return sum(row.has_room or (row.state is DeviceState.UNKNOWN and not row.holders) for row in asked)


def _drain(flags: DriversFlags, connection: ConnectionFlags) -> int:
    drivers, snapshot = _read(flags, connection)
    (node,) = flags.nodes
    checks = [drain_check(snapshot, node, driver) for driver in flags.drivers or ("",)]
    users = checks[0]._replace(
        claims=tuple(claim for check in checks for claim in check.claims),
        of_plugins=tuple(user for check in checks for user in check.of_plugins),
        updates=updates_of(drivers.rows),
        rows=drivers.rows,
        awaiting=awaiting(drivers.rows, snapshot),
        free=_to_be_had(snapshot, node, flags),
        absent=is_absent(drivers, snapshot),
        asked=flags.drivers,
    )
    # A pod of one driver may use another that was not asked about.
    users = users._replace(beside=tuple(evicted_beside(drain_check(snapshot, node), snapshot, node)))
    output = flags.output.value
    code = EXIT_UNDETERMINED if users.pods(WhileAway.MAY_FAIL, WhileAway.LOST) else 0
    # What waits for a driver that is broken anyway waits no longer for its restart.
    if users.pods(WhileAway.WAITS, WhileAway.HANGS):
        code = EXIT_NO
    if users.gaps or users.pods(WhileAway.UNKNOWN):
        code = EXIT_UNDETERMINED
    if output in ("json", "yaml"):
        from kubectl_dra.report.drain_check import drain_json

        write(drain_json(users, node, cluster_flags(flags, connection)), output, sys.stdout, code)
    else:
        from kubectl_dra.report.drain_check import write_drain

        listing.tell_notes(map(NotSeen, users.gaps))
        mends = mendings(drivers.rows, snapshot)
        where = cluster_flags(flags, connection)
        write_drain(users, node, flags.color.value, where=where, mends=mends, clock=Clock(snapshot))
    return code
