"""Use of devices as JSON or YAML (``schemas/top.json``), and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from kubectl_dra.allocation.features import DEFECTS
from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.api.pods import Owner
from kubectl_dra.command import CURRENT, ClusterFlags, CommandLine
from kubectl_dra.explain.devices.alike_devices import CapacityRoom
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.unread_kind import not_read
from kubectl_dra.report.bars import PICTURE, legend, with_bars
from kubectl_dra.report.blocks import TableBlock
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.color import Painter
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import object_json
from kubectl_dra.report.remedy_json import notes_json, unread_json
from kubectl_dra.report.table import EMPTY, UNKNOWN, nameless, narrowed, owned_by
from kubectl_dra.taint import times
from kubectl_dra.text import amount
from kubectl_dra.usage.choices import UseBy
from kubectl_dra.usage.claim_use import ClaimUse
from kubectl_dra.usage.counts import DeviceDemand, DeviceSupply, UseReport
from kubectl_dra.usage.largest_request import LargestRequest


def to_json(report: UseReport, where: ClusterFlags) -> dict[str, Any]:
    """A UseReport, whose commands ask the cluster of ``where``."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "UseReport",
        "by": report.by.value,
        "summary": {
            "devices": report.devices,
            "nodes": report.nodes,
            "states": {state.value: count for state, count in report.states.items()},
            "idle": report.idle,
            "pendingClaims": report.pending,
        },
        "items": [
            *map(_supply, report.supply),
            *map(_demand, report.demand),
            *map(_claim, report.claims),
        ],
        **notes_json(report.notes, where),
        "unread": unread_json((*report.unread, *report.notes)),
    }


def _supply(row: DeviceSupply) -> dict[str, Any]:
    largest = row.largest
    request = {"count": largest.count, "node": largest.node, "atLeast": largest.at_least} if largest is not None else {}
    return {
        "name": row.name,
        "deviceCount": row.tally.devices,
        "states": {state.value: count for state, count in row.tally.states.items()},
        "idle": row.idle,
        "nodeCount": row.tally.nodes,
        "heldPart": round(row.held_part, 4),
        **filled(
            capacity={
                room.name: {"value": str(room.total), "remaining": str(room.left), "largest": str(room.most)}
                for room in row.room
            },
            largestRequest=request | (filled(defects=[*largest.defects]) if largest is not None else {}),
        ),
    }


def _demand(row: DeviceDemand) -> dict[str, Any]:
    return {
        "namespace": row.namespace,
        "deviceCount": row.devices,
        "idle": row.idle,
        "claimCount": row.claims,
        "pendingClaims": row.pending,
        "nodeCount": row.nodes,
        **filled(owner=_owner(row.owner), largestOwner=_owner(row.largest)),
    }


def _claim(item: ClaimUse) -> dict[str, Any]:
    meta = item.claim.metadata
    return {
        **object_json(meta.namespace, meta.name),
        "deviceCount": len(item.results),
        "state": item.state.value,
        **filled(node=item.node, owner=_owner(item.owner), created=meta.creation_timestamp),
    }


def _owner(owner: Owner | None) -> dict[str, Any] | None:
    return owner._asdict() if owner is not None else None


# Who uses what as a table with a summary before it.

MAX_ROWS: Final = 30
MAX_SENTENCES: Final = 3
_FULL: Final = "--full shows them"
OTHERS: Final = (DeviceState.BLOCKED, DeviceState.UNSERVED, DeviceState.UNUSABLE, DeviceState.UNKNOWN)
"""States that share a column: it is called like the only one that occurs."""
_OMITTED: Final = (
    *(PICTURE, "AGE", "NODES", "ON-NODE", "CLAIMS", "LARGEST-OWNER", "OWNER", "USED(%)", "IDLE", "NODE", "LEFT"),
    *("LARGEST-REQUEST", "OTHER", "TAINTED", *(state.upper() for state in OTHERS), "SHARED"),
)
"""Columns that go where the screen is narrow, first to go first: last those without which numbers do not add up."""
_KEYS: Final = {
    UseBy.nodes: ("NODE",),
    UseBy.classes: ("CLASS",),
    UseBy.namespaces: ("NAMESPACE",),
    UseBy.owners: ("NAMESPACE", "OWNER"),
    UseBy.claims: ("NAMESPACE", "CLAIM"),
}
"""Columns that say what a row is about."""
_SOURCES: Final = {
    UseBy.nodes: "ResourceSlice",
    UseBy.classes: "ResourceSlice",
    UseBy.namespaces: "ResourceClaim",
    UseBy.owners: "ResourceClaim",
    UseBy.claims: "ResourceClaim",
}
"""The kinds without which there is no row."""


def write_top(
    report: UseReport,
    at: datetime,
    color: str = "auto",
    *,
    limit: int | None = MAX_ROWS,
    full: bool = False,
    headers: bool = True,
    where: ClusterFlags = CURRENT,
) -> None:
    """Write the summary and the first rows, with ages as of ``at``; all where ``limit`` is None.

    ``full``: with all columns, whatever room there is. Without ``headers`` there are only the rows.
    """
    out = Painter(color=color, bare=not headers)
    if headers:
        out.sentence(summary(report))
    if not report.rows:
        if not_read(_SOURCES[report.by], report.unread):
            out.sentence(f"{_SOURCES[report.by]}s were not read, so no {report.by} can be counted.")
            return
        space = f" in namespace {report.namespace}" if report.namespace else ""
        counts_devices = report.by in (UseBy.nodes, UseBy.classes)
        what = f"{report.by} with devices" if counts_devices or report.unpublished else report.by
        out.sentence(f"There are no {what} to count{space}.")
        return
    if headers:
        out.write("")
    shown = report.rows if limit is None else min(report.rows, limit)
    rows = list(table_rows(report, shown, at))
    if report.supply:
        rows = with_bars(rows, [row.tally.states for row in report.supply[:shown]], out)
    rows, omitted = narrowed(rows, None if full else out.limit, _OMITTED, _KEYS[report.by])
    if PICTURE in rows[0]:
        out.write(legend(report.states))
    omitted = [name for name in omitted if name != PICTURE]
    write_blocks(out, [TableBlock(rows, left=report.rows - shown, how=_FULL, omitted=omitted, wider=_FULL)])
    legends = list(_legends(report, rows[0], where)) if headers and report.supply else []
    if legends:
        out.write("")
    for text in legends:
        out.sentence(text)
    by_class, cut = report.by is UseBy.classes, "LARGEST-REQUEST" in omitted
    sentences = [text for row in report.supply if headers and by_class and (text := fitting(row, whole=cut))]
    if sentences:
        out.write("")
    for text in sentences[:MAX_SENTENCES]:
        out.sentence(text)
    if more := len(sentences[MAX_SENTENCES:]):
        out.sentence(f"-o json says the same of {more:,} more {'class' if more == 1 else 'classes'}.")


def _legends(report: UseReport, heading: Sequence[str], where: ClusterFlags) -> Iterator[str]:
    """What a column counts that its heading alone does not say."""
    if "USED(%)" in heading and not {DeviceState.SHARED, DeviceState.BLOCKED}.isdisjoint(report.states):
        yield (
            "USED(%): devices that are held, and of shared ones the part that is used; divisions of one piece of "
            "hardware count as one device."
        )
    if DeviceState.UNSERVED in report.states:
        why = where.asks(CommandLine(("kubectl", "dra", "devices")))
        yield f"Unserved: free, but a pod that gets one does not start; why: {why}"


def summary(report: UseReport) -> str:
    """All devices by state, how many are held and idle, and how many claims wait."""
    states = ", ".join(f"{count:,} {state}" for state, count in report.states.items())
    place = f" on {amount(report.nodes, 'node')}" if report.nodes else ""
    parts = [f"{amount(report.devices)}{place}" + (f": {states}" if states else "")]
    if not report.devices and not_read("ResourceSlice", report.unread):
        parts = ["devices were not read"]
    if report.idle:
        parts.append(f"{report.idle:,} idle")
    if report.unpublished:
        parts.append(f"{report.unpublished:,} held and not published")
    if report.pending:
        parts.append(f"{amount(report.pending, 'claim')} pending")
    # Devices are of no namespace: what is counted here is more than what a namespace has.
    return ("In the whole cluster: " if report.namespace else "") + "; ".join(parts)


def fitting(row: DeviceSupply, *, whole: bool = False) -> str:
    """What is free of a class beside what fits on one node, or why that is not said.

    Empty where all fits that is free, or that a claim can have; unless the ``whole`` is to be said.
    """
    largest = row.largest
    if largest is None:
        room = row.room[0] if row.room else None
        left = f": at most {room.most} {_short(room)} on one device, {room.left} in all" if room is not None else ""
        shared = "its devices can be shared, so how many fit depends on the capacity that is asked for"
        return f"{row.name}: {row.free:,} free; {shared}{left}." if row.name else ""
    if largest.defects:
        return f"{row.name}: {row.free:,} free, and no plain request gets one: {defects_of(largest)}."
    if largest.count >= min(row.free, MAX_RESULTS):
        fits = f"{row.name}: {row.free:,} free, and a request for {largest.count:,} fits on {largest.node}."
        return fits if whole and largest.count else ""
    if largest.at_least and not largest.count:
        return f"{row.name}: {row.free:,} free, and whether a request fits on a node is open."
    if largest.at_least:
        return f"{row.name}: {row.free:,} free, and a request for {largest.count:,} fits on one node at least."
    if not largest.count:
        return f"{row.name}: {row.free:,} free, and no request fits on any node."
    return f"{row.name}: {row.free:,} free, and no request for more than {largest.count:,} fits on one node."


def defects_of(largest: LargestRequest) -> str:
    """Note that defects of the scheduler refuse the devices, and how to ask if it may be a release without them."""
    whats = "; ".join(DEFECTS[name].what for name in largest.defects)
    if not largest.until:
        return f"a known defect of this release's scheduler refuses them: {whats}"
    who = f"kube-scheduler before {largest.until} (assumed; --kubernetes-version says which)"
    return f"{who} refuses them: {whats}"


def table_rows(report: UseReport, shown: int, at: datetime) -> Iterator[tuple[str, ...]]:
    """The header and the first rows, as cells."""
    if report.supply:
        by_class = report.by is UseBy.classes
        shared = DeviceState.SHARED in report.states
        others = [state for state in report.states if state in OTHERS]
        other = next(iter(others), "other").upper() if len(others) < 2 else "OTHER"
        numbers = ("DEVICES", "FREE", *(("SHARED",) if shared else ()), "HELD", "TAINTED", other, "IDLE", "USED(%)")
        own = ("NODES", "LARGEST-REQUEST", "ON-NODE") if by_class else ()
        yield (*_KEYS[report.by], *numbers, *own, *(("LEFT",) if shared else ()))
        for supply in report.supply[:shown]:
            nobody = "" if supply.name else nameless("class", "DeviceClass", report.notes)
            yield _supply_row(supply, by_class, nobody, shared)
    elif report.demand:
        owners = report.by is UseBy.owners
        nobody = nameless("owner", "Pod", report.unread)
        numbers = ("DEVICES", "IDLE", "CLAIMS", "PENDING", "NODES")
        yield ("NAMESPACE", "OWNER", *numbers) if owners else ("NAMESPACE", *numbers, "LARGEST-OWNER")
        for demand in report.demand[:shown]:
            yield _demand_row(demand, owners, nobody)
    else:
        yield ("NAMESPACE", "CLAIM", "DEVICES", "STATE", "NODE", "OWNER", "AGE")
        for claim in report.claims[:shown]:
            yield _claim_row(claim, at)


def _supply_row(row: DeviceSupply, by_class: bool, nobody: str, shared: bool) -> tuple[str, ...]:
    states = row.tally.states
    tainted, parts = states.get(DeviceState.TAINTED, 0), states.get(DeviceState.SHARED, 0)
    other = row.tally.devices - row.free - row.held - tainted
    held = (parts, row.held - parts) if shared else (row.held,)
    numbers = (row.tally.devices, row.free, *held, tainted, other, row.idle)
    # Where the state of devices is unknown, any of the other numbers may be larger.
    unknown = bool(states.get(DeviceState.UNKNOWN))
    use = UNKNOWN if unknown else f"{int(100 * row.held_part)}%"
    cells = (row.name or nobody, *(_number(number, UNKNOWN if unknown else EMPTY) for number in numbers), use)
    cells = (*cells, _number(row.tally.nodes), *_largest(row)) if by_class else cells
    return (*cells, _left(row)) if shared else cells


def _left(row: DeviceSupply) -> str:
    """What is left of devices that can be shared, by the capacity of which least is."""
    room = row.room[0] if row.room else None
    return f"{_short(room)} {room.left} of {room.total}" if room is not None else EMPTY


def _short(room: CapacityRoom) -> str:
    """The name of the capacity without its domain."""
    return room.name.rpartition("/")[2]


def _largest(row: DeviceSupply) -> tuple[str, str]:
    """Number of devices of the largest request, and where it fits."""
    largest = row.largest
    if largest is None:
        room = row.room[0] if row.room else None
        return (EMPTY if not row.name else "by capacity" if room is None else f"{_short(room)} {room.most}"), EMPTY
    if largest.at_least:
        return (f"{largest.count:,} at least" if largest.count else UNKNOWN), largest.node or EMPTY
    return f"{largest.count:,}", largest.node or EMPTY


def _demand_row(row: DeviceDemand, owners: bool, nobody: str) -> tuple[str, ...]:
    numbers = tuple(map(_number, (row.devices, row.idle, row.claims, row.pending, row.nodes)))
    if owners:
        return row.namespace, owned_by(row.owner, nobody), *numbers
    return row.namespace, *numbers, owned_by(row.largest)


def _claim_row(item: ClaimUse, at: datetime) -> tuple[str, ...]:
    meta = item.claim.metadata
    owner = owned_by(item.owner)
    age = times.age(meta.creation_timestamp, at) if meta.creation_timestamp else EMPTY
    return meta.namespace, meta.name, _number(len(item.results)), item.state, item.node or EMPTY, owner, age


def _number(number: int, none: str = EMPTY) -> str:
    return f"{number:,}" if number else none
