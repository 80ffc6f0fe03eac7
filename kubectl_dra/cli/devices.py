"""What ``devices`` does: read, list, report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.meta import FAILED_PREPARE
from kubectl_dra.cli import listing
from kubectl_dra.cli.command_line import cluster_flags, repeated
from kubectl_dra.cli.list_flags import DevicesFlags, DevicesOutput
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.release import assumed
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CommandLine
from kubectl_dra.errors import UsageError
from kubectl_dra.exit_codes import EXIT_NO, EXIT_UNDETERMINED
from kubectl_dra.explain.assumptions import rules_notes
from kubectl_dra.explain.devices.alike_devices import alike_devices, judged_by_start, ordered, singly, tallies
from kubectl_dra.explain.devices.arrangement import SortKey
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import Inventory, take_inventory
from kubectl_dra.explain.devices.wanted import Wanted, compiled_selector
from kubectl_dra.explain.settings import Settings
from kubectl_dra.report.json_output import with_exit_code, write
from kubectl_dra.safe_output import put

if TYPE_CHECKING:
    from kubectl_dra.report.blocks import Answer

KINDS = ("ResourceSlice", "DeviceClass", "ResourceClaim", "DeviceTaintRule", "Node")
"""The kinds that the list is made from."""
OF_DRIVERS = ("Pod", "Event")
"""The kinds that tell where drivers do not run; of events those about pods that a driver does not prepare."""


def run(flags: DevicesFlags, connection: ConnectionFlags) -> int:
    """Lists and prints; returns the exit code."""
    _check(flags)
    return listing.run(lambda: _look(flags, connection), lambda found: _code(found, flags), watch=flags.watch)


def _code(inventory: Inventory, flags: DevicesFlags) -> int:
    # Names are known without the states of what they name.
    named = flags.output is DevicesOutput.name
    unknown = not named and any(row.state is DeviceState.UNKNOWN for row in inventory.rows)
    return EXIT_UNDETERMINED if inventory.unread or unknown else 0 if inventory.rows else EXIT_NO


def _look(flags: DevicesFlags, connection: ConnectionFlags) -> tuple[Inventory, Callable[[], None]]:
    """The devices, and what prints them."""
    inventory, settings, snapshot = listed(flags, connection)
    return inventory, lambda: print_devices(inventory, settings, snapshot, flags, connection)


def listed(flags: DevicesFlags, connection: ConnectionFlags) -> tuple[Inventory, Settings, Snapshot]:
    """The devices that are wanted, what was assumed, and the cluster."""
    kinds = KINDS if flags.output is DevicesOutput.name and not flags.free else (*KINDS, *OF_DRIVERS)
    snapshot = listing.read(flags, connection, kinds, flags.namespace, reasons=(FAILED_PREPARE,))
    settings = assumed(snapshot, flags.release, flags.gates)
    cycle = settings.scheduler.cycle(snapshot)
    named = tuple(word for word in flags.places if "/" in word)
    wanted = Wanted(
        devices=named,
        drivers=flags.drivers,
        nodes=(*(word for word in flags.places if word not in named), *flags.nodes),
        pools=flags.pools,
        classes=flags.classes,
        selector=compiled_selector(flags.selector, cycle.selectors.environment) if flags.selector else None,
        namespace=flags.namespace,
        free=flags.free,
        tainted=flags.tainted,
    )
    inventory = take_inventory(snapshot, cycle, wanted, rules_notes(snapshot, settings))
    return judged_by_start(inventory, snapshot) if "Pod" in kinds else inventory, settings, snapshot


class ObjectAnswer(NamedTuple):
    """The answer about the one object whose devices are listed: for text, for JSON, and its exit code."""

    answer: Answer
    json: Mapping[str, object]
    code: int


def print_devices(
    inventory: Inventory,
    settings: Settings,
    snapshot: Snapshot,
    flags: DevicesFlags,
    connection: ConnectionFlags,
    explained: ObjectAnswer | None = None,
) -> None:
    """Print the devices, behind the answer of which they are the evidence if there is one."""
    output = flags.output.value
    if output in ("text", "wide", "name"):
        _write_text(inventory, flags, connection, explained)
        return
    if flags.sort is not SortKey.name:
        inventory = replace(inventory, rows=tuple(group.first for group in ordered(singly(inventory.rows), flags.sort)))
    if output == "html":
        from kubectl_dra.report.html.page import PageOrigin
        from kubectl_dra.report.html.pages import devices_html

        origin = PageOrigin.of(snapshot, settings.scheduler.release)
        put(devices_html(inventory, settings, origin, cluster_flags(flags, connection)))
        return
    from kubectl_dra.report.devices_json import to_json, write_json

    counts = tallies(inventory, flags.by, flags.sort) if flags.by else ()
    result = to_json(inventory, settings, flags.by, counts, where=cluster_flags(flags, connection))
    code = explained.code if explained is not None else _code(inventory, flags)
    if explained is not None:
        result |= explained.json
    if output == "json":
        write_json(with_exit_code(result, code), sys.stdout)
    else:
        write(result, output, sys.stdout, code)


def _check(flags: DevicesFlags) -> None:
    """Raises UsageError for flags that do not go together."""
    if flags.namespace and flags.all_namespaces:
        raise UsageError("-n and -A exclude one another: -A lists what claims of all namespaces hold")
    if flags.watch and flags.output not in (DevicesOutput.text, DevicesOutput.wide):
        raise UsageError("--watch shows the table: leave other outputs out")
    if flags.by is not None:
        if flags.output.value in ("wide", "name", "html"):
            raise UsageError(f"--by counts devices; -o {flags.output.value} lists them: use one of the two")
        if flags.full:
            raise UsageError("--by counts devices; --full lists each: use one of the two")
        if flags.sort in (SortKey.class_, SortKey.model, SortKey.state):
            raise UsageError(f"--by counts devices: sort by name, devices, free or held, not by {flags.sort}")


def _write_text(
    inventory: Inventory, flags: DevicesFlags, connection: ConnectionFlags, explained: ObjectAnswer | None
) -> None:
    from kubectl_dra.report.devices import write_counts, write_names, write_table

    listing.tell_notes(inventory.notes, cluster_flags(flags, connection))
    if flags.by is not None:
        counts = tallies(inventory, flags.by, flags.sort)
        write_counts(inventory, counts, flags.by, flags.color.value, limit=flags.limit, headers=not flags.no_headers)
        return
    wide = flags.output is DevicesOutput.wide
    one_by_one = flags.full or wide or flags.output is DevicesOutput.name
    groups = ordered((singly if one_by_one else alike_devices)(inventory.rows), flags.sort)
    if flags.output is DevicesOutput.name:
        write_names(groups[: flags.limit])
    else:
        write_table(
            inventory,
            groups,
            flags.color.value,
            wide=wide,
            more=_full(flags, connection),
            limit=flags.limit,
            headers=not flags.no_headers,
            answer=explained.answer if explained is not None else None,
        )


def _full(typed: DevicesFlags, connection: ConnectionFlags) -> CommandLine:
    """The command that lists each device of the same selection."""
    flags = {
        "--driver": typed.drivers,
        "--node": typed.nodes,
        "--pool": typed.pools,
        "--class": typed.classes,
        "--selector": (typed.selector,),
        "-n": (typed.namespace,),
    }
    switches = [flag for flag, given in (("--free", typed.free), ("--tainted", typed.tainted)) if given]
    command = CommandLine(("kubectl", "dra", "devices", *typed.places, *repeated(flags), *switches, "--full"))
    return cluster_flags(typed, connection).asks(command)
