"""The lines of the picture: one per node or, in large fleets, one for all nodes that look alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow
from kubectl_dra.grouped import grouped
from kubectl_dra.report.html.cells import (
    MARKS,
    PASSED_OVER,
    Cell,
    CellLook,
    Mark,
    cell_of,
    cell_of_alike,
    look_of,
    product_of,
)

MAX_SINGLE: Final = 2_000
"""With up to this many devices, each has its own cell."""
MAX_LINES: Final = 400
"""Limit for lines of nodes that look alike; the rest becomes one line."""
MAX_CELLS: Final = 2_000
"""Limit for cells in lines of nodes that look alike; the rest becomes one line."""
MAX_DRAWN: Final = 64
"""With up to this many devices, a node unlike all others has a cell for each of them."""
MAX_BY_NAME: Final = 12
"""With up to this many lines, nodes are in the order of their names."""
MAX_NAMES: Final = 20_000
"""Limit for all node names listed."""


class Box(NamedTuple):
    """Devices drawn together: the partitions that share a counter set, or devices that share nothing (without
    a title).
    """

    title: str
    cells: tuple[Cell, ...]


class FoldedNode(NamedTuple):
    """A node or place of a folded line: its devices, each with the number of its cell."""

    title: str
    devices: tuple[tuple[int, DeviceRow], ...]


class Line(NamedTuple):
    """One line: a node, nodes that look alike, or a place that spans several nodes.

    ``nodes`` are the names to search and list, ``unlisted`` how many more there are. ``alike`` is the number
    of nodes that each have the cells of the line; 0 for cells that belong to several nodes together. ``kinds`` are
    those of devices that are drawn one by one; ``parts`` have the devices that are not.
    """

    title: str
    nodes: tuple[str, ...]
    unlisted: int
    alike: int
    boxes: tuple[Box, ...]
    devices: int
    states: Mapping[str, int]
    kinds: tuple[str, ...] = ()
    parts: tuple[FoldedNode, ...] = ()


class Fleet(NamedTuple):
    """The picture. ``grouped``: nodes that look alike share a line."""

    lines: tuple[Line, ...]
    grouped: bool
    devices: int
    states: Mapping[str, int]
    drivers: tuple[str, ...]
    classes: tuple[str, ...]
    marks: frozenset[str]


class _Place(NamedTuple):
    title: str
    rows: Sequence[DeviceRow]


def fleet_of(rows: Sequence[DeviceRow], marks: Mapping[str, Mark] | None = None) -> Fleet:
    """The picture of devices. ``marks``, by ``driver/pool/device``, say what they mean to claims."""
    known = marks or {}
    places = _places(rows)
    grouped = len(rows) > MAX_SINGLE
    lines = _grouped(places, known) if grouped else _each(places, known)
    return Fleet(
        lines=tuple(_with_names(lines)),
        grouped=grouped,
        devices=len(rows),
        states=_states(rows),
        drivers=tuple(sorted({row.id.driver for row in rows})),
        classes=tuple(sorted({name for names in {row.classes for row in rows} for name in names})),
        marks=frozenset(mark.kind for mark in known.values()),
    )


def _places(rows: Sequence[DeviceRow]) -> list[_Place]:
    """The devices by place: nodes in natural order, then places that span several nodes."""
    by_place = grouped((row.where, row) for row in rows)
    order = sorted(by_place, key=lambda title: (not _is_node(title, by_place[title][0]), natural(title)))
    return [_Place(title, sorted(by_place[title], key=_by_name)) for title in order]


def _is_node(title: str, row: DeviceRow) -> bool:
    scope = row.device.scope if row.slice.per_device_node_selection else row.slice.scope
    return title == scope.node_name or (len(row.nodes) == 1 and row.nodes[0] == title)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts ``gpu-2`` before ``gpu-10``."""
    parts = _DIGITS.split(name)
    return tuple((int(part[:18]) if at % 2 else 0, part) for at, part in enumerate(parts))


_DIGITS = re.compile("([0-9]+)")


def _by_name(row: DeviceRow) -> tuple[str, str, tuple[tuple[int, str], ...]]:
    return row.id.driver, row.id.pool, natural(row.id.device)


def _each(places: Sequence[_Place], marks: Mapping[str, Mark]) -> list[Line]:
    """A line for each place; where they are many, the best for the claims first."""
    lines = [_single(place, marks) for place in places]
    if len(lines) <= MAX_BY_NAME:
        return lines
    return sorted(lines, key=lambda line: min(_rank_of(cell) for box in line.boxes for cell in box.cells))


def _rank_of(cell: Cell) -> int:
    return MARKS.index(cell.mark.kind if cell.mark else PASSED_OVER)


def _single(place: _Place, marks: Mapping[str, Mark]) -> Line:
    """A line with a cell for each device."""
    first = place.rows[0]
    node = _is_node(place.title, first)

    def counters(row: DeviceRow) -> str:
        return f"{row.id.pool}/{row.device.consumes_counters[0].counter_set}" if row.device.consumes_counters else ""

    boxes = grouped((counters(row), cell_of(row, marks.get(str(row.id)))) for row in place.rows)
    return Line(
        title=place.title,
        nodes=(place.title,) if node else tuple(dict.fromkeys(name for row in place.rows for name in row.nodes)),
        unlisted=0,
        alike=1 if node else 0,
        boxes=tuple(_box(title.rpartition("/")[2], cells) for title, cells in boxes.items()),
        devices=len(place.rows),
        states=_states(place.rows),
        kinds=tuple(dict.fromkeys(product for row in place.rows if (product := product_of(row)))),
    )


def _box(title: str, cells: Sequence[Cell]) -> Box:
    """Partitions of one thing, with the common part of their names written once."""
    # What the first and the last in order begin with, all of them begin with.
    labels = [cell.label for cell in cells]
    first, last = min(labels), max(labels)
    at = next((at for at, (char, other) in enumerate(zip(first, last, strict=False)) if char != other), 0)
    common = first[: first.rfind("-", 0, at) + 1]
    if not title or not common:
        return Box(title, tuple(cells))
    short = tuple(cell._replace(label=cell.label[len(common) :]) for cell in cells)
    return Box(f"{common.rstrip('-')} ({title})", short)


def _grouped(places: Sequence[_Place], marks: Mapping[str, Mark]) -> list[Line]:
    """Lines of places that look alike: the best for the claims first, then the largest; the rest as one line."""
    shared: dict[CellLook, CellLook] = {}
    looks = ByIdentity[DeviceRow, CellLook]()
    for place in places:
        for row in place.rows:
            look = look_of(row, marks.get(str(row.id)))
            looks.put(row, shared.setdefault(look, look))
    groups = _groups(places, looks)
    if len(groups) > MAX_LINES:
        looks = _coarse(places, looks)
        groups = _groups(places, looks)
    ranked = sorted(groups, key=lambda alike: (_rank(alike[0], looks), -len(alike)))
    lines: list[Line] = []
    room = MAX_CELLS
    for position, alike in enumerate(ranked):
        kinds = len({id(looks[row]) for row in alike[0].rows})
        if position == MAX_LINES or kinds > room:
            rest = [place for others in ranked[position:] for place in others]
            lines.append(_alike(rest, _coarse(rest, looks), marks, are_rest=True))
            break
        # A node unlike all others has its devices drawn, while what is left can still be drawn alike.
        if len(alike) == 1 and len(alike[0].rows) <= MAX_DRAWN and len(alike[0].rows) < room // 2:
            lines.append(_single(alike[0], marks))
            room -= len(alike[0].rows)
        else:
            lines.append(_alike(alike, looks, marks))
            room -= kinds
    return lines


def _groups(places: Sequence[_Place], looks: ByIdentity[DeviceRow, CellLook]) -> list[list[_Place]]:
    """The places, grouped by the looks of their devices."""

    def alike(place: _Place) -> tuple[object, ...]:
        node = _is_node(place.title, place.rows[0])
        return "" if node else place.title, node, *sorted(id(looks[row]) for row in place.rows)

    return [*grouped((alike(place), place) for place in places).values()]


def _coarse(places: Sequence[_Place], looks: ByIdentity[DeviceRow, CellLook]) -> ByIdentity[DeviceRow, CellLook]:
    """Less detailed looks: driver, classes, state and mark."""
    shared: dict[CellLook, CellLook] = {}
    known = ByIdentity[CellLook, CellLook]()

    def coarse(look: CellLook) -> CellLook:
        less = look._replace(kind="", reason="", taints=(), twentieths=-1)
        return shared.setdefault(less, less)

    out = ByIdentity[DeviceRow, CellLook]()
    for place in places:
        out.put_all(place.rows, (known.of(looks[row], coarse) for row in place.rows))
    return out


def _rank(place: _Place, looks: ByIdentity[DeviceRow, CellLook]) -> int:
    """The position in ``MARKS`` of the best mark among a place's devices."""
    return min((MARKS.index(looks[row].mark or PASSED_OVER) for row in place.rows), default=len(MARKS))


def _alike(
    places: Sequence[_Place],
    looks: ByIdentity[DeviceRow, CellLook],
    marks: Mapping[str, Mark],
    *,
    are_rest: bool = False,
) -> Line:
    """Places that look alike as one line, or all that did not fit."""
    rows = [row for place in places for row in place.rows]
    nodes = [place.title for place in places if _is_node(place.title, place.rows[0])]
    cells, parts = _cells_alike(places, looks, marks, 1 if are_rest else len(places))
    title = places[0].title if len(places) == 1 else f"{len(places):,} nodes alike"
    return Line(
        title=f"{len(places):,} other nodes and places" if are_rest else title,
        nodes=tuple(nodes if nodes or are_rest else dict.fromkeys(name for row in rows for name in row.nodes)),
        unlisted=len(places) - len(nodes) if are_rest else 0,
        alike=0 if are_rest else len(nodes),
        boxes=(Box("", cells),),
        devices=len(rows),
        states=_states(rows),
        parts=parts,
    )


def _cells_alike(
    places: Sequence[_Place], looks: ByIdentity[DeviceRow, CellLook], marks: Mapping[str, Mark], nodes: int
) -> tuple[tuple[Cell, ...], tuple[FoldedNode, ...]]:
    """A cell for each look of the devices, and for each place which device is in which."""
    by_look = grouped((looks[row], row) for place in places for row in place.rows)
    order = sorted(by_look, key=lambda look: (look.driver, look.kind, MARKS.index(look.mark or PASSED_OVER), look))
    cells = [cell_of_alike(look, by_look[look], marks.get(str(by_look[look][0].id)), nodes) for look in order]
    numbers = {look: number for number, look in enumerate(order)}
    parts = (FoldedNode(place.title, tuple((numbers[looks[row]], row) for row in place.rows)) for place in places)
    return tuple(cells), tuple(parts)


def _with_names(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines, with the total number of node names limited. A list shared by many lines counts once."""
    room = MAX_NAMES
    for line in lines:
        if len(line.nodes) > room:
            yield line._replace(nodes=line.nodes[:room], unlisted=line.unlisted + len(line.nodes) - room)
            room = 0
        else:
            yield line
            room -= len(line.nodes)


def _states(rows: Iterable[DeviceRow]) -> dict[str, int]:
    counts = Counter(row.state for row in rows)
    return {state: counts[state] for state in DeviceState if counts[state]}
