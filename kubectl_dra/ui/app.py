"""The application: four tables over one view of the cluster, and pages over them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static

from kubectl_dra.errors import DraError
from kubectl_dra.explain.overview import Overview
from kubectl_dra.report.phrases import written
from kubectl_dra.safe_output import one_line
from kubectl_dra.text import nearest
from kubectl_dra.ui import commands, key_help
from kubectl_dra.ui.pages import DevicePage, ExplainPage, Prompt, ScreenPage, TextPage, known
from kubectl_dra.ui.row_keys import RowKeys, TaintPage
from kubectl_dra.ui.row_list import RowList
from kubectl_dra.ui.tables import (
    BY,
    Asked,
    ClusterView,
    ScreenTable,
    Table,
    Within,
    matching,
    ordered,
    waiting,
)
from kubectl_dra.ui.worker import BackgroundWorker, ScreenSource
from kubectl_dra.usage.choices import UseBy

THEME: Final = "ansi-dark"
"""The terminal's own colours: they are right for whoever chose them, and over ssh."""


class Order(NamedTuple):
    """By which column a table is sorted."""

    heading: str
    backwards: bool = False


class Came(NamedTuple):
    """What was shown before: the way back."""

    view: ScreenTable
    by: UseBy
    words: dict[ScreenTable, str]


class RunOnUi(Message):
    """Something that the worker's thread wants to have done here."""

    def __init__(self, do: Callable[[], None]) -> None:
        super().__init__()
        self.do = do


class Screens(RowKeys):
    """The screen. After its end ``failure`` is the error that ended it, if one did."""

    TITLE = "kubectl dra ui"
    AUTO_FOCUS = ""
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; background: ansi_default; color: ansi_default; }
    #title { height: 1; text-style: bold; }
    #summary { height: auto; max-height: 4; margin-bottom: 1; }
    #peek { height: auto; max-height: 4; }
    #remark { height: auto; max-height: 3; }
    #keys { height: 1; }
    RowList { height: 1fr; }
    Scroll { height: 1fr; scrollbar-size: 0 0; margin: 1 0 0 0; background: ansi_default; }
    #text { height: auto; padding: 0 1; }
    Prompt { height: 1; display: none; }
    Prompt .label { width: auto; text-style: bold; }
    Prompt Input { width: 1fr; background: ansi_default; color: ansi_default; }
    Prompt Input > .input--cursor { text-style: reverse; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"view('{view.name}')", show=False) for number, view in enumerate(ScreenTable, 1)),
        Binding("tab", "turn(1)", show=False, priority=True),
        Binding("shift+tab", "turn(-1)", show=False, priority=True),
        Binding("slash", "filter", show=False),
        Binding("colon", "command", show=False),
        Binding("s", "sort(False)", show=False),
        Binding("S", "sort(True)", show=False),
        Binding("b", "by", show=False),
        Binding("r", "again", show=False),
        Binding("n", "notes", show=False),
        Binding("question_mark", "keys", show=False),
        Binding("escape", "leave_table", show=False),
        Binding("q", "leave(False)", show=False),
        Binding("ctrl+c,ctrl+q", "leave(True)", show=False, priority=True),
    ]

    def __init__(self, source: ScreenSource) -> None:
        super().__init__()
        self.theme = THEME
        self.source = source
        self.cluster_view: ClusterView | None = None
        self.failure: Exception | None = None
        self.interrupted = False
        self.worker = BackgroundWorker(
            source,
            lambda seen: self.tell(lambda: self._show_seen(seen)),
            lambda overview: self.tell(lambda: self._show_waiting(overview)),
            lambda sentence: self.tell(lambda: self._show_progress(sentence)),
            lambda error, fatal: self.tell(lambda: self._failed(error, fatal)),
        )
        self._view = ScreenTable.FLEET
        self._by: UseBy = BY[0]
        self._words: dict[ScreenTable, str] = dict.fromkeys(ScreenTable, "")
        self._filtering: set[ScreenTable] = set()
        self._orders: dict[ScreenTable, Order] = {}
        self._came_from: list[Came] = []
        self._said = ""
        self._progress = "reading ..."
        self._error = ""
        # Kept, not looked up: what is said while the screens are taken down still finds them.
        self._title = Static(id="title")
        self._summary = Static(id="summary")
        self._peek = Static(id="peek")
        self._remark = Static(id="remark")
        self._prompt = Prompt()
        self._keys = Static(id="keys")

    def compose(self) -> ComposeResult:
        """The parts of the main screen from the top to the bottom."""
        yield from (self._title, self._summary, self.rows, self._peek, self._remark, self._prompt, self._keys)

    def on_mount(self) -> None:
        """Begin to read."""
        self.screen.set_focus(self.rows)
        self._draw()
        self.worker.start()

    def on_unmount(self) -> None:
        """Stop reading."""
        self.worker.end()

    # What the worker tells, in its thread

    def tell(self, do: Callable[[], None]) -> None:
        """Have something done in the screen's own thread; nothing happens after its end."""
        with suppress(RuntimeError):
            self.post_message(RunOnUi(do))

    def on_run_on_ui(self, message: RunOnUi) -> None:
        """Do it, unless the screens are being taken down."""
        if self.is_running:
            message.do()

    def _show_seen(self, seen: ClusterView) -> None:
        self.cluster_view, self._error = seen, ""
        self._draw()
        for screen in self.screen_stack:
            if isinstance(screen, ScreenPage):
                screen.seen(seen)

    def _show_waiting(self, overview: Overview) -> None:
        self.overview, self.waiting = overview, waiting(overview)
        self._draw()

    def _show_progress(self, sentence: str) -> None:
        self._progress = one_line(sentence)
        self._write_title()

    def _failed(self, error: Exception, fatal: bool) -> None:
        if fatal:
            self.failure = error
            self.exit()
            return
        self._error = one_line(f"{error}; asking again" if self.source.live else str(error))
        self._draw()

    # What is seen

    @property
    def table(self) -> Table | None:
        """The table of the view; None until it is known."""
        if self.cluster_view is None:
            return None
        if self._view is ScreenTable.FLEET:
            return self.cluster_view.fleet[self._by]
        return self.waiting if self._view is ScreenTable.PENDING else self.cluster_view.listed[self._view]

    def _draw(self, *, anew: bool = False) -> None:
        """Draw the main screen, below whatever lies over it."""
        self._write_title()
        table, words = self.table, self._words[self._view]
        if table is None:
            empty = "Nothing is explained yet." if self.cluster_view is not None else ""
            table = Table("", empty=empty)
            rows = table.rows
        else:
            rows = matching(table, words)
            if (order := self._orders.get(self._view)) is not None:
                rows = ordered(table, rows, order.heading, backwards=order.backwards)
        self._summary.update(Text(table.summary))
        empty = one_line(f"No row has {words}") if words and table.rows else table.empty
        name = f"{self._view} {self._by if self._view is ScreenTable.FLEET else ''}"
        self.rows.display_rows(name, table, rows, empty, anew=anew)
        by = (key_help.TABLES, key_help.DEVICE if self._view is ScreenTable.DEVICES else ())
        shown = [key for group in by for key in group if key.name != "b" or self._view is ScreenTable.FLEET]
        self._keys.update(key_help.line(shown, key_help.EVERYWHERE[:2], source=self.source))
        self._write_remark()

    def _write_title(self) -> None:
        width = self.size.width
        counts = {ScreenTable.PENDING: self.waiting}
        if self.cluster_view is not None:
            counts |= {view: self.cluster_view.listed[view] for view in (ScreenTable.CLAIMS, ScreenTable.DEVICES)}
        title = Text(no_wrap=True, overflow="ellipsis")
        for number, view in enumerate(ScreenTable, 1):
            table = counts.get(view)
            label = f"{number} {view}" + (f" {len(table.rows):,}" if table is not None else "")
            here = view is self._view
            title.append(f"[{label}]" if here else f" {label} ", "bold reverse" if here else "not bold")
        # The server's and the kubeconfig's words are cut before the program's own.
        state = self._progress or self._at()
        room = width - title.cell_len - len(state) - 3
        place = one_line(self.source.place)
        place = place if len(place) <= room else f"{place[: room - 3]}..." if room > 8 else ""
        right = "  ".join(filter(None, (place, state)))
        title.append(right[: max(0, width - title.cell_len - 1)].rjust(width - title.cell_len), "not bold")
        self._title.update(title)

    def _at(self) -> str:
        if self.cluster_view is None:
            return ""
        return f"live {self.cluster_view.at.astimezone():%H:%M:%S}" if self.source.live else "saved"

    def _write_remark(self) -> None:
        rows, words = self.rows, self._words[self._view]
        notes = len(self.cluster_view.notes) if self.cluster_view is not None else 0
        parts = [f"{rows.at + 1:,} of {rows.count:,}" if rows.count else ""]
        parts.append(f"filter: {words} (Esc clears it)" if words else "")
        order = self._orders.get(self._view)
        parts.append(f"by {order.heading}{', backwards' if order.backwards else ''}" if order is not None else "")
        parts.append(f"{notes} {'note' if notes == 1 else 'notes'} (n)" if notes else "")
        remark = Text(one_line("   ".join(filter(None, parts))))
        if self._error or self._said:
            remark = Text(self._said) if self._said else Text(self._error, "yellow")
        self._remark.update(remark)
        peek = Text()
        for heading, text in rows.left_out():
            peek.append(f"{'  ' if peek else ''}{heading} ", "bold").append(text)
        self._peek.update(peek)

    # What is done with keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """On a page only its own keys and those of everywhere work; while something is typed, hardly any."""
        if action in ("view", "filter", "by", "leave_table", "sort", "command") and len(self.screen_stack) > 1:
            return False
        typing = any(prompt.shown for prompt in self.screen.query(Prompt))
        return not (typing and action in ("turn", "view", "filter"))

    def on_key(self, event: events.Key) -> None:
        """Say which keys there are where one does nothing; what was said before is over."""
        self._said = ""
        if len(self.screen_stack) == 1:
            self._write_remark()
        if event.key not in self.active_bindings:
            shown = event.character if event.is_printable else event.key
            self.say(f"{shown} does nothing here; ? shows the keys")

    def _go(self, view: ScreenTable, by: UseBy | None = None, words: str | None = None) -> None:
        """Show a table, and remember what was shown for the way back."""
        self._said = ""
        here = Came(self._view, self._by, dict(self._words))
        self._view, self._by = view, by or self._by
        if words is not None:
            self._words[view] = words
            self._filtering.discard(view)
        if (here.view, here.by, here.words) == (self._view, self._by, self._words):
            self.say(f"This is {view} already.")
            return
        self._came_from.append(here)
        self._draw(anew=words is not None)

    def action_view(self, name: str) -> None:
        """Show a table."""
        self._go(ScreenTable[name])

    def action_turn(self, by: int) -> None:
        """Show the table after this one, or the one before; on a page, say that there is none."""
        if len(self.screen_stack) > 1:
            self.say(f"{'tab' if by > 0 else 'shift+tab'} does nothing here; ? shows the keys")
            return
        views = [*ScreenTable]
        self._go(views[(views.index(self._view) + by) % len(views)])

    def action_by(self) -> None:
        """Count the fleet by something else."""
        if self._view is ScreenTable.FLEET:
            self._go(self._view, BY[(BY.index(self._by) + 1) % len(BY)])
        else:
            self.say("b counts the fleet: 1")

    def action_leave_table(self) -> None:
        """Clear a filter that was typed, else go back to the table before."""
        if self._words[self._view] and (self._view in self._filtering or not self._came_from):
            self._filtered("")
        elif self._came_from:
            self._view, self._by, self._words = self._came_from.pop()
            self._draw()
        else:
            self.say("This is where you began; q ends.")

    def action_sort(self, backwards: bool) -> None:
        """Sort by the next column, or the other way round; behind the last column, as the table is made."""
        table = self.table
        headings = [column.heading for column in table.columns if not column.marks] if table is not None else []
        order = self._orders.get(self._view)
        if not headings or (backwards and order is None):
            self.say("s chooses the column to sort by first" if headings else "There is nothing to sort.")
            return
        if backwards and order is not None:
            self._orders[self._view] = order._replace(backwards=not order.backwards)
        else:
            at = headings.index(order.heading) + 1 if order is not None and order.heading in headings else 0
            self._orders.pop(self._view, None)
            if at < len(headings):
                self._orders[self._view] = Order(headings[at])
        self._draw()

    def action_filter(self) -> None:
        """Ask for the words that rows shall have; they count while they are typed."""
        before = self._words[self._view]
        self._prompt.ask("/", self._filtered, value=before, changed=self._narrow, left=lambda: self._filtered(""))

    def _narrow(self, words: str) -> None:
        self._words[self._view] = words
        self._filtering.add(self._view)
        self._draw(anew=True)

    def _filtered(self, words: str) -> None:
        self._narrow(words)
        self.screen.set_focus(self.rows)

    def action_command(self) -> None:
        """Ask where to go."""
        self._prompt.ask(":", self._commanded, hint=commands.WORDS, left=self._focus_rows)

    def _focus_rows(self) -> None:
        self.screen.set_focus(self.rows)

    def _commanded(self, typed: str) -> None:
        self._focus_rows()
        word = typed.strip().lower()
        if word in commands.ACTIONS:
            self.call_later(self.run_action, commands.ACTIONS[word])
            return
        if not word:
            return
        try:
            going = commands.goal(word)
        except DraError as error:
            self.say(str(error))
            return
        if going.namespace is not None:
            self._switch(going.namespace)
        if going.view is not None:
            self._go(going.view, going.by)

    def _switch(self, namespace: str) -> None:
        """Show only claims and pods of a namespace, or of all."""
        view = self.cluster_view
        # Where not all namespaces were read, there may be others.
        spaces = view.namespaces if view is not None and not view.snapshot.unread(("Pod", "ResourceClaim")) else ()
        if namespace and spaces and namespace not in spaces:
            near = nearest(namespace, spaces, 1)
            self.say(f"no claim or pod is in namespace {namespace}{f'; did you mean {near[0]}?' if near else ''}")
            return
        self.waiting = None
        self.compute(lambda: self.source.switch(namespace), lambda _, problem: self.say(problem) if problem else None)
        self.action_again()

    def action_again(self) -> None:
        """Read the cluster or the files again."""
        self._show_progress("reading ...")
        self.worker.read_again()

    def action_notes(self) -> None:
        """Show what was not seen."""
        if self.cluster_view is None:
            self.say("Nothing is read yet.")
            return
        unseen = self.overview.notes if self.overview is not None else ()
        notes = dict.fromkeys(written(note) for note in (*self.cluster_view.notes, *unseen))
        release = (
            f"Kubernetes {self.cluster_view.settings.scheduler.version} ({self.cluster_view.settings.release_source})"
        )
        self.push_screen(TextPage("notes", [release, *notes]))

    def action_keys(self) -> None:
        """Show all keys, or leave them."""
        if isinstance(self.screen, TextPage) and self.screen.heading == "keys":
            self.screen.action_back()
        else:
            self.push_screen(TextPage("keys", key_help.page()))

    def on_row_list_moved(self) -> None:
        """Say where the cursor is."""
        self._write_remark()

    def on_row_list_opened(self, message: RowList.Opened) -> None:
        """Open what the row is about."""
        subject = message.subject
        if subject is None:
            self.say("There is no row to open.")
            return
        if isinstance(subject, Within):
            view = ScreenTable.DEVICES if subject.by in (UseBy.nodes, UseBy.classes) else ScreenTable.CLAIMS
            self._go(view, words=subject.words)
        elif isinstance(subject, Asked):
            self.push_screen(ExplainPage(subject, known(self.overview, subject)))
        else:
            self.push_screen(DevicePage(subject))

    def say(self, sentence: str) -> None:
        if isinstance(self.screen, ScreenPage):
            self.screen.remark(sentence)
        else:
            self._said = one_line(sentence)
            self._write_remark()

    def action_leave(self, interrupted: bool) -> None:
        """End, unless something is being written: that is waited for."""
        if isinstance(self.screen, TaintPage) and self.screen.writing and not self.interrupted:
            self.interrupted = interrupted
            self.say("writing ...")
            return
        self.interrupted = interrupted
        self.exit()
