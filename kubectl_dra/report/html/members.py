"""The devices behind the folded rows of the picture, packed: the filters of the page unfold those that match."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.report.html.cells import MARK_WORDS, Cell, holder_words
from kubectl_dra.report.html.lines import Fleet, Line
from kubectl_dra.safe_output import one_line
from kubectl_dra.text import join

MAX_MEMBERS: Final = 250_000
"""Limit for the devices packed; rows that do not fit cannot be unfolded."""


def members(fleet: Fleet, requests: Sequence[str]) -> str | None:
    """The devices of folded rows as JSON, compressed by zlib, in base64; None where no row is folded.

    ``claims`` are texts of holders. ``lines`` has by number of the row what is true of each device of its ``cells``,
    and its ``parts``: a node's name and its devices, each a list of the cell's number, its name, its holders (a number
    of ``claims``, a list of them, or -1 for none), and its pool. Pool and holders are left out at the end of a list
    where there are none and the pool is called as the node.
    """
    claims: dict[str, int] = {}
    lines: dict[str, Any] = {}
    room = MAX_MEMBERS
    for number, line in enumerate(fleet.lines):
        if not line.parts or line.devices > room:
            continue
        room -= line.devices
        cells = [cell for box in line.boxes for cell in box.cells]
        lines[str(number)] = {
            "cells": [{"driver": one_line(cell.driver), "said": _said(cell, requests)} for cell in cells],
            "parts": list(_parts(line, claims)),
        }
    if not lines:
        return None
    content = json.dumps({"claims": list(claims), "lines": lines}, separators=(",", ":"))
    return b64encode(zlib.compress(content.encode("ascii"))).decode("ascii")


def _parts(line: Line, claims: dict[str, int]) -> Iterator[list[Any]]:
    for part in line.parts:
        cells: list[Any] = [one_line(part.title)]
        for cell, row in part.devices:
            held = [claims.setdefault(one_line(text), len(claims)) for text in _holders(row)]
            device: list[Any] = [cell, one_line(row.id.device)]
            own_pool = row.id.pool != part.title
            if held or own_pool:
                device.append(held[0] if len(held) == 1 else held or -1)
            if own_pool:
                device.append(one_line(row.id.pool))
            cells.append(device)
        yield cells


def _holders(row: DeviceRow) -> list[str]:
    if not row.holders and row.state is DeviceState.HELD:
        return ["a claim that was not read"]
    return [holder_words(row, claim) for claim in row.holders]


def _said(cell: Cell, requests: Sequence[str]) -> list[list[str]]:
    """What is true of each of the cell's devices, as pairs of label and text."""
    said = [*cell.common]
    if cell.mark is not None and cell.mark.kind in MARK_WORDS:
        names = join(requests[number] for number in cell.mark.requests)
        said.append(
            ("Claims", f"request {names}: {MARK_WORDS[cell.mark.kind]}" if names else MARK_WORDS[cell.mark.kind])
        )
    return [[label, one_line(text)] for label, text in said]
