"""A small picture of a fleet: a row for each node, a square for each device with the colour and sign of its state.

It is SVG to be written into a page, which colours it with ``docs/site.css``: so it follows the page's light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Final

from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory

SIGNS: Final = {
    DeviceState.FREE: "○",
    DeviceState.SHARED: "◐",
    DeviceState.HELD: "●",
    DeviceState.TAINTED: "▲",
    DeviceState.UNSERVED: "⊘",
    DeviceState.BLOCKED: "■",
    DeviceState.UNUSABLE: "✕",
    DeviceState.UNKNOWN: "?",
}
"""The same as in HTML reports."""
MAX_ROWS: Final = 8
_SIDE, _GAP, _IN_A_ROW = 18, 3, 16
_CHARACTER, _CHARACTERS = 7, 24
"""The width of one letter of a name, about, and how many letters a name may have."""


def picture(inventory: Inventory) -> str:
    """The picture; empty where nothing is published. More than ``MAX_ROWS`` places become one line that counts them."""
    rows = sorted(inventory.rows, key=lambda row: row.where)
    nodes = [(where, list(below)) for where, below in groupby(rows, lambda row: row.where)]
    if not nodes:
        return ""
    top = 0
    parts: list[str] = []
    left = 12 + _CHARACTER * min(_CHARACTERS, max(len(where) for where, _ in nodes[:MAX_ROWS]))
    for where, devices in nodes[:MAX_ROWS]:
        parts += _node(where, devices, left, top)
        top += -(-len(devices) // _IN_A_ROW) * (_SIDE + _GAP) + _GAP
    if len(nodes) > MAX_ROWS:
        parts.append(f'<text x="0" y="{top + 13}">and {len(nodes) - MAX_ROWS} more</text>')
        top += _SIDE + _GAP
    width = left + min(_IN_A_ROW, max(len(devices) for _, devices in nodes[:MAX_ROWS])) * (_SIDE + _GAP)
    return (
        f'<svg viewBox="0 0 {width} {top}" width="{width}" height="{top}" role="img" '
        f'aria-label="{escape(_said(inventory))}">{"".join(parts)}</svg>'
    )


def _said(inventory: Inventory) -> str:
    states = ", ".join(f"{count} {state}" for state, count in inventory.states().items())
    return f"{len(inventory.rows)} devices: {states}"


def _node(where: str, devices: Sequence[DeviceRow], left: int, top: int) -> list[str]:
    name = where if len(where) <= _CHARACTERS else f"{where[: _CHARACTERS - 1]}…"
    parts = [f'<text x="0" y="{top + 13}">{escape(name)}</text>']
    for position, row in enumerate(devices):
        line, column = divmod(position, _IN_A_ROW)
        x, y = left + column * (_SIDE + _GAP), top + line * (_SIDE + _GAP)
        middle = x + _SIDE // 2
        parts.append(
            f'<g class="s-{row.state}"><rect x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}" rx="3"/>'
            f'<text x="{middle}" y="{y + 13}">{SIGNS[row.state]}</text></g>'
        )
    return parts


def legend(inventories: Sequence[Inventory]) -> str:
    """What the signs mean, of the states that occur."""
    states = {state for inventory in inventories for state in inventory.states()}
    listed = (f'<span class="s-{state}">{SIGNS[state]}</span> {state}' for state in DeviceState if state in states)
    return f'<p class="legend">{" · ".join(listed)}</p>'
