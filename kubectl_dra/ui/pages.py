"""Pages of text over the tables: an explanation, a device, the notes, the keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, cast

from msgspec.structs import replace
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, Static

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.command import CommandLine
from kubectl_dra.errors import DraError, InputError
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.driver_refusals import judged_by_start
from kubectl_dra.explain.overview import Overview
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.new_pod import check_selectors
from kubectl_dra.explain.question.resolve import about_claim, about_pod
from kubectl_dra.explain.question.what_if_flag import WhatIfChange, parse, suppose
from kubectl_dra.explain.rivals import with_rivals
from kubectl_dra.report.color import Painter, Sheet
from kubectl_dra.report.devices import write_device
from kubectl_dra.report.explain_blocks import blocks_of, write_text
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.safe_output import one_line
from kubectl_dra.ui import key_help
from kubectl_dra.ui.commands import of_answer
from kubectl_dra.ui.key_help import ScreenHost
from kubectl_dra.ui.tables import Asked, ClusterView
from kubectl_dra.ui.worker import ScreenSource

# What ``explain`` says of a pod or claim on the screen, with what is supposed.


def answer(source: ScreenSource, seen: ClusterView, asked: Asked, changes: Sequence[WhatIfChange]) -> Diagnosis:
    """The diagnosis, as ``kubectl dra explain`` makes it.

    Raises:
        DraError: the object is gone, a change that cannot be supposed, a cluster that does not answer.
    """
    snapshot, key = seen.snapshot, (asked.namespace, asked.name)
    if asked.kind == "pod":
        pod = snapshot.pods.get(key)
        if pod is None:
            raise InputError(f"Pod {asked.namespace}/{asked.name} does not exist any more")
        check_selectors(pod)
        question = about_pod(pod, snapshot, exists=True)
        snapshot = source.completed(snapshot, [pod], everything=False)
    else:
        claim = snapshot.claims.get(key)
        if claim is None:
            raise InputError(f"ResourceClaim {asked.namespace}/{asked.name} does not exist any more")
        question = about_claim(claim)
    question, snapshot = suppose(question, snapshot, changes, seen.settings.scheduler.environment)
    settings = replace(seen.settings, supposed=tuple(changes))
    return judged_by_start(with_rivals(diagnose(question, snapshot, settings), question, snapshot, settings))


def known(overview: Overview | None, asked: Asked) -> Diagnosis | None:
    """The diagnosis that the list of what is pending was made from, without proved changes; None if there is none."""
    name = f"{asked.kind}/{asked.name}"
    for alike in overview.found if overview is not None else ():
        if alike.names[0] == name and alike.diagnosis.namespace == asked.namespace:
            return alike.diagnosis
    return None


# One line at the bottom in which something is typed.

Typed = Callable[[str], None]


class PromptInput(Input):
    """The line itself. Enter answers at once: keys that are typed quickly after it are for the page again."""

    async def action_submit(self) -> None:
        """Tell the answer."""
        cast(Prompt, self.parent).submitted(self.value)


class Prompt(Horizontal):
    """Hidden until something is asked; Enter answers, Esc does not."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self) -> None:
        super().__init__()
        self._done: Typed | None = None
        self._changed: Typed | None = None
        self._left: Callable[[], None] | None = None
        self._label = Static(classes="label")
        self._input = PromptInput(compact=True, select_on_focus=False)

    def compose(self) -> ComposeResult:
        """The question and the room for the answer."""
        yield self._label
        yield self._input

    @property
    def shown(self) -> bool:
        """Whether something is being asked."""
        return self.display

    def ask(
        self,
        label: str,
        done: Typed,
        *,
        value: str = "",
        hint: str = "",
        changed: Typed | None = None,
        left: Callable[[], None] | None = None,
    ) -> None:
        """Ask: ``done`` gets the answer, ``changed`` each text typed so far; ``left`` is called after Esc."""
        self._done, self._changed, self._left = done, None, left
        self._label.update(Text(f"{label} "))
        typed = self._input
        typed.placeholder = hint
        typed.value = value
        typed.cursor_position = len(value)
        self._changed = changed
        self.display = True
        # At once: what is typed quickly would be taken for keys of the page.
        self.screen.set_focus(typed)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell of a text on the way."""
        event.stop()
        if self._changed is not None and self.shown:
            self._changed(event.value)

    def submitted(self, answer: str) -> None:
        """Tell the answer."""
        done = self._done
        self._hide()
        if done is not None:
            done(answer)

    def action_leave(self) -> None:
        """Answer nothing."""
        leaving = self._left
        self._hide()
        if leaving is not None:
            leaving()

    def _hide(self) -> None:
        self.display = False
        self._done = self._changed = self._left = None
        self.screen.set_focus(None)


MARGIN = 2


class Scroll(VerticalScroll):
    """Text that is moved with the keys of the tables as well."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", show=False),
        Binding("j", "scroll_down", show=False),
        Binding("space,ctrl+f", "page_down", show=False),
        Binding("ctrl+b", "page_up", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
    ]

    class Moved(Message):
        """Other lines are in sight."""

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Tell of it."""
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Moved())

    def watch_virtual_size(self) -> None:
        """Tell of it: a longer text is laid out after it was given."""
        self.post_message(self.Moved())


class ScreenPage(Screen[None]):
    """A title, a text that can be moved, a remark, and the keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,left,backspace", "back", show=False)]
    KEYS: ClassVar[tuple[key_help.ScreenKey, ...]] = ()
    AUTO_FOCUS = ""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.heading = one_line(title)
        self._title = Static(id="title")
        self._text = Static(id="text")
        self._remark = Static(id="remark")
        self.scroll = Scroll()
        self.prompt = Prompt()

    def compose(self) -> ComposeResult:
        """The parts from the top to the bottom."""
        yield self._title
        with self.scroll:
            yield self._text
        yield self._remark
        yield self.prompt
        yield Static(key_help.line(self.KEYS, key_help.EVERYWHERE, source=self.screens.source), id="keys")

    @property
    def screens(self) -> ScreenHost:
        """The application."""
        return cast(ScreenHost, self.app)

    def on_mount(self) -> None:
        """Show the text, and let it be moved."""
        self.set_focus(self.scroll)
        self.draw()

    def on_resize(self) -> None:
        """Wrap the text anew."""
        self.draw()

    def action_back(self) -> None:
        """Leave the page."""
        self.dismiss()

    def draw(self) -> None:
        """Show the text as wide as there is room."""
        self._text.update(self.text(max(self.size.width - MARGIN, 20)))
        self.call_after_refresh(self.on_scroll_moved)

    def on_scroll_moved(self) -> None:
        """Say which lines are in sight, where that is not all of them."""
        lines, top, room = self.scroll.virtual_size.height, round(self.scroll.scroll_y), self.scroll.size.height
        where = f"  lines {top + 1:,} to {min(lines, top + room):,} of {lines:,}" if lines > room else ""
        title = Text(self.heading, no_wrap=True, overflow="ellipsis")
        title.truncate(max(0, self.size.width - len(where)), overflow="ellipsis", pad=True)
        self._title.update(title.append(where, "not bold"))

    def text(self, columns: int) -> Text:
        """The text, wrapped."""
        raise NotImplementedError

    def remark(self, sentence: str) -> None:
        """Say something below the text; nothing for an empty sentence."""
        self._remark.update(Text(one_line(sentence)))

    def seen(self, seen: ClusterView) -> None:
        """Take notice of a new view of the cluster."""


class TextPage(ScreenPage):
    """A page of paragraphs that stay as they are."""

    def __init__(self, title: str, paragraphs: Iterable[str] | Text) -> None:
        super().__init__(title)
        self._paragraphs = paragraphs if isinstance(paragraphs, Text) else tuple(paragraphs)

    def text(self, columns: int) -> Text:
        """The paragraphs, each with a dash before it."""
        if isinstance(self._paragraphs, Text):
            return self._paragraphs
        sheet = Sheet(columns)
        out = Painter(sheet, "never")
        for paragraph in self._paragraphs:
            out.paragraph(paragraph, indent="  ", first="- ")
        return Text(sheet.getvalue())


class ExplainPage(ScreenPage):
    """What ``explain`` says of a pod or claim, and what it would say if something were different."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "what_if", show=False),
        Binding("f", "full", show=False),
    ]
    KEYS = (*key_help.POD, *key_help.ROW[-1:])

    def __init__(self, asked: Asked, first: Diagnosis | None, what_if: str | None = None) -> None:
        super().__init__(f"{asked.kind}/{asked.name} of namespace {asked.namespace}")
        self.subject = asked
        self._begin = what_if
        self._diagnosis = first
        self._full = False
        self._typed = what_if or ""
        self._problem = ""
        self._changes: tuple[WhatIfChange, ...] = ()

    def on_mount(self) -> None:
        """Ask at once, and where one came to suppose something, what."""
        super().on_mount()
        self._ask()
        if self._begin is not None:
            # What is only being laid out cannot take the keys.
            self.call_after_refresh(self.action_what_if)

    def seen(self, seen: ClusterView) -> None:
        """Ask again."""
        self._ask()

    def text(self, columns: int) -> Text:
        """The answer, short or with all that is behind it."""
        if self._diagnosis is None:
            return Text("")
        sheet = Sheet(columns)
        invocation = Invocation(where=self.screens.source.where)
        write_text([self._diagnosis], "always", sheet, invocation=invocation, full=self._full)
        return Text.from_ansi(sheet.getvalue())

    @property
    def commands(self) -> tuple[CommandLine, ...]:
        """The commands that the answer suggests, those that change nothing first."""
        if self._diagnosis is None:
            return ()
        invocation = Invocation(where=self.screens.source.where).about(self._diagnosis)
        return of_answer(blocks_of(self._diagnosis, invocation))

    def action_full(self) -> None:
        """Show more, or less."""
        if self._diagnosis is None:
            self.remark("Nothing is explained yet.")
            return
        self._full = not self._full
        self.draw()

    def action_what_if(self) -> None:
        """Ask for a change to suppose."""
        hint = "count=2, class=NAME, selector=CEL, free=[NS/]CLAIM, end=[NS/]POD, untaint=DEVICE"
        self.prompt.ask("What if", self._suppose, value=self._typed, hint=hint, left=self._focus)

    def _focus(self) -> None:
        self.set_focus(self.scroll)

    def _suppose(self, typed: str) -> None:
        self._focus()
        try:
            self._changes = (parse(typed),) if typed.strip() else ()
        except DraError as error:
            self._wrong(typed, str(error))
            return
        self._typed, self._problem = typed, ""
        self._ask()

    def _wrong(self, typed: str, problem: str) -> None:
        """Say what is wrong with a what-if, and let it be corrected."""
        self._typed, self._problem = typed, problem
        self.remark(problem)
        self.action_what_if()

    def _ask(self) -> None:
        screens, changes = self.screens, self._changes
        self.remark("explaining ...")

        def diagnosis() -> Diagnosis | None:
            seen = screens.cluster_view
            return answer(screens.source, seen, self.subject, changes) if seen is not None else None

        screens.compute(diagnosis, lambda found, problem: self._answered(changes, found, problem))

    def _answered(self, changes: tuple[WhatIfChange, ...], diagnosis: Diagnosis | None, error: str) -> None:
        if changes != self._changes or not self.is_attached or (diagnosis is None and not error):
            return
        if error and changes:
            self._changes = ()
            self._wrong(self._typed, error)
            return
        # What was typed may be wrong since the question was asked.
        self.remark(error or self._problem)
        if diagnosis is not None:
            self._diagnosis = diagnosis
            self.draw()


class DevicePage(ScreenPage):
    """A device and who holds it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "app.taint", show=False),
        Binding("u", "app.untaint", show=False),
    ]
    KEYS = key_help.DEVICE

    def __init__(self, device: DeviceID) -> None:
        super().__init__(f"device {device}")
        self.subject = device

    def seen(self, seen: ClusterView) -> None:
        """Show it as it is now."""
        self.draw()

    def text(self, columns: int) -> Text:
        """All that is known of the device."""
        seen = self.screens.cluster_view
        row = seen.device(self.subject) if seen is not None else None
        if seen is None or row is None:
            return Text(one_line(f"{self.subject} is not published any more"))
        sheet = Sheet(columns)
        write_device(row, seen.claims.items if seen.claims is not None else (), seen.at, sheet, "always")
        return Text.from_ansi(sheet.getvalue())
