"""What ``devices`` does: read, list, report."""

from __future__ import annotations

import sys

from kubectl_dra.cel import CompileError, Environment, Program, compile_expression
from kubectl_dra.cli.assumed import assumed
from kubectl_dra.cli.devices.flags import DevicesFlags
from kubectl_dra.cli.live import Progress, connection_options
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import UsageError
from kubectl_dra.explain.devices.inventory import take_inventory
from kubectl_dra.explain.devices.selection import Wanted
from kubectl_dra.explain.scene.assumptions import rules_notes
from kubectl_dra.explain.scene.prepare import cycle_of

KINDS = ("ResourceSlice", "DeviceClass", "ResourceClaim", "DeviceTaintRule", "Node")
"""The kinds that the list is made from."""
EXIT_NONE = 1


def run(asked: DevicesFlags, connection: ConnectionFlags) -> int:
    """Lists and prints; returns the exit code.

    Raises:
        DraError: wrong usage, a name that does not exist, input that cannot be read, a cluster that does not
            answer.
    """
    output, color = asked.output.value, asked.color.value
    snapshot = _read(asked, connection)
    settings = assumed(snapshot, asked.release, asked.gates)
    cycle = cycle_of(snapshot, settings)
    wanted = Wanted(
        drivers=asked.drivers,
        nodes=asked.nodes,
        pools=asked.pools,
        classes=asked.classes,
        selector=compiled_selector(asked.selector, cycle.selectors.environment) if asked.selector else None,
        free=asked.free,
        tainted=asked.tainted,
    )
    inventory = take_inventory(snapshot, cycle, wanted, rules_notes(snapshot, settings))
    if output in ("json", "yaml"):
        from kubectl_dra.report.devices_json import to_json, write_json
        from kubectl_dra.report.structured import write

        result = to_json(inventory, settings)
        if output == "json":
            write_json(result, sys.stdout)
        else:
            write(result, output, sys.stdout)
    elif output == "html":
        from kubectl_dra.report.devices_html import to_html

        sys.stdout.write(to_html(inventory, settings))
    else:
        from kubectl_dra.report.devices_text import write_names, write_table
        from kubectl_dra.report.paint import tell
        from kubectl_dra.report.phrases import written

        for note in inventory.notes:
            tell(f"note: {written(note)}")
        if output == "name":
            write_names(inventory)
        else:
            write_table(inventory, color, wide=output == "wide")
    return 0 if inventory.rows else EXIT_NONE


def _read(asked: DevicesFlags, connection: ConnectionFlags) -> Snapshot:
    if asked.snapshots:
        from kubectl_dra.cluster.files import read_snapshot

        return read_snapshot(list(asked.snapshots))
    from kubectl_dra.cluster.live import Cluster

    cluster = Cluster(connection_options(connection, ""))
    with Progress() as progress:
        return cluster.read_snapshot(KINDS, progress=progress)


def compiled_selector(expression: str, environment: Environment) -> Program:
    """The program of --selector. Raises UsageError, with the place, where it does not compile."""
    try:
        return compile_expression(environment, expression)
    except CompileError as error:
        lines = ["--selector does not compile"]
        for issue in error.issues[:3]:
            hint = f" ({issue.hint})" if issue.hint else ""
            lines[-1] += f": {issue.message}{hint}"
            if issue.line:
                text = expression.splitlines()[issue.line - 1] if issue.line <= len(expression.splitlines()) else ""
                lines += [f"  {text}", f"  {' ' * (issue.column - 1)}^"]
        raise UsageError("\n".join(lines)) from None
