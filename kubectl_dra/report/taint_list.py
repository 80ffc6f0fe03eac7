"""``taint --list`` as text: every taint of the cluster, and what is wrong with a rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, TextIO

from kubectl_dra.command import CURRENT, ClusterFlags, CommandLine, deleting
from kubectl_dra.report.blocks import TableBlock, shell
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.color import Painter
from kubectl_dra.report.phrases import compressed
from kubectl_dra.report.table import EMPTY
from kubectl_dra.safe_output import lines as names
from kubectl_dra.taint import times
from kubectl_dra.taint.device_taint_rules import RESOURCE
from kubectl_dra.taint.listing import DRIVER, TaintLine
from kubectl_dra.taint.result import untainting
from kubectl_dra.text import amount, some

_LIST = ("DEVICE", "TAINT", "OWNER", "REASON", "TICKET", "AGE", "EXPIRES", "PODS")
_LIST_BELOW = ("REASON", "TICKET", "OWNER", "PODS", "EXPIRES", "AGE", "TAINT")


def write_list(
    lines: Sequence[TaintLine],
    color: str = "auto",
    *,
    at: datetime,
    stream: TextIO | None = None,
    all_seen: bool = True,
    headers: bool = True,
    where: ClusterFlags = CURRENT,
) -> None:
    """Write every taint as a table, then the warnings and what ends them; without ``headers`` only the rows.

    ``all_seen``: there are no taints that could not be read.
    """
    out = Painter(stream, color, bare=not headers)
    if not lines:
        out.write("No device is tainted." if all_seen else "No taint is seen; there may be others.")
        return
    groups = _alike(lines, at) if headers else [(_list_cells(line, at), line) for line in lines]
    marks = [("", "yellow" if line.warnings else "") for _, line in groups]
    write_blocks(out, [TableBlock([_LIST, *(cells for cells, _ in groups)], _LIST_BELOW, marks=marks)])
    for line in lines if headers else ():
        for warning in line.warnings:
            out.paragraph(f"warning: {_owner(line)}: {warning}.", style="yellow")
        if line.warnings and line.owner != DRIVER:
            write_blocks(out, [shell((_ending(line),), where)], 2)


def _ending(line: TaintLine) -> CommandLine:
    """The command that deletes the rule of a taint; of one of several steps made here, with all of them."""
    if line.ours and not line.selects:
        return untainting(line.devices)
    return deleting("devicetaintrule", line.name)


_NUMBER: Final = re.compile(r"[0-9]+")


def _alike(lines: Sequence[TaintLine], at: datetime) -> list[tuple[tuple[str, ...], TaintLine]]:
    """The cells of each row with the first of its lines: devices with the same taint whose names differ in their first
    number share a row.
    """
    rows: dict[tuple[Any, ...], list[TaintLine]] = {}
    for number, line in enumerate(lines):
        one_driver = line.owner == DRIVER and not line.warnings
        key: tuple[Any, ...] = (number,)
        if one_driver:
            driver, pool, name = line.devices[0]
            key = (driver, pool, _NUMBER.sub("", name, count=1), *_list_cells(line, at)[1:])
        rows.setdefault(key, []).append(line)
    out: list[tuple[tuple[str, ...], TaintLine]] = []
    for first, *others in rows.values():
        cells = _list_cells(first, at)
        if others:
            devices = [line.devices[0] for line in (first, *others)]
            names = compressed([device.device for device in devices])
            cells = (f"{devices[0]._replace(device=names)} ({len(devices):,})", *cells[1:])
        out.append((cells, first))
    return out


def write_rule_names(lines: Sequence[TaintLine], stream: TextIO) -> None:
    """Write the rules, one per line. Taints set by drivers have no names of their own."""
    names((f"{RESOURCE}/{line.name}" for line in lines if line.owner != DRIVER), stream)


def _list_cells(line: TaintLine, at: datetime) -> tuple[str, ...]:
    device = str(line.devices[0]) if not line.selects else f"({line.selects}: {amount(len(line.devices))})"
    taint = str(line.taint)
    if line.next_effect:
        taint += f", then {line.next_effect}"
    until = times.parse(line.expires)
    expires = EMPTY
    if until is not None:
        expires = "expired" if line.expired else f"in {times.span((until - at).total_seconds())}"
    return (
        device,
        taint,
        _owner(line),
        _plain(line.reason) or EMPTY,
        _plain(line.ticket) or EMPTY,
        times.age(line.since, at) if line.since else EMPTY,
        expires,
        some(line.pods, 2) or EMPTY,
    )


def _plain(text: str) -> str:
    """Text from an untrusted source, on one line."""
    return " ".join(text.split())


def _owner(line: TaintLine) -> str:
    if line.owner == DRIVER:
        return f"driver (ResourceSlice {line.name})"
    return f"rule {line.name}" + ("" if line.ours else " (not made by kubectl dra)")
