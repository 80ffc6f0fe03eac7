"""Who uses what as a table with a summary before it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final, TextIO

from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.report.blocks import TableBlock
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.paint import Painter
from kubectl_dra.report.table import EMPTY, narrowed
from kubectl_dra.taint import typed as times
from kubectl_dra.text import amount
from kubectl_dra.usage.choices import UseBy
from kubectl_dra.usage.claim_use import ClaimUse
from kubectl_dra.usage.counts import DeviceDemand, DeviceSupply, LargestRequest, UseReport

MAX_ROWS: Final = 30
MAX_SENTENCES: Final = 3
_OMITTED: Final = ("AGE", "NODES", "CLAIMS", "OTHER", "LARGEST-OWNER", "OWNER", "TAINTED", "NODE", "UNUSED", "USE")
"""Columns that go where the screen is narrow, first to go first."""
_TITLES: Final = {UseBy.nodes: "NODE", UseBy.classes: "CLASS"}


def write_top(
    report: UseReport,
    at: datetime,
    color: str = "auto",
    *,
    limit: int | None = MAX_ROWS,
    stream: TextIO | None = None,
) -> None:
    """Write the summary and the first rows, with ages as of ``at``; all where ``limit`` is None."""
    out = Painter(stream, color)
    out.sentence(summary(report))
    if not report.rows:
        out.sentence(
            f"There are no {report.by} with devices to count."
            if report.unpublished
            else f"There are no {report.by} to count."
        )
        return
    out.write("")
    shown = report.rows if limit is None else min(report.rows, limit)
    rows = list(table_rows(report, shown, at))
    rows = narrowed(rows, out.limit, _OMITTED, ())
    write_blocks(out, [TableBlock(rows, left=report.rows - shown, how="--full shows them")])
    sentences = [text for row in report.supply if (text := fragmentation(row))]
    if sentences:
        out.write("")
    for text in sentences[:MAX_SENTENCES]:
        out.sentence(text)


def summary(report: UseReport) -> str:
    """All devices by state, how many are held and unused, and how many claims wait."""
    states = ", ".join(f"{count:,} {state}" for state, count in report.states.items())
    place = f" on {amount(report.nodes, 'node')}" if report.nodes else ""
    parts = [f"{amount(report.devices)}{place}" + (f": {states}" if states else "")]
    if report.unused:
        parts.append(f"{report.unused:,} held and unused")
    if report.unpublished:
        parts.append(f"{report.unpublished:,} held and not published")
    if report.pending:
        parts.append(f"{amount(report.pending, 'claim')} pending")
    return "; ".join(parts)


def fragmentation(row: DeviceSupply) -> str:
    """What is free of a class beside what fits on one node; empty where that is all, or all that a claim can have."""
    largest = row.largest
    if largest is None or largest.count >= min(row.free, MAX_RESULTS):
        return ""
    if largest.at_least:
        return f"{row.name}: {row.free:,} free, and a request for {largest.count:,} fits on one node at least."
    if not largest.count:
        return f"{row.name}: {row.free:,} free, and no request fits on any node."
    return f"{row.name}: {row.free:,} free, and no request for more than {largest.count:,} fits on one node."


def table_rows(report: UseReport, shown: int, at: datetime) -> Iterator[tuple[str, ...]]:
    """The header and the first rows, as cells."""
    if report.supply:
        by_class = report.by is UseBy.classes
        heading = (_TITLES[report.by], "DEVICES", "FREE", "HELD", "TAINTED", "OTHER", "UNUSED", "USE")
        yield (*heading, "NODES", "LARGEST-REQUEST") if by_class else heading
        for supply in report.supply[:shown]:
            yield _supply(supply, by_class)
    elif report.demand:
        owners = report.by is UseBy.owners
        numbers = ("HELD", "UNUSED", "CLAIMS", "PENDING", "NODES")
        yield ("NAMESPACE", "OWNER", *numbers) if owners else ("NAMESPACE", *numbers, "LARGEST-OWNER")
        for demand in report.demand[:shown]:
            yield _demand(demand, owners)
    else:
        yield ("NAMESPACE", "CLAIM", "HELD", "STATE", "NODE", "OWNER", "AGE")
        for claim in report.claims[:shown]:
            yield _claim(claim, at)


def _supply(row: DeviceSupply, by_class: bool) -> tuple[str, ...]:
    states = row.tally.states
    tainted = states.get(DeviceState.TAINTED, 0)
    other = row.tally.devices - row.free - row.held - tainted
    numbers = (row.tally.devices, row.free, row.held, tainted, other, row.unused)
    use = f"{100 * row.held // row.tally.devices}%"
    cells = (row.name or "(no class)", *map(_number, numbers), use)
    return (*cells, _number(row.tally.nodes), _largest(row.largest)) if by_class else cells


def _largest(found: LargestRequest | None) -> str:
    if found is None or not found.count:
        return EMPTY if found is None else "0"
    return f"{found.count:,} on {found.node}" + (" at least" if found.at_least else "")


def _demand(row: DeviceDemand, owners: bool) -> tuple[str, ...]:
    numbers = tuple(map(_number, (row.devices, row.unused, row.claims, row.pending, row.nodes)))
    if owners:
        return row.namespace, str(row.owner) if row.owner else "(no owner)", *numbers
    return row.namespace, *numbers, str(row.largest) if row.largest else EMPTY


def _claim(item: ClaimUse, at: datetime) -> tuple[str, ...]:
    meta = item.claim.metadata
    owner = str(item.owner) if item.owner else EMPTY
    age = times.age(meta.creation_timestamp, at) if meta.creation_timestamp else EMPTY
    return meta.namespace, meta.name, _number(len(item.results)), item.state, item.node or EMPTY, owner, age


def _number(number: int) -> str:
    return f"{number:,}" if number else EMPTY
