"""What ``devices`` does: read, list, report."""

from __future__ import annotations

import sys
from collections.abc import Callable

from msgspec.structs import replace

from kubectl_dra.cel import CompileError, Environment, Program, compile_expression
from kubectl_dra.cli.assumed import assumed
from kubectl_dra.cli.devices import DevicesFlags, DevicesOutput
from kubectl_dra.cli.live import Progress, connection_options, read_saved
from kubectl_dra.cli.options import ConnectionFlags, cluster_flags, repeated
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CommandLine
from kubectl_dra.console import put
from kubectl_dra.errors import UsageError
from kubectl_dra.explain.assumptions import rules_notes
from kubectl_dra.explain.devices.alike_devices import alike_devices, ordered, singly, tallies
from kubectl_dra.explain.devices.arrangement import SortKey
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import Inventory, Wanted, take_inventory
from kubectl_dra.explain.settings import Settings

KINDS = ("ResourceSlice", "DeviceClass", "ResourceClaim", "DeviceTaintRule", "Node")
"""The kinds that the list is made from."""
EXIT_NONE = 1
EXIT_UNDETERMINED = 3


def run(asked: DevicesFlags, connection: ConnectionFlags) -> int:
    """Lists and prints; returns the exit code.

    Raises:
        DraError: wrong usage, a name that does not exist, input that cannot be read, a cluster that does not
            answer.
    """
    _check(asked)
    if asked.watch:
        from kubectl_dra.cli.watched import watched

        watched(lambda: _look(asked, connection))
    inventory, show = _look(asked, connection)
    show()
    # Names are known without the states of what they name.
    named = asked.output is DevicesOutput.name
    unknown = not named and any(row.state is DeviceState.UNKNOWN for row in inventory.rows)
    return EXIT_UNDETERMINED if inventory.unread or unknown else 0 if inventory.rows else EXIT_NONE


def _look(asked: DevicesFlags, connection: ConnectionFlags) -> tuple[Inventory, Callable[[], None]]:
    """The devices, and what prints them."""
    snapshot = _read(asked, connection)
    snapshot.require_dra()
    settings = assumed(snapshot, asked.release, asked.gates)
    cycle = settings.scheduler.cycle(snapshot)
    named = tuple(word for word in asked.places if "/" in word)
    wanted = Wanted(
        devices=named,
        drivers=asked.drivers,
        nodes=(*(word for word in asked.places if word not in named), *asked.nodes),
        pools=asked.pools,
        classes=asked.classes,
        selector=compiled_selector(asked.selector, cycle.selectors.environment) if asked.selector else None,
        namespace=asked.namespace,
        free=asked.free,
        tainted=asked.tainted,
    )
    inventory = take_inventory(snapshot, cycle, wanted, rules_notes(snapshot, settings))
    return inventory, lambda: _print(inventory, settings, snapshot, asked, connection)


def _print(
    inventory: Inventory, settings: Settings, snapshot: Snapshot, asked: DevicesFlags, connection: ConnectionFlags
) -> None:
    output = asked.output.value
    if output in ("text", "wide", "name"):
        _write_text(inventory, asked, connection)
        return
    if asked.sort is not SortKey.name:
        inventory = replace(inventory, rows=tuple(group.first for group in ordered(singly(inventory.rows), asked.sort)))
    if output == "html":
        from kubectl_dra.report.devices_html import to_html
        from kubectl_dra.report.html.page import PageOrigin

        put(to_html(inventory, settings, PageOrigin.of(snapshot, settings.scheduler.release)))
        return
    from kubectl_dra.report.devices_json import to_json, write_json
    from kubectl_dra.report.table import write

    result = to_json(inventory, settings, asked.by, tallies(inventory, asked.by, asked.sort) if asked.by else ())
    if output == "json":
        write_json(result, sys.stdout)
    else:
        write(result, output, sys.stdout)


def _check(asked: DevicesFlags) -> None:
    """Raises UsageError for flags that do not go together."""
    if asked.namespace and asked.all_namespaces:
        raise UsageError("-n and -A exclude one another: -A lists what claims of all namespaces hold")
    if asked.watch and asked.output not in (DevicesOutput.text, DevicesOutput.wide):
        raise UsageError("--watch shows the table: leave other outputs out")
    if asked.by is not None:
        if asked.output.value in ("wide", "name", "html"):
            raise UsageError(f"--by counts devices; -o {asked.output.value} lists them: use one of the two")
        if asked.full:
            raise UsageError("--by counts devices; --full lists each: use one of the two")
        if asked.sort in (SortKey.class_, SortKey.model, SortKey.state):
            raise UsageError(f"--by counts devices: sort by name, devices, free or held, not by {asked.sort}")


def _write_text(inventory: Inventory, asked: DevicesFlags, connection: ConnectionFlags) -> None:
    from kubectl_dra.report.devices import write_counts, write_names, write_table
    from kubectl_dra.report.notes import sentences
    from kubectl_dra.report.paint import tell

    for note in sentences(inventory.notes):
        tell(f"note: {note}")
    if asked.by is not None:
        counts = tallies(inventory, asked.by, asked.sort)
        write_counts(inventory, counts, asked.by, asked.color.value, limit=asked.limit, headers=not asked.no_headers)
        return
    wide = asked.output is DevicesOutput.wide
    each = asked.full or wide or asked.output is DevicesOutput.name
    groups = ordered((singly if each else alike_devices)(inventory.rows), asked.sort)
    if asked.output is DevicesOutput.name:
        write_names(groups[: asked.limit])
    else:
        write_table(
            inventory,
            groups,
            asked.color.value,
            wide=wide,
            more=_full(asked, connection),
            limit=asked.limit,
            headers=not asked.no_headers,
        )


def _full(asked: DevicesFlags, connection: ConnectionFlags) -> CommandLine:
    """The command that lists each device of the same selection."""
    flags = {
        "--driver": asked.drivers,
        "--node": asked.nodes,
        "--pool": asked.pools,
        "--class": asked.classes,
        "--selector": (asked.selector,),
        "-n": (asked.namespace,),
    }
    switches = [flag for flag, given in (("--free", asked.free), ("--tainted", asked.tainted)) if given]
    command = CommandLine(("kubectl", "dra", "devices", *asked.places, *repeated(flags), *switches, "--full"))
    return cluster_flags(asked, connection).asks(command)


def _read(asked: DevicesFlags, connection: ConnectionFlags) -> Snapshot:
    if asked.snapshots:
        return read_saved(asked)
    from kubectl_dra.cluster.live import ApiServer

    cluster = ApiServer(connection_options(connection, ""))
    with Progress() as progress:
        return cluster.read_snapshot(KINDS, progress=progress)


def compiled_selector(expression: str, environment: Environment) -> Program:
    """The program of --selector. Raises UsageError, with the place, where it does not compile."""
    try:
        return compile_expression(environment, expression)
    except CompileError as error:
        message = "--selector does not compile"
        lines: list[str] = []
        for issue in error.issues[:3]:
            hint = f" ({issue.hint})" if issue.hint else ""
            said = f"{issue.message}{hint}"
            if lines:
                lines.append(said)
            else:
                message += f": {said}"
            if issue.line:
                text = expression.splitlines()[issue.line - 1] if issue.line <= len(expression.splitlines()) else ""
                lines += [f"  {text}", f"  {' ' * (issue.column - 1)}^"]
        raise UsageError(message, lines) from None
