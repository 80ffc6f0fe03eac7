"""``explain`` of a class, a device or a driver: what is the case with it first, then the list that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubectl_dra.cli import listing
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.devices import ObjectAnswer, listed, print_devices
from kubectl_dra.cli.explain import RELEASE, ExplainFlags, ExplainOutput
from kubectl_dra.cli.explain.target import TypedTarget
from kubectl_dra.cli.list_flags import DevicesFlags, DevicesOutput, DriversFlags
from kubectl_dra.cli.options import ConnectionFlags, TableOutput
from kubectl_dra.command import kubectl
from kubectl_dra.errors import UsageError
from kubectl_dra.explain.devices.arrangement import SortKey
from kubectl_dra.explain.unread import Unread

if TYPE_CHECKING:
    from kubectl_dra.usage.had_now import ClassNow, DeviceNow


def run_listed(target: TypedTarget, flags: ExplainFlags, connection: ConnectionFlags) -> int:
    """Print what is the case with a class, a device or a driver; return the exit code.

    Raises:
        DraError: flags ask about a pod or claim, a name that does not exist, a cluster that does not answer.
    """
    allowed = ("--node",) if target.kind == "driver" else ("--node", *RELEASE)
    flags.refuse(f"a pod or claim, not a {target.kind}", allowed)
    if target.kind == "driver":
        return _run_driver(target.name, flags, connection)
    chosen = DevicesFlags(
        places=(_as_place(target.name),) if target.kind == "device" else (),
        classes=(target.name,) if target.kind == "class" else (),
        nodes=(flags.node,) if flags.node else (),
        full=flags.whole_page,
        snapshots=flags.snapshots,
        complete=flags.complete,
        output=DevicesOutput(flags.output.value),
        color=flags.color,
        release=flags.release,
        gates=flags.gates,
    )
    return _run_class(target.name, chosen, connection) if target.kind == "class" else _run_device(chosen, connection)


def _run_class(name: str, flags: DevicesFlags, connection: ConnectionFlags) -> int:
    from kubectl_dra.report.had_now import answer_json, class_answer
    from kubectl_dra.usage.had_now import class_now

    inventory, settings, snapshot = listed(flags, connection)
    now = class_now(name, inventory, snapshot, settings.scheduler)
    answer = class_answer(now)
    about = answer_json("DeviceClass", name, now, answer, cluster_flags(flags, connection))
    if flags.output is DevicesOutput.text and not flags.full:
        # What can be had comes first: not all rows are shown.
        flags = replace(flags, sort=SortKey.state)
    print_devices(inventory, settings, snapshot, flags, connection, ObjectAnswer(answer, about, now.exit_code))
    _print_rest(now, flags, connection)
    return now.exit_code


def _run_device(flags: DevicesFlags, connection: ConnectionFlags) -> int:
    from kubectl_dra.report.had_now import answer_json, device_answer, why_stuck
    from kubectl_dra.usage.had_now import device_now

    inventory, settings, snapshot = listed(flags, connection)
    if len(inventory.rows) != 1:
        # Several devices, or the same name on several nodes.
        print_devices(inventory, settings, snapshot, flags, connection)
        return max((device_now(row, snapshot, settings).exit_code for row in inventory.rows), default=1)
    now = device_now(inventory.rows[0], snapshot, settings)
    unsure = (unread_kind for unread_kind in now.unsure if isinstance(unread_kind, Unread))
    inventory = replace(inventory, unread=tuple(dict.fromkeys((*inventory.unread, *unsure))))
    answer = device_answer(now)
    about = answer_json("Device", str(now.row.id), now, answer, cluster_flags(flags, connection))
    if flags.output is not DevicesOutput.text:
        print_devices(inventory, settings, snapshot, flags, connection, ObjectAnswer(answer, about, now.exit_code))
        return now.exit_code
    from kubectl_dra.cluster.time_read import moment
    from kubectl_dra.report.blocks_text import write_blocks
    from kubectl_dra.report.color import Painter
    from kubectl_dra.report.devices import write_device_facts

    listing.tell_notes(inventory.notes, cluster_flags(flags, connection))
    out = Painter(color=flags.color.value)
    write_blocks(out, [device_answer(now, whole=False)])
    out.write("")
    if why := why_stuck(now):
        out.paragraph(f"{why}.", indent=" " * 10, first="Why".ljust(10))
    read = not snapshot.is_gap("DeviceClass")
    write_device_facts(out, now.row, now.uses, moment(snapshot).at, full=flags.full, classes_read=read)
    _print_rest(now, flags, connection)
    return now.exit_code


def _print_rest(now: ClassNow | DeviceNow, flags: DevicesFlags, connection: ConnectionFlags) -> None:
    """The fix with its commands and the next command, of text."""
    if flags.output is not DevicesOutput.text:
        return
    from kubectl_dra.report.blocks import Items, Section, Tone, prose, shell
    from kubectl_dra.report.blocks_text import write_blocks
    from kubectl_dra.report.color import Painter
    from kubectl_dra.report.explain_commands import Invocation, command
    from kubectl_dra.report.had_now import fix_commands
    from kubectl_dra.report.phrases import written

    out, where = Painter(color=flags.color.value), cluster_flags(flags, connection)
    if now.fix is not None:
        how = [shell((command_line,), where) for command_line in fix_commands(now.fix)]
        write_blocks(out, [Section("Fixes", (Items(((prose(written(now.fix.change), Tone.GOOD, 0), *how),)),))])
    if (following := command(now.next, Invocation())) is not None:
        write_blocks(out, [shell((following,), where, "Next")])


def _run_driver(name: str, flags: ExplainFlags, connection: ConnectionFlags) -> int:
    from kubectl_dra.cli.drivers import run

    if flags.output is ExplainOutput.html:
        raise UsageError("explain driver/NAME prints text, json or yaml, not html")
    chosen = DriversFlags(
        drivers=(name,),
        nodes=(flags.node,) if flags.node else (),
        snapshots=flags.snapshots,
        complete=flags.complete,
        output=TableOutput.wide if flags.whole_page else TableOutput(flags.output.value),
        color=flags.color,
    )
    return run(chosen, connection, explained=name)


def _as_place(name: str) -> str:
    """A device as ``devices`` takes it. Raises UsageError for one without its node, of which there may be many."""
    if "/" not in name:
        error = UsageError(f"name the node of device {name} as well: device/NODE/{name}")
        node = kubectl("dra", "explain", kind="node", name=name)
        error.commands = (("Names", kubectl("dra", "devices")), (f"If {name} is a node", node))
        raise error
    return name
