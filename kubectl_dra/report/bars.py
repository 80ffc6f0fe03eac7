"""Pictures at a terminal: bars of devices and pods by state, a matrix of drivers. In a pipe there are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.report.color import Painter
from kubectl_dra.report.table import GAP
from kubectl_dra.text import amount

if TYPE_CHECKING:
    from kubectl_dra.drivers.health import DriverState, NodeDriver

MARKS: Final = {
    DeviceState.FREE: "o",
    DeviceState.SHARED: "+",
    DeviceState.HELD: "#",
    DeviceState.TAINTED: "!",
    DeviceState.BLOCKED: ":",
    DeviceState.UNSERVED: "/",
    DeviceState.UNUSABLE: "x",
    DeviceState.UNKNOWN: "?",
}
CELLS: Final = 40
"""Room for the marks of one row."""
PICTURE: Final = "PICTURE"
"""The heading of a column of bars."""
STATE_STYLES: Final = {
    DeviceState.FREE: "green",
    DeviceState.HELD: "",
    DeviceState.SHARED: "cyan",
    DeviceState.TAINTED: "yellow",
}
"""Styles of device states; others are red."""
_MARK_STYLES: Final = {mark: STATE_STYLES.get(state, "red") for state, mark in MARKS.items()}
MOST: Final = 8
"""So many bars or rows of a matrix; the table below has the others."""
_LEAST_CELLS: Final = 10


def bar(states: Sequence[DeviceState], cells: int = CELLS) -> str:
    """A mark for each device, in their order; of more devices than ``cells``, each state has its share."""
    if len(states) <= cells:
        return "".join(MARKS[state] for state in states)
    counts = Counter(states)
    # Whatever occurs has a mark, however rare it is; the most frequent one takes what is left.
    most = max(counts, key=lambda state: counts[state])
    shares = {state: max(1, count * cells // len(states)) for state, count in counts.items()}
    shares[most] += cells - sum(shares.values())
    return "".join(MARKS[state] * shares[state] for state in DeviceState if state in shares)


def legend(states: Iterable[DeviceState]) -> str:
    """What the marks mean, of the states that occur."""
    present = {*states}
    return "  ".join(f"{MARKS[state]} {state}" for state in DeviceState if state in present)


def with_bars(
    rows: Sequence[tuple[str, ...]], counts: Sequence[Mapping[DeviceState, int]], out: Painter
) -> list[tuple[str, ...]]:
    """The rows of a table, the header first, with a bar of each row's devices behind it."""
    if not out.draws:
        return list(rows)
    bars = (bar([state for state in DeviceState for _ in range(count.get(state, 0))]) for count in counts)
    return [(*row, cell) for row, cell in zip(rows, (PICTURE, *bars), strict=True)]


def write_bars(out: Painter, states: Mapping[str, Sequence[DeviceState]]) -> None:
    """A bar for each name, at most ``MOST``, what the marks mean, and an empty line."""
    if not out.draws or not states:
        return
    shown = list(states)[:MOST]
    wide = max(map(len, shown))
    cells = min(CELLS, out.width - wide - len(GAP))
    if cells < _LEAST_CELLS:
        return
    for name in shown:
        out.write(name.ljust(wide), GAP, *_painted(bar(states[name], cells)))
    more = len(states) - len(shown)
    rest = f"{GAP}and {amount(more, 'more node')} below" if more else ""
    out.write(" " * wide, GAP, legend(state for row_states in states.values() for state in row_states), rest)
    out.write("")


def _painted(marks: str) -> Iterator[tuple[str, str]]:
    """The marks, those with one style together."""
    for style, run in groupby(marks, lambda mark: _MARK_STYLES[mark]):
        yield "".join(run), style


class Share(NamedTuple):
    """A part of a whole: how many, the mark of each, its style, and what it is called."""

    size: int
    mark: str
    style: str
    called: str


def write_shares(out: Painter, shares: Sequence[Share]) -> None:
    """One bar of several parts, and how many each has."""
    there = [share for share in shares if share.size]
    total = sum(share.size for share in there)
    if not out.draws or not total:
        return
    room = min(CELLS, total)
    parts = [(share.mark * max(1, share.size * room // total), share.style) for share in there]
    legend = ", ".join(f"{share.mark} {share.size:,} {share.called}" for share in there)
    out.write("  ", *parts, f"{GAP}{legend}")


_OF_DRIVERS: Final = {"red": "x", "yellow": "?", "green": "o", "": "-"}


def write_matrix(out: Painter, rows: Sequence[NodeDriver], style: Mapping[DriverState, str]) -> None:
    """A line for each node, a column for each driver; nothing where there is only one of either."""
    drivers = sorted({row.driver for row in rows})
    nodes = dict.fromkeys(row.node for row in rows if row.node)
    if not out.draws or len(drivers) < 2 or len(nodes) < 2:
        return
    states = {(row.node, row.driver): row.state for row in rows}
    shown = list(nodes)[:MOST]
    wide = max(len("NODE"), *map(len, shown))
    if wide + sum(len(GAP) + len(driver) for driver in drivers) > out.width:
        return
    out.write(("NODE".ljust(wide), "bold"), *((f"{GAP}{driver}", "bold") for driver in drivers))
    for node in shown:
        cells = []
        last = max(driver for driver in drivers if (node, driver) in states)
        for driver in drivers:
            if driver > last:
                break
            state = states.get((node, driver))
            look = style[state] if state is not None else ""
            mark = _OF_DRIVERS[look] if state is not None else " "
            cells.append((f"{GAP}{mark.ljust(len(driver)) if driver != last else mark}", look))
        out.write(node.ljust(wide), *cells)
    meanings: dict[str, list[str]] = {mark: [] for mark in _OF_DRIVERS.values()}
    for state in dict.fromkeys(sorted(row.state for row in rows)):
        meanings[_OF_DRIVERS[style[state]]].append(state.value)
    more = len(nodes) - len(shown)
    rest = f"{GAP}and {amount(more, 'more node')} below" if more else ""
    legend = (f"{mark} {' or '.join(states)}" for mark, states in meanings.items() if states)
    out.write(GAP.join(legend), rest)
    out.write("")
