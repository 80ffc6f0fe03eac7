"""A table of any length of which only the rows in sight are drawn; columns that have no room are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from kubectl_dra.ui.tables import Row, ScreenColumn, Subject, Table

GAP: Final = "  "
CUT: Final = "..."
NARROW: Final = 28
"""To so few cells the last column shrinks before another one is left out."""


class RowList(Widget, can_focus=True):
    """Rows with a cursor. The screen's other parts follow ``Opened`` and ``Moved``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("pagedown,ctrl+f,space", "page(1)", show=False),
        Binding("home,g", "move(-1000000000)", show=False),
        Binding("end,G", "move(1000000000)", show=False),
        Binding("enter", "open", show=False),
    ]

    class Opened(Message):
        """Enter was pressed on a row; None where there is none."""

        def __init__(self, subject: Subject | None) -> None:
            super().__init__()
            self.subject = subject

    class Moved(Message):
        """Another row is under the cursor, or there are other rows."""

    def __init__(self) -> None:
        super().__init__()
        self._columns: tuple[ScreenColumn, ...] = ()
        self._rows: Sequence[Row] = ()
        self._widths: Sequence[int] = ()
        self._empty = ""
        self._top = 0
        self._shown_name = ""
        self._subjects: dict[str, Subject | None] = {}
        self.at = 0

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self._rows)

    @property
    def subject(self) -> Subject | None:
        """What the row under the cursor is about."""
        return self._rows[self.at].subject if self._rows else None

    def left_out(self) -> list[tuple[str, str]]:
        """The heading and the text of each cell of the row under the cursor that has too little room."""
        if not self._rows or not self.size.width:
            return []
        shown, room = fitted(self._columns, self._widths, self.size.width)
        cells = self._rows[self.at].cells
        whole = {place for (place, _), wide in zip(shown, room, strict=True) if cell_len(cells[place]) <= wide}
        return [
            (column.heading, cells[place])
            for place, column in enumerate(self._columns)
            if place not in whole and not column.marks and cells[place] not in ("", "-")
        ]

    def display_rows(self, name: str, table: Table, rows: Sequence[Row], empty: str, *, anew: bool = False) -> None:
        """Show rows of the table of this name; each table keeps its cursor on the object that it is on.

        Where that is gone the cursor stays where it was, or with ``anew`` goes to the first row.
        """
        if name != self._shown_name:
            self._subjects[self._shown_name] = self.subject
            wanted = self._subjects.get(name)
            self._shown_name, self.at = name, 0
        else:
            wanted = self.subject
        self._columns, self._widths = table.columns, table.widths
        self._rows, self._empty = rows, empty
        position = next((index for index, row in enumerate(rows) if row.subject == wanted), None)
        self._put((0 if anew else self.at) if position is None else position)

    def action_move(self, by: int) -> None:
        """Move the cursor by so many rows."""
        self._put(self.at + by)

    def action_page(self, by: int) -> None:
        """Move the cursor by so many screens."""
        self._put(self.at + by * max(1, self._room - 1))

    def action_open(self) -> None:
        """Tell which row is opened."""
        self.post_message(self.Opened(self.subject))

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self._put(self.at)

    @property
    def _room(self) -> int:
        """Number of rows in sight, below the header."""
        return max(1, self.size.height - 1)

    def _put(self, at: int) -> None:
        self.at = max(0, min(at, len(self._rows) - 1))
        self._top = max(min(self._top, self.at), self.at - self._room + 1)
        self._top = max(0, min(self._top, len(self._rows) - self._room))
        self.refresh()
        self.post_message(self.Moved())

    def render_line(self, y: int) -> Strip:
        """Draw one line: the header, then the rows in sight."""
        width = self.size.width
        base = self.rich_style
        if not self._rows:
            return self._strip([(self._empty if y == 0 else "", "")], base, width)
        shown, room = fitted(self._columns, self._widths, width)
        index = self._top + y - 1
        if y == 0:
            heads = [[(_cell(column.heading, wide), "bold")] for (_, column), wide in zip(shown, room, strict=True)]
            return self._strip(_spaced(heads), base, width)
        if index >= len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[index]
        cells: list[list[tuple[str, str]]] = [
            _styled(column, _cell(row.cells[place], wide)) for (place, column), wide in zip(shown, room, strict=True)
        ]
        flat = _spaced(cells)
        if index == self.at:
            return self._strip([("".join(text for text, _ in flat), "")], base + Style(reverse=True), width)
        return self._strip(flat, base, width)

    def _strip(self, parts: Sequence[tuple[str, str]], base: Style, width: int) -> Strip:
        segments = [Segment(text, base + Style.parse(style) if style else base) for text, style in parts if text]
        return Strip(segments).adjust_cell_length(width, base)


def fitted(
    columns: Sequence[ScreenColumn], widths: Sequence[int], width: int
) -> tuple[list[tuple[int, ScreenColumn]], list[int]]:
    """The columns for which there is room, each with its place in a row, and how many cells each has.

    The last one shrinks first; then the one that is needed least is left out, and so on.
    """
    shown = [*enumerate(columns)]
    while True:
        room = [widths[place] for place, _ in shown]
        over = sum(room) + len(GAP) * (len(room) - 1) - width
        if over <= 0 or len(shown) < 2:
            return shown, room
        spare = room[-1] - NARROW
        if not shown[-1][1].marks and over <= spare:
            room[-1] -= over
            return shown, room
        shown.remove(min(shown, key=lambda entry: entry[1].keep))


def _cell(text: str, width: int) -> str:
    """The text in exactly so many cells."""
    if cell_len(text) > width and width > len(CUT):
        return set_cell_size(text, width - len(CUT)) + CUT
    return set_cell_size(text, width)


def _styled(column: ScreenColumn, text: str) -> list[tuple[str, str]]:
    if column.marks:
        return [(mark, column.marks.get(mark, "")) for mark in text]
    return [(text, column.styles.get(text.strip(), ""))]


def _spaced(cells: Sequence[list[tuple[str, str]]]) -> list[tuple[str, str]]:
    return [part for number, cell in enumerate(cells) for part in ([(GAP, "")] if number else []) + cell]
