"""What the screen shows of a cluster at one moment: four tables, made of the cells that the commands print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct
from rich.cells import cell_len

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import UndeterminedError
from kubectl_dra.explain.assumptions import rules_notes
from kubectl_dra.explain.devices.alike_devices import names_of, singly
from kubectl_dra.explain.devices.arrangement import CountedBy
from kubectl_dra.explain.devices.inventory import DeviceRow, Inventory, take_inventory
from kubectl_dra.explain.devices.wanted import Wanted
from kubectl_dra.explain.overview import Overview
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.settings import Settings
from kubectl_dra.grouped import grouped
from kubectl_dra.report import claims as claims_text
from kubectl_dra.report import devices as devices_text
from kubectl_dra.report import overview
from kubectl_dra.report import top as top_text
from kubectl_dra.report.bars import MARKS, STATE_STYLES, bar, legend
from kubectl_dra.report.explain_words import overview_answer
from kubectl_dra.report.table import owned_by
from kubectl_dra.safe_output import one_line
from kubectl_dra.text import whole_number
from kubectl_dra.usage.choices import UseBy
from kubectl_dra.usage.claim_use import ClaimUses, claim_uses
from kubectl_dra.usage.counts import UseReport, use_reports


class ScreenTable(StrEnum):
    """The tables, in the order of their keys."""

    FLEET = "Fleet"
    PENDING = "Pending"
    CLAIMS = "Claims"
    DEVICES = "Devices"


class Asked(NamedTuple):
    """A pod or claim that ``explain`` can be asked about; ``kind`` is ``pod`` or ``claim``."""

    kind: str
    namespace: str
    name: str


class Within(NamedTuple):
    """A node, class, namespace or owner, whose devices or claims can be listed; ``words`` are what to look for."""

    by: UseBy
    words: str

    @property
    def first(self) -> str:
        """The name of the node, class or namespace."""
        return next(iter(self.words.split()), "").removeprefix(WHOLE)


Subject = Asked | Within | DeviceID
"""What a row is about."""


class ScreenColumn(NamedTuple):
    """A column. Where there is no room, the one with the lowest ``keep`` goes first.

    ``styles`` are by the text of a cell, ``marks`` by each character of it.
    """

    heading: str
    keep: int
    styles: Mapping[str, str] = {}
    marks: Mapping[str, str] = {}


class Row(NamedTuple):
    """A row: its cells, safe for a terminal, what it is about, and its text in lower case, to be searched."""

    cells: tuple[str, ...]
    subject: Subject
    text: str


class Table(Struct, frozen=True):
    """A view: a sentence that sums it up, and the rows; ``empty`` is said where there are none.

    ``widths`` are the columns', in cells of a terminal.
    """

    summary: str
    columns: tuple[ScreenColumn, ...] = ()
    rows: tuple[Row, ...] = ()
    empty: str = ""
    widths: tuple[int, ...] = ()


class ClusterView(Struct, frozen=True):
    """A cluster at one moment. ``fleet`` has a table for each of ``BY``; ``error`` says why there is none."""

    snapshot: Snapshot
    settings: Settings
    namespace: str
    at: datetime
    inventory: Inventory
    claims: ClaimUses | None
    fleet: Mapping[UseBy, Table]
    listed: Mapping[ScreenTable, Table]
    notes: tuple[Words, ...] = ()

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces that have claims or pods."""
        return frozenset(space for space, _ in (*self.snapshot.claims, *self.snapshot.pods))

    def device(self, wanted: DeviceID) -> DeviceRow | None:
        """One of the devices, if it is still published."""
        return next((row for row in self.inventory.rows if row.id == wanted), None)


WHOLE: Final = "="
"""Before a word of a filter: it has to stand alone, so that gpu-1 is not gpu-10."""
BY: Final = (UseBy.nodes, UseBy.classes, UseBy.namespaces, UseBy.owners)
"""What the fleet can be counted by."""
_MARK_STYLES: Final = {mark: STATE_STYLES.get(state, "red") for state, mark in MARKS.items()}
_FLEET_GOES: Final = (
    *(
        "OTHER",
        *(state.upper() for state in top_text.OTHERS),
        "LARGEST-OWNER",
        "NODES",
        "ON-NODE",
        "IDLE",
        "LARGEST-REQUEST",
        "TAINTED",
        "CLAIMS",
        "LEFT",
        "SHARED",
    ),
    *("USED(%)", "PENDING"),
    *("PICTURE", "HELD", "FREE", "DEVICES", "OWNER", "NAMESPACE", "CLASS", "NODE"),
)
"""Columns that are left out where there is no room, first to go first."""
_CLAIMS_GO: Final = ("OWNER", "AGE", "WAITS-FOR", "POD", "NODE", "NAMESPACE", "DEVICES", "STATE", "CLAIM")
_DEVICES_GO: Final = ("CLASS", "MODEL", "WHY", "NODE", "STATE", "DEVICE")
_PENDING_GO: Final = ("CAUSE", "REASON", "NAMESPACE", "VERDICT", "NAME")
_COUNTED: Final = {UseBy.nodes: CountedBy.node, UseBy.classes: CountedBy.class_}


def look(snapshot: Snapshot, settings: Settings, namespace: str, at: datetime) -> ClusterView:
    """What a cluster shows before anything of it is explained.

    Raises:
        SlicesNotRead: without devices there is nothing to show.
    """
    whole = snapshot.exact()
    cycle = settings.scheduler.cycle(whole)
    inventory = take_inventory(whole, cycle, Wanted(), rules_notes(whole, settings))
    notes: list[Words] = [*inventory.notes]
    claims, refused = None, ""
    fleet: dict[UseBy, Table] = {}
    try:
        claims = claim_uses(snapshot, namespace)
        notes += claims.unread
        for report in use_reports(whole, settings.scheduler, BY, inventory=inventory):
            fleet[report.by] = _fleet(report, inventory, at)
    except UndeterminedError as error:
        refused = one_line(str(error))
        fleet = {by: Table(refused, empty=refused) for by in BY}
    listed = {
        ScreenTable.CLAIMS: _claims(claims, at) if claims is not None else Table(refused, empty=refused),
        ScreenTable.DEVICES: _devices(inventory),
    }
    return ClusterView(snapshot, settings, namespace, at, inventory, claims, fleet, listed, tuple(dict.fromkeys(notes)))


def _fleet(report: UseReport, inventory: Inventory, at: datetime) -> Table:
    header, *cells = top_text.table_rows(report, report.rows, at) if report.rows else ((),)
    counted = _COUNTED.get(report.by)
    named: list[tuple[str, ...]]
    summary = top_text.summary(report)
    columns = [*_columns(header, _FLEET_GOES)]
    if counted is None:
        named = [(row.namespace, owned_by(row.owner, "")) for row in report.demand]
    else:
        named = [(row.name,) for row in report.supply]
        states = grouped((name, row.state) for row in inventory.rows for name in names_of(row, counted))
        cells = [(*row, bar(states.get(name, ()))) for (name, *_), row in zip(named, cells, strict=True)]
        columns.append(ScreenColumn("PICTURE", _FLEET_GOES.index("PICTURE"), marks=_MARK_STYLES))
        summary = f"{summary}\n{legend(report.states)}"
    rows = (_row(row, Within(report.by, _whole(names))) for row, names in zip(cells, named, strict=True))
    return _table(summary, columns, rows, f"There are no {report.by} to count.")


def _whole(names: Iterable[str]) -> str:
    """A filter for rows with these names."""
    return " ".join(f"{WHOLE}{one_line(word)}" for name in names for word in name.split())


def _claims(uses: ClaimUses, at: datetime) -> Table:
    header = (*claims_text.HEADER, "WAITS-FOR")
    styles = {str(state): style for state, style in claims_text.STATE_STYLES.items()}
    columns = _columns(header, _CLAIMS_GO, styles)
    rows = (
        _row(tuple(claims_text.cells(item, False, at)), Asked("claim", meta.namespace, meta.name))
        for item in uses.items
        for meta in (item.claim.metadata,)
    )
    return _table(claims_text.summary(uses), columns, rows, claims_text.nothing(uses))


def _devices(inventory: Inventory) -> Table:
    if not inventory.rows:
        sentence = devices_text.nothing(inventory)
        return Table(sentence, empty=sentence)
    groups = singly(inventory.rows)
    shown = list(devices_text.columns(groups, several=False, wide=False))
    styles = {devices_text.state_of(row): STATE_STYLES.get(row.state, "red") for row in inventory.rows}
    columns = _columns([column.heading for column in shown], _DEVICES_GO, styles)
    rows = (_row(tuple(column.cell(group) for column in shown), group.first.id) for group in groups)
    return _table(devices_text.summary(inventory), columns, rows)


def waiting(pending: Overview) -> Table:
    """What is pending, stuck ones first."""
    ranked = sorted(pending.found, key=lambda alike: (-alike.exit_code, -len(alike.names)))
    columns = _columns(overview.HEADER, _PENDING_GO, {"cannot be scheduled": "red", "undetermined": "yellow"})
    rows = (
        _row(overview.cells(alike), Asked(kind, alike.diagnosis.namespace, name))
        for alike in ranked
        for kind, _, name in (alike.names[0].partition("/"),)
    )
    answer = overview_answer(pending)
    return _table(answer, columns, rows, answer)


def _columns(header: Sequence[str], goes: Sequence[str], styles: Mapping[str, str] = {}) -> tuple[ScreenColumn, ...]:
    """Columns of which the one with the state has its colours."""
    coloured = ("STATE", "VERDICT")
    # A heading may name a second thing in brackets.
    return tuple(
        ScreenColumn(name, goes.index(name.partition(" ")[0]), styles if name in coloured else {}) for name in header
    )


def _row(cells: Sequence[str], subject: Subject) -> Row:
    safe = tuple(one_line(cell) for cell in cells)
    return Row(safe, subject, "\n".join(safe).lower())


def _table(summary: str, columns: Sequence[ScreenColumn], rows: Iterable[Row], empty: str = "") -> Table:
    listed = tuple(rows)
    widths = (
        max(cell_len(column.heading), max((cell_len(row.cells[index]) for row in listed), default=0))
        for index, column in enumerate(columns)
    )
    shown = "\n".join(map(one_line, summary.splitlines()))
    return Table(shown, tuple(columns), listed, empty, tuple(widths))


def matching(table: Table, words: str) -> tuple[Row, ...]:
    """The rows that contain each of the words, in whatever case; after ``=`` a word has to stand alone."""
    wanted = [_pattern(word) for word in words.lower().split()]
    return (
        tuple(row for row in table.rows if all(pattern.search(row.text) for pattern in wanted))
        if wanted
        else table.rows
    )


_AGE: Final = re.compile(r"(?:\d+[smhdy])+")
_PARTS_OF_AGE: Final = re.compile(r"(\d+)(\w)")
_PARTS: Final = re.compile(r"\d+|\D+")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 31_536_000}


def ordered(table: Table, rows: Sequence[Row], heading: str, *, backwards: bool) -> tuple[Row, ...]:
    """The rows by the cells of a column: ages and numbers by their size, texts with numbers as people count."""
    place = next((place for place, column in enumerate(table.columns) if column.heading == heading), None)
    if place is None:
        return tuple(rows)
    return tuple(sorted(rows, key=lambda row: _rank(row.cells[place]), reverse=backwards))


def _rank(cell: str) -> tuple[int, int, list[tuple[int, int, str]]]:
    if cell in ("", "-"):
        return 2, 0, []
    if (number := whole_number(cell.removesuffix("%").replace(",", ""))) is not None:
        return 0, number, []
    if _AGE.fullmatch(cell):
        return 0, sum((whole_number(count) or 0) * _SECONDS[unit] for count, unit in _PARTS_OF_AGE.findall(cell)), []
    numbers = ((part, whole_number(part)) for part in _PARTS.findall(cell.lower()))
    return 1, 0, [(1, 0, part) if number is None else (0, number, "") for part, number in numbers]


def _pattern(word: str) -> re.Pattern[str]:
    if word.startswith(WHOLE) and word != WHOLE:
        return re.compile(rf"(?<![^\s,(]){re.escape(word[1:])}(?![^\s,)])")
    return re.compile(re.escape(word))
