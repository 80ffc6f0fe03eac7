"""Devices as a kubectl-style table with a summary at the end, or as names, one per line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.explain.devices.device_state import DeviceState, taint_owner
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory
from kubectl_dra.report.paint import Painter
from kubectl_dra.report.phrases import written
from kubectl_dra.report.table import fitted
from kubectl_dra.wording import amount, listed, some

HEADER = ("NODE", "DRIVER", "POOL", "DEVICE", "CLASS", "STATE", "HELD-BY", "REASON")
WIDE = ("CAPACITY", "TAINTS", "ATTRIBUTES")
BELOW = ("REASON", "HELD-BY", "CLASS", "POOL", "DRIVER", "NODE")
"""What goes below a row that is too long, first to go first."""
WIDE_BELOW = ("ATTRIBUTES", "TAINTS", "CAPACITY")
# The attributes that tell devices apart for a person, best first; drivers differ in what they publish.
KEY_ATTRIBUTES = ("productName", "model", "deviceType", "type", "profile", "architecture", "family", "version", "uuid")
MAX_ATTRIBUTES = 4
MAX_HOLDERS = 2
# Colours cost a tenth of a millisecond a line.
MAX_COLOURED = 2_000
EMPTY = "-"
_STYLES = {
    DeviceState.FREE: "green",
    DeviceState.HELD: "",
    DeviceState.SHARED: "cyan",
    DeviceState.TAINTED: "yellow",
}


def write_table(inventory: Inventory, color: str = "auto", *, wide: bool = False, stream: TextIO | None = None) -> None:
    """Write the table and the summary, or a sentence if no device matches."""
    out = Painter(stream, color)
    if not inventory.rows:
        out.sentence(_nothing(inventory))
        return
    header = (*HEADER, *WIDE) if wide else HEADER
    cells = [_cells(row, wide) for row in inventory.rows]
    first, *blocks = fitted([header, *cells], out.limit, (*WIDE_BELOW, *BELOW) if wide else BELOW)
    out.write((first[0], "bold"))
    if len(inventory.rows) <= MAX_COLOURED:
        for block, row in zip(blocks, inventory.rows, strict=True):
            for line in block:
                out.write((line, _STYLES.get(row.state, "red")))
    else:
        out.stream.write("".join(f"{line}\n" for block in blocks for line in block))
    out.sentence(summary(inventory))


def write_names(inventory: Inventory, stream: TextIO | None = None) -> None:
    """Write DRIVER/POOL/DEVICE, one per line."""
    out = Painter(stream, "never")
    out.stream.write("".join(f"{row.id}\n" for row in inventory.rows))


def summary(inventory: Inventory) -> str:
    """How many devices there are, on how many nodes, and in which states."""
    total, nodes = len(inventory.rows), inventory.node_count()
    states = ", ".join(f"{count:,} {state}" for state, count in inventory.states().items())
    place = f" on {amount(nodes, 'node')}" if nodes else ""
    return f"{amount(total)}{place}: {states}"


def _nothing(inventory: Inventory) -> str:
    """Which part of the selection excluded the last device."""
    published, *parts = inventory.narrowed
    if not published[1]:
        return "No device is published."
    steps = [f"{published[1]:,} published"]
    for what, count in parts:
        steps.append(f"{count:,} {what}" if count else f"none {what}")
        if not count:
            break
    return f"No device matches: {', '.join(steps)}."


def _cells(row: DeviceRow, wide: bool) -> tuple[str, ...]:
    cells = (
        row.where,
        row.id.driver,
        row.id.pool,
        row.id.device,
        ",".join(row.classes) or EMPTY,
        row.state,
        _held_by(row.holders) if row.holders else EMPTY,
        written(row.reason) or EMPTY,
    )
    if not wide:
        return cells
    return (
        *cells,
        ",".join(_capacity(row)) or EMPTY,
        ",".join(f"{taint} ({taint_owner(taint)})" for taint in row.taints) or EMPTY,
        ",".join(f"{name}={value}" for name, value in _key_attributes(row.device.attributes)) or EMPTY,
    )


def _held_by(holders: tuple[ResourceClaim, ...]) -> str:
    """The claims, each with its consuming pods."""
    return listed([f"{claim.key} ({_consumers(claim)})" for claim in holders[:MAX_HOLDERS]], len(holders))


def _consumers(claim: ResourceClaim) -> str:
    return some([str(entry) for entry in claim.reserved_for], 1) or "no pod"


def _capacity(row: DeviceRow) -> Iterator[str]:
    """Each capacity, with its use if the device can be shared."""
    for name, entry in row.device.capacity.items():
        value = entry.get("value", "0")
        if row.device.allow_multiple_allocations:
            yield f"{name}={row.consumed.get(name, 0)}/{value}"
        else:
            yield f"{name}={value}"


def _key_attributes(attributes: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The few attributes that identify the kind of device."""
    short = {name.rpartition("/")[2]: name for name in attributes}
    chosen = [short[name] for name in KEY_ATTRIBUTES if name in short][:MAX_ATTRIBUTES]
    chosen = chosen or list(attributes)[:MAX_ATTRIBUTES]
    return [(name.rpartition("/")[2], plain(attributes[name])) for name in chosen]


def plain(attribute: Mapping[str, Any]) -> str:
    """An attribute's value as text; booleans as in CEL."""
    value: Any = next(iter(attribute.values()), "")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + " ".join(str(entry) for entry in value) + "]"
    return str(value)
