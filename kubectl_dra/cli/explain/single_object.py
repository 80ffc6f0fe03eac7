"""``explain`` of what is no pod and no claim: node, class, device, driver, ComputeDomain, VirtualMachine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubectl_dra.api.neighbour_kinds import ComputeDomain
from kubectl_dra.cli import listing
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.devices import ObjectAnswer, listed, print_devices
from kubectl_dra.cli.explain import RELEASE, ExplainFlags, ExplainOutput
from kubectl_dra.cli.explain.reading import asked_settings, read_cluster, with_daemon_sets
from kubectl_dra.cli.explain.target import NotThere, TypedTarget, elsewhere
from kubectl_dra.cli.list_flags import DevicesFlags, DevicesOutput, DriversFlags
from kubectl_dra.cli.options import ConnectionFlags, TableOutput
from kubectl_dra.cluster.snapshot import ABSENT
from kubectl_dra.command import kubectl
from kubectl_dra.errors import UndeterminedError, UsageError
from kubectl_dra.exit_codes import EXIT_NO
from kubectl_dra.explain.devices.arrangement import SortKey
from kubectl_dra.explain.unread_kind import Unread
from kubectl_dra.neighbours.no_pod import INSTANCE, unmade
from kubectl_dra.neighbours.operators import CLIQUE, DOMAIN, domain_state
from kubectl_dra.report.explain_commands import Invocation, command
from kubectl_dra.text import did_you_mean, did_you_mean_or_known, nearest

if TYPE_CHECKING:
    from kubectl_dra.usage.availability import ClassNow, DeviceNow


def run_by_itself(targets: Sequence[TypedTarget], flags: ExplainFlags, connection: ConnectionFlags) -> int:
    """Print what is the case with a node, or with what ``devices`` and ``drivers`` list; return the exit code.

    Raises UsageError: it stands beside something else, or flags ask about a pod or claim; NotThere: no such node.
    """
    if len(targets) > 1:
        raise UsageError("a node, class, device, driver or ComputeDomain is explained by itself: name one at a time")
    (target,) = targets
    if target.kind == "node":
        return _run_node(target.name, flags, connection)
    if target.kind == "computedomain":
        return run_compute_domain(target.name, flags, connection)
    return _run_listed(target, flags, connection)


def _run_node(name: str, flags: ExplainFlags, connection: ConnectionFlags) -> int:
    from kubectl_dra.explain.node_state import known, node_state

    flags.refuse(f"a pod or claim; explain node/{name} is about all pods of the node", RELEASE)
    if flags.output is ExplainOutput.html:
        raise UsageError("explain node/NAME prints text, json or yaml, not html")
    snapshot, _ = read_cluster(flags, connection, everything=True)
    if not known(name, snapshot):
        if snapshot.is_gap("Node"):
            (gap,) = snapshot.unread(("Node",))
            raise UndeterminedError(f"{gap}, so whether there is a node {name} is unknown{gap.help}")
        raise NotThere(f"Node {name}", f"there is no node {name}; {did_you_mean_or_known(name, snapshot.nodes)}")
    settings = asked_settings(flags, snapshot)
    state = node_state(name, snapshot, settings)
    if not flags.snapshots and any(row.state.broken and row.pod is None for row in state.drivers):
        # Its DaemonSet may say why it has no pod.
        state = node_state(name, with_daemon_sets(snapshot, connection), settings)
    where = cluster_flags(flags, connection)
    invocation = Invocation(("kubectl", "dra", "explain", f"node/{name}", *where.flags), where)
    if flags.output is ExplainOutput.text:
        from kubectl_dra.report.node_state import write_node_state

        write_node_state(state, invocation, flags.color.value, full=flags.whole_page)
    else:
        from kubectl_dra.report.json_output import write
        from kubectl_dra.report.node_state import node_state_json

        write(node_state_json(state, invocation), flags.output.value, sys.stdout, state.exit_code)
    return state.exit_code


def run_compute_domain(name: str, flags: ExplainFlags, connection: ConnectionFlags) -> int:
    """Print the state of a ComputeDomain; return the exit code.

    Raises UsageError: what does not go with it; NotThere: no such domain; UndeterminedError: domains were not read.
    """
    flags.refuse("a pod or claim; a ComputeDomain is explained with all of its nodes", ())
    if flags.output is ExplainOutput.html:
        raise UsageError("explain computedomain/NAME prints text, json or yaml, not html")
    snapshot, namespace = read_cluster(flags, connection, everything=True)
    if not flags.snapshots:
        from kubectl_dra.cli.live import with_neighbours
        from kubectl_dra.cluster.pointed_objects import Pointer

        pointed = [Pointer(DOMAIN, namespace), Pointer(CLIQUE)]
        snapshot = with_neighbours(snapshot, lambda _: pointed, connection, flags.namespace)
    known: dict[tuple[str, str], ComputeDomain] = snapshot.others.get(DOMAIN, {})  # type: ignore[assignment]
    spaces = sorted(space for space, other in known if other == name)
    if flags.snapshots and not flags.namespace and len(spaces) == 1:
        namespace = spaces[0]
    domain = known.get((namespace, name))
    if domain is None:
        gap = snapshot.missing(DOMAIN, namespace)
        if gap is not None:
            raise UndeterminedError(f"{gap}, so whether there is a ComputeDomain {name} is unknown{gap.help}")
        near = nearest(name, [other for space, other in known if space == namespace])
        hint = elsewhere(known, name) or did_you_mean(near) or "there is none of that name"
        raise NotThere(f"ComputeDomain {name}", f"no ComputeDomain {name} in namespace {namespace}; {hint}")
    from kubectl_dra.report.compute_domain import compute_domain_json, exit_code, write_compute_domain

    where = cluster_flags(flags, connection)
    target = f"computedomain/{name}"
    invocation = Invocation(("kubectl", "dra", "explain", target, "-n", namespace, *where.flags), where)
    state = domain_state(domain, snapshot)
    if flags.output is not ExplainOutput.text:
        from kubectl_dra.report.json_output import write

        write(compute_domain_json(state, invocation), flags.output.value, sys.stdout, exit_code(state))
        return exit_code(state)
    write_compute_domain(state, invocation, flags.color.value)
    return exit_code(state)


def run_without_pod(name: str, absent: NotThere, flags: ExplainFlags, connection: ConnectionFlags) -> int:
    """Print why there is no pod; return the exit code.

    Raises:
        NotThere: nothing says why, or there is no such virtual machine.
        UndeterminedError: its instance could not be read.
    """
    snapshot, namespace = read_cluster(flags, connection)
    if not flags.snapshots:
        from kubectl_dra.cli.live import with_neighbours
        from kubectl_dra.cluster.pointed_objects import Pointer

        pointed = [Pointer(INSTANCE, namespace, name)]
        snapshot = with_neighbours(snapshot, lambda _: pointed, connection, flags.namespace)
    everywhere = bool(flags.snapshots) and not flags.namespace
    launchers = [launcher for launcher in unmade(snapshot, "" if everywhere else namespace) if launcher.name == name]
    for gap in snapshot.unread((INSTANCE,), namespace) if not launchers else ():
        if gap.reason != ABSENT:
            raise UndeterminedError(f"{gap}, so why virtual machine {name} has no pod is unknown{gap.help}")
    if len(launchers) != 1:
        raise absent
    if flags.output is ExplainOutput.html:
        raise UsageError("explain of a virtual machine without a pod prints text, json or yaml, not html")
    from kubectl_dra.report.json_output import write
    from kubectl_dra.report.overview import unmade_json, write_unmade

    where = cluster_flags(flags, connection)
    if flags.output is ExplainOutput.text:
        write_unmade(launchers[0], where, flags.color.value)
    else:
        write(unmade_json(launchers[0], where), flags.output.value, sys.stdout, EXIT_NO)
    return EXIT_NO


# A class, a device or a driver: what is the case with it first, then the list that shows it.


def _run_listed(target: TypedTarget, flags: ExplainFlags, connection: ConnectionFlags) -> int:
    """Print what is the case with a class, a device or a driver; return the exit code."""
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
    from kubectl_dra.report.availability import answer_json, class_answer
    from kubectl_dra.usage.availability import class_now

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
    from kubectl_dra.report.availability import answer_json, device_answer, why_stuck
    from kubectl_dra.usage.availability import device_now

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
    from kubectl_dra.report.availability import fix_commands
    from kubectl_dra.report.blocks import Items, Section, Tone, prose, shell
    from kubectl_dra.report.blocks_text import write_blocks
    from kubectl_dra.report.color import Painter
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
