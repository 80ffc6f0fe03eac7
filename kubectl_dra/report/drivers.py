"""Drivers on nodes: a table with a summary before it and the command that shows why the worst is as it is; and as JSON.

JSON and YAML have the shape of ``schemas/drivers.json``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.command import ClusterFlags
from kubectl_dra.drivers.concerns import Concern
from kubectl_dra.drivers.drivers_on_nodes import NodeDrivers
from kubectl_dra.drivers.health import DaemonState, DriverPod, DriverState, NodeDriver
from kubectl_dra.explain.diagnosis import Remedy
from kubectl_dra.explain.driver_repair import remedy
from kubectl_dra.explain.driver_words import concern_words, next_look, tainted_words, why
from kubectl_dra.grouped import grouped
from kubectl_dra.report.bars import write_matrix
from kubectl_dra.report.blocks import Answer, TableBlock, Tone, shell
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.color import Painter
from kubectl_dra.report.explain_commands import Invocation, command
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import gap_json, object_json, owner_json, taint_json
from kubectl_dra.report.phrases import written
from kubectl_dra.report.remedy_json import command_json, remedy_json
from kubectl_dra.report.table import EMPTY
from kubectl_dra.taint import times
from kubectl_dra.text import amount, some

MAX_ROWS: Final = 30
Concerns = Mapping[tuple[str, str], tuple[Concern, ...]]
"""What is odd, by driver and node."""
HEADER: Final = ("DRIVER", "NODE", "STATE", "DEVICES", "RESTARTS", "VERSION", "SINCE", "POD")
WIDE: Final = ("SLICES", "GENERATION", "API", "IMAGE", "GATES")
BELOW: Final = ("NOTE", "WHY", "POD", "GATES", "IMAGE", "API", "GENERATION", "SLICES", "VERSION", "SINCE", "RESTARTS")
"""What goes below a row that is too long, first to go first."""
_BELOW: Final = tuple(name for name in BELOW if name not in WIDE)


def write_drivers(
    by_node: NodeDrivers,
    concerns: Concerns,
    at: datetime,
    color: str = "auto",
    *,
    output: str = "text",
    where: ClusterFlags,
    drivers: Sequence[str] = (),
    nodes: Sequence[str] = (),
    limit: int | None = None,
    headers: bool = True,
    explained: str = "",
    mends: Mapping[str, Remedy] = MappingProxyType({}),
) -> None:
    """Write the table below its summary, or below the answer about the driver that is ``explained``.

    It has at most ``limit`` rows (30 if that is None), with ages as of ``at``; without ``headers`` these are all.

    ``drivers`` and ``nodes`` are those that were asked for, if not all. ``mends`` is what ends the failures of drivers
    to prepare devices, where the reason is known.
    """
    out = Painter(color=color, bare=not headers)
    if output == "name":
        for row in by_node.rows[:limit]:
            out.write(f"{row.driver}/{row.node}")
        return
    if not by_node.rows:
        out.sentence(_nothing(by_node, drivers, nodes))
        return
    # In a pipe a row says all of its own, in columns that are always the same.
    shared = _shared(by_node.rows) if out.limit is not None else {}
    if headers:
        _write_head(out, by_node, shared, explained)
    write_matrix(out, by_node.rows, {state: _style(state) for state in DriverState})
    shown, wide = by_node.rows[: limit or MAX_ROWS], output == "wide"
    # The answer about a driver says why of the first.
    told = [row.state in shared or bool(explained and row is shown[0]) for row in shown]
    rows = [tuple(_cells(row, wide, at, known)) for row, known in zip(shown, told, strict=True)]
    notes = [_notes(row, concerns) or EMPTY for row in shown]
    table = [(*HEADER, *(WIDE if wide else ()), "WHY", "NOTE")]
    table += [(*row, note) for row, note in zip(rows, notes, strict=True)]
    marks = [(row.state.value, _style(row.state)) for row in shown]
    table = _filled(table, ("NOTE",) if out.limit is None else _OPTIONAL)
    hidden, below = len(by_node.rows) - len(shown), BELOW if wide else _BELOW
    write_blocks(out, [TableBlock(table, below, True, "STATE", marks, hidden, "--limit shows more")])
    if headers:
        _write_steps(out, by_node, where, mends)


def _write_head(out: Painter, by_node: NodeDrivers, shared: Mapping[DriverState, str], explained: str) -> None:
    """Write the answer or the summary, and why drivers are in a state where that is the same for all."""
    if explained:
        write_blocks(out, [driver_answer(explained, by_node)])
    else:
        out.sentence(summary(by_node))
    for state, reason in shared.items():
        if not explained or state is not by_node.rows[0].state:
            out.sentence(f"{state.value}: {reason}")
    out.write("")


def _write_steps(out: Painter, by_node: NodeDrivers, where: ClusterFlags, mends: Mapping[str, Remedy]) -> None:
    """Write what to do about the worst, and the command that shows why it is as it is."""
    first = by_node.rows[0]
    # Where nothing ails the first, taints of another may say more.
    for row in (first, *(row for row in by_node.rows if row.tainted and not first.ails)):
        if (fix := remedy(row, mends)) is not None:
            out.write("")
            # Of taints the text names no driver.
            about = "" if row.ails or len(by_node.rows) == 1 else f" for {row.driver} on {row.node or 'no node'}"
            out.sentence(f"Fix{about}: {written(fix.change)}")
            write_blocks(out, [shell((command_line,), where) for command_line in fix.commands])
            first = row
            break
    # Why nobody knows how a driver is shows in the cluster only if everything could be read.
    shows = first.ails or (first.state is DriverState.UNKNOWN and not by_node.gaps)
    if shows and (following := command(next_look(first), Invocation())) is not None:
        write_blocks(out, [shell((following,), where, "Next")])


_OPTIONAL: Final = ("RESTARTS", "VERSION", "SINCE", "POD", "WHY", "NOTE")
"""Columns that are left out on a terminal where no row has anything in them."""


def _filled(table: Sequence[tuple[str, ...]], optional: Sequence[str]) -> list[tuple[str, ...]]:
    """The table without the optional columns of which no row has anything."""
    columns = enumerate(zip(*table, strict=True))
    kept = [number for number, (name, *cells) in columns if name not in optional or {*cells} != {EMPTY}]
    return [tuple(row[number] for number in kept) for row in table]


def _nothing(by_node: NodeDrivers, drivers: Sequence[str], nodes: Sequence[str]) -> str:
    """Note that none of what was asked for was found, and in what."""
    called = f"{' or '.join(drivers)} " if drivers else ""
    place = f" on {' or '.join(nodes)}" if nodes else ""
    text = f"No driver {called}was found{place} in what was read"
    if by_node.gaps or drivers or nodes:
        return f"{text}."
    return f"{text}: none publishes devices, and no pod looks like one."


def _notes(row: NodeDriver, concerns: Concerns) -> str:
    oddities = [concern_words(concern, row.driver, row.node) for concern in concerns.get((row.driver, row.node), ())]
    return "; ".join(filter(None, map(written, (tainted_words(row), *oddities))))


def _shared(rows: Sequence[NodeDriver]) -> Mapping[DriverState, str]:
    """Why drivers are in a state, where several are and for the same reason: that is said once."""
    reasons = grouped((row.state, written(why(row, naming=False))) for row in rows)
    return {state: said[0] for state, said in reasons.items() if said[1:] and said[0] and len({*said}) == 1}


def summary(by_node: NodeDrivers) -> str:
    """Number of drivers, and of drivers in each state."""
    states = Counter(row.state for row in by_node.rows)
    listed = ", ".join(f"{states[state]:,} {state.value}" for state in DriverState if states[state])
    drivers = {row.driver for row in by_node.rows}
    nodes = {row.node for row in by_node.rows} - {""}
    places = amount(len(nodes), "node") if nodes else "no node"
    return f"{amount(len(drivers), 'driver')} on {places}: {listed}"


def driver_answer(name: str, by_node: NodeDrivers) -> Answer:
    """What is wrong with a driver first, and on how many nodes; or that nothing is."""
    lead, rows = f"Driver {name}", by_node.rows
    if not rows:
        return Answer(lead, "it was not found in what was read", Tone.WARNING)
    first, states = rows[0], Counter(row.state for row in rows)
    on = f" on {first.node}" if first.node else ""
    nodes = amount(len({row.node for row in rows} - {""}), "node")
    devices, tainted = amount(sum(row.devices for row in rows)), _tainted(rows)
    if first.state is DriverState.UNKNOWN and len(states) == 1 and len({written(why(row)) for row in rows}) == 1:
        said = f"it publishes {devices} on {nodes}{tainted}; whether it runs there is unknown: {written(why(first))}"
        return Answer(lead, said, Tone.WARNING)
    if first.state.broken or first.state.open:
        same, others = states[first.state] - 1, len(rows) - states[first.state]
        rest = Counter(row.state.value for row in rows if row.state is not first.state)
        counted = ", ".join(f"{count:,} {state}" for state, count in rest.items())
        alike = f" and {amount(same, 'more node')}" if same else ""
        besides = f" ({counted} on {amount(others, 'more node')})" if others else ""
        said = f"{lead}: {first.state.value}{on}{alike}{besides}"
        return Answer(said, f"{written(why(first))}{tainted}", Tone.BAD if first.state.broken else Tone.WARNING)
    if not states[DriverState.HEALTHY]:
        return Answer(lead, f"{written(why(first))}{tainted}", Tone.WARNING)
    if tainted:
        return Answer(lead, f"it runs on {nodes} and publishes {devices}{tainted}", Tone.WARNING)
    return Answer(lead, f"nothing is wrong on {nodes}; it publishes {devices}", Tone.GOOD)


def _tainted(rows: Sequence[NodeDriver]) -> str:
    """Number of devices that taints keep from new claims, and their nodes; empty for none."""
    nodes = [row.node for row in rows if row.tainted]
    count = sum(row.tainted for row in rows)
    return f"; taints keep {amount(count)} on {some(nodes, 2)} from new claims" if count else ""


def _style(state: DriverState) -> str:
    return "red" if state.broken else "yellow" if state.open else "green" if state is DriverState.HEALTHY else ""


def _cells(row: NodeDriver, wide: bool, at: datetime, told: bool) -> Iterator[str]:
    pod = row.pod
    yield from (row.driver, row.node or EMPTY, row.state.value)
    # What nodes publish that no label calls alike says little of this one.
    fewer = row.devices < row.usual and (row.labelled or not row.devices)
    yield f"{row.devices:,} of {row.usual:,}" if fewer else f"{row.devices:,}"
    yield f"{pod.restarts:,}" if pod is not None else EMPTY
    yield (pod.version if pod is not None else "") or EMPTY
    yield times.age(row.since, at) if row.since else EMPTY
    # A pod in which nothing is wrong is of interest to few.
    yield f"{pod.namespace}/{pod.name}" if pod is not None and (wide or row.state is not DriverState.HEALTHY) else EMPTY
    if wide:
        yield from (f"{row.slices:,}", f"{row.generation:,}" if row.slices else EMPTY)
        yield (pod.api_version if pod is not None else "") or EMPTY
        yield (pod.image if pod is not None else "") or EMPTY
        gates = pod.gates if pod is not None else ()
        yield ",".join(f"{name}={str(on).lower()}" for name, on in gates) or EMPTY
    yield EMPTY if told else written(why(row, naming=False)) or EMPTY


def to_json(
    drivers: NodeDrivers,
    concerns: Concerns,
    explained: str = "",
    *,
    where: ClusterFlags,
    mends: Mapping[str, Remedy] = MappingProxyType({}),
) -> dict[str, Any]:
    """A DriverList, whose commands ask the cluster of ``where``; with the answer about the driver ``explained``.

    ``mends`` as of ``write_drivers``.
    """
    states = dict(Counter(row.state.value for row in drivers.rows))
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "DriverList",
        **(_explained(explained, drivers) if explained else {}),
        "summary": {"drivers": len({row.driver for row in drivers.rows}), "states": states},
        "items": [_row(row, concerns, where, mends) for row in drivers.rows],
        "unread": [gap_json(gap) for gap in drivers.gaps],
    }


def _explained(name: str, drivers: NodeDrivers) -> dict[str, Any]:
    worst = drivers.rows[0].state if drivers.rows else DriverState.UNKNOWN
    answer = driver_answer(name, drivers).text
    return {"subject": {"kind": "Driver", "name": name}, "state": worst.value, "answer": answer}


def _row(row: NodeDriver, concerns: Concerns, where: ClusterFlags, mends: Mapping[str, Remedy]) -> dict[str, Any]:
    wanted = {"classes": list(row.wanted_by), "claimCount": row.claims, "nodes": list(row.hardware)}
    odd = [
        {
            "kind": concern.kind.value,
            "text": written(concern_words(concern, row.driver, row.node)),
            "compared": list(concern.values),
        }
        for concern in concerns.get((row.driver, row.node), ())
    ]
    return {
        "driver": row.driver,
        "state": row.state.value,
        "healthy": not row.ails and not row.state.open,
        "deviceCount": row.devices,
        "slices": row.slices,
        "pools": [{"driver": row.driver, "name": pool} for pool in row.pools],
        **filled(node=row.node),
        **({"generation": row.generation, "missingSlices": row.missing_slices} if row.slices else {}),
        **filled(
            wantedBy=wanted if row.wanted_by else None,
            waitingPod=object_json(row.failing.namespace, row.failing.pod) if row.failing is not None else None,
            deviceTaints={"deviceCount": row.tainted, "taints": [*map(_taint, row.taints)]} if row.tainted else None,
            likes={"deviceCount": row.usual, "nodes": list(row.likes)} if row.usual else None,
            since=row.since,
            pod=_pod(row.pod) if row.pod is not None else None,
            daemonSet=_daemon(row.daemon) if row.daemon is not None else None,
            why=written(why(row)),
            fix=remedy_json(remedy(row, mends), where),
            next=command_json(command(next_look(row), Invocation()), where=where) if row.ails else None,
            concerns=odd,
        ),
    }


def _taint(taint: DeviceTaint) -> dict[str, Any]:
    """A taint of several devices: when the first of them got it, and the rule that adds it."""
    owner = owner_json("DeviceTaintRule", taint.rule) if taint.rule else None
    return {**taint_json(taint), **filled(timeAdded=taint.time_added, owner=owner)}


def _pod(pod: DriverPod) -> dict[str, Any]:
    (reason, message), last = pod.waiting, pod.last
    return {
        **object_json(pod.namespace, pod.name),
        "container": pod.container,
        "ready": pod.ready,
        "restarts": pod.restarts,
        **filled(
            image=pod.image,
            version=pod.version,
            apiVersion=pod.api_version,
            waiting=reason,
            message=message,
            owner=owner_json(pod.owner_kind, pod.owner) if pod.owner else None,
            lastEnd=last and filled(exitCode=last.exit_code, reason=last.reason, message=last.message, at=last.at),
            driverGates=dict(pod.gates),
        ),
    }


def _daemon(daemon: DaemonState) -> dict[str, Any]:
    return {
        **object_json(daemon.namespace, daemon.name),
        "current": daemon.current,
        **filled(
            kind="" if daemon.kind == "DaemonSet" else daemon.kind,
            desired=daemon.desired,
            failure=daemon.failure,
            missingLabels=[*daemon.labels],
        ),
    }
