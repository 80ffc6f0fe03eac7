"""Devices as a table with a summary before it, as counts, or as names, one per line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TextIO

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.console import lines
from kubectl_dra.explain.devices.alike_devices import AlikeDevices, Tally
from kubectl_dra.explain.devices.arrangement import CountedBy
from kubectl_dra.explain.devices.device_state import DeviceState, identifying, taint_owner
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory
from kubectl_dra.report.blocks import TableBlock
from kubectl_dra.report.blocks_text import MAX_COLOURED, write_blocks
from kubectl_dra.report.device_names import compressed
from kubectl_dra.report.paint import Painter
from kubectl_dra.report.phrases import written
from kubectl_dra.report.table import EMPTY, narrowed
from kubectl_dra.text import amount, listed, some

MAX_ATTRIBUTES = 4
MAX_HOLDERS = 2
STATE_STYLES = {
    DeviceState.FREE: "green",
    DeviceState.HELD: "",
    DeviceState.SHARED: "cyan",
    DeviceState.TAINTED: "yellow",
}


class DeviceColumn(NamedTuple):
    """A column: its heading, and what it shows of devices that share a row."""

    heading: str
    cell: Callable[[AlikeDevices], str]


def write_table(
    inventory: Inventory,
    groups: Sequence[AlikeDevices],
    color: str = "auto",
    *,
    wide: bool = False,
    more: str = "",
    limit: int | None = None,
    stream: TextIO | None = None,
) -> None:
    """Write the summary and a row for each group; a sentence where no device matches.

    ``more`` is the command that shows each device, where groups have several. ``limit``: at most so many rows.
    """
    out = Painter(stream, color)
    if not inventory.rows:
        out.sentence(_nothing(inventory))
        return
    out.sentence(summary(inventory))
    out.write("")
    whole, groups = len(groups), groups[:limit]
    several = any(len(group.rows) > 1 for group in groups)
    shown = list(columns(groups, several, wide))
    rows = [tuple(column.heading for column in shown)]
    rows += [tuple(column.cell(group) for column in shown) for group in groups]
    if several:
        rows = narrowed(rows, out.limit, ("NAMES", "CLASS", "CLASS (DRIVER)"), ("WHY",))
    marks = [(group.first.state, STATE_STYLES.get(group.first.state, "red")) for group in groups[:MAX_COLOURED]]
    table = TableBlock(rows, _BELOW, not wide, "STATE", marks, whole - len(groups), "leave --limit out")
    write_blocks(out, [table])
    if several and more:
        out.write("")
        out.write(("Each device: ", "bold"), more)


def write_counts(
    inventory: Inventory,
    counts: Sequence[Tally],
    by: CountedBy,
    color: str = "auto",
    *,
    limit: int | None = None,
    stream: TextIO | None = None,
) -> None:
    """Write the summary and a row for each node, class, model or state; a sentence where no device matches.

    ``limit``: at most so many rows.
    """
    out = Painter(stream, color)
    if not inventory.rows:
        out.sentence(_nothing(inventory))
        return
    out.sentence(summary(inventory))
    out.write("")
    states = () if by is CountedBy.state else tuple(inventory.states())
    rows = [(by.value.upper(), "DEVICES", *(() if by is CountedBy.node else ("NODES",)), *(s.upper() for s in states))]
    for count in counts[:limit]:
        numbers = [count.devices, *(() if by is CountedBy.node else (count.nodes,))]
        numbers += [count.states.get(state, 0) for state in states]
        rows.append((count.name or f"(no {by.value})", *(f"{number:,}" if number else EMPTY for number in numbers)))
    write_blocks(out, [TableBlock(rows, left=len(counts) - len(rows) + 1, how="leave --limit out")])
    if by is CountedBy.class_ and sum(count.devices for count in counts) > len(inventory.rows):
        out.write("")
        out.sentence("A device of several classes is counted in each of them.")


def write_names(groups: Sequence[AlikeDevices], stream: TextIO | None = None) -> None:
    """Write DRIVER/POOL/DEVICE, one per line."""
    lines((str(row.id) for group in groups for row in group.rows), stream or sys.stdout)


def summary(inventory: Inventory) -> str:
    """How many devices there are, on how many nodes, and in which states."""
    total, nodes = len(inventory.rows), inventory.node_count()
    states = ", ".join(f"{count:,} {state}" for state, count in inventory.states().items())
    place = f" on {amount(nodes, 'node')}" if nodes else ""
    return f"{amount(total)}{place}: {states}"


def _nothing(inventory: Inventory) -> str:
    """Which part of the selection left no device."""
    published, *parts = inventory.narrowed
    if not published[1]:
        held = sum(len(one.devices) for one in inventory.unpublished)
        return "No device is published" + (
            f"; {held:,} {'is' if held == 1 else 'are'} held all the same." if held else "."
        )
    steps = [f"{published[1]:,} published"]
    for what, count in parts:
        steps.append(f"{count:,} {what}" if count else f"none {what}")
        if not count:
            break
    return f"No device matches: {', '.join(steps)}."


def columns(groups: Sequence[AlikeDevices], several: bool, wide: bool) -> Iterator[DeviceColumn]:
    """The columns; those of several devices a row count them by state."""
    yield DeviceColumn(_with("NODE", "POOL", any(_pool(group) for group in groups)), _place)
    yield DeviceColumn(_with("CLASS", "DRIVER", any(_driver(group) for group in groups)), _class)
    yield DeviceColumn("MODEL", lambda group: group.model or EMPTY)
    if several:
        yield DeviceColumn("STATE", _counted)
        yield DeviceColumn("NAMES", _names)
    else:
        yield DeviceColumn("DEVICE", lambda group: group.first.id.device)
        yield DeviceColumn("STATE", lambda group: group.first.state)
    yield DeviceColumn("WHY", _why)
    if wide:
        yield DeviceColumn("CAPACITY", lambda group: ",".join(_capacity(group.first)) or EMPTY)
        yield DeviceColumn("TAINTS", lambda group: ",".join(_taints(group.first)) or EMPTY)
        yield DeviceColumn("ATTRIBUTES", lambda group: ",".join(_attributes(group.first)) or EMPTY)


_BELOW: Final = (
    "ATTRIBUTES",
    "TAINTS",
    "CAPACITY",
    "WHY",
    "MODEL",
    "CLASS (DRIVER)",
    "CLASS",
    "NODE (POOL)",
    "NODE",
)
"""What goes below a row that is too long, first to go first."""


def _with(heading: str, other: str, shown: bool) -> str:
    return f"{heading} ({other})" if shown else heading


def _pool(group: AlikeDevices) -> str:
    """The pool where it is not called like the node."""
    pool = group.first.id.pool
    return "" if pool == group.first.where else pool


def _driver(group: AlikeDevices) -> str:
    """The driver where no class is called like it."""
    driver = group.first.id.driver
    return "" if driver in group.first.classes else driver


def _place(group: AlikeDevices) -> str:
    own = f"{group.first.where} ({_pool(group)})" if _pool(group) else group.first.where
    return own if len(group.places) == 1 else f"{own} and {len(group.places) - 1:,} alike"


def _class(group: AlikeDevices) -> str:
    classes = ",".join(group.first.classes) or EMPTY
    return f"{classes} ({_driver(group)})" if _driver(group) else classes


def _counted(group: AlikeDevices) -> str:
    return f"{group.each:,} {group.first.state}" + (" each" if len(group.places) > 1 else "")


def _names(group: AlikeDevices) -> str:
    """The names in one of the places."""
    return compressed([row.id.device for row in group.rows[: group.each]])


def _why(group: AlikeDevices) -> str:
    """Who holds them, and what else makes their state."""
    parts = []
    claims = group.holders()
    if len(group.places) > 1 and len(claims) > MAX_HOLDERS:
        spaces = {claim.metadata.namespace for claim in claims}
        where = f"namespace {min(spaces)}" if len(spaces) == 1 else amount(len(spaces), "namespace")
        parts.append(f"held by {amount(len(claims), 'claim')} of {where}")
    elif claims:
        parts.append(f"held by {_held_by(claims)}")
    if reason := written(group.first.reason):
        alike = any(row.reason != group.first.reason for row in group.rows)
        parts.append(f"{reason}, and alike" if alike else reason)
    return "; ".join(parts) or EMPTY


def _taints(row: DeviceRow) -> Iterator[str]:
    return (f"{taint} ({taint_owner(taint)})" for taint in row.taints)


def _attributes(row: DeviceRow) -> Iterator[str]:
    return (f"{name}={value}" for name, value in _key_attributes(row.device.attributes))


def _held_by(holders: Sequence[ResourceClaim]) -> str:
    """The claims, each with the pods that consume it."""
    return listed([f"{claim.key} ({_consumers(claim)})" for claim in holders[:MAX_HOLDERS]], len(holders))


def _consumers(claim: ResourceClaim) -> str:
    return some([str(entry) for entry in claim.reserved_for], 1) or "no pod"


def _capacity(row: DeviceRow) -> Iterator[str]:
    """Each capacity; of a device that can be shared, what is used of it."""
    for name, entry in row.device.capacity.items():
        value = entry.get("value", "0")
        if row.device.allow_multiple_allocations:
            yield f"{name}={row.consumed.get(name, 0)}/{value}"
        else:
            yield f"{name}={value}"


def _key_attributes(attributes: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The few attributes that say what the device is."""
    chosen = (identifying(attributes, "version", "uuid") or list(attributes))[:MAX_ATTRIBUTES]
    return [(name.rpartition("/")[2], plain(attributes[name])) for name in chosen]


def plain(attribute: Mapping[str, Any]) -> str:
    """An attribute's value as text, as CEL would write a boolean."""
    value: Any = next(iter(attribute.values()), "")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + " ".join(str(entry) for entry in value) + "]"
    return str(value)
