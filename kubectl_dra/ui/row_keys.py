"""What keys do with the row under the cursor, or with what a page is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, ClassVar, Final, TypeVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.command import CommandLine
from kubectl_dra.errors import DraError
from kubectl_dra.explain.overview import Overview
from kubectl_dra.manifests.yaml_output import yaml_text
from kubectl_dra.report.color import Sheet
from kubectl_dra.safe_output import one_line
from kubectl_dra.ui import commands, key_help
from kubectl_dra.ui.pages import MARGIN, DevicePage, ExplainPage, ScreenPage, known
from kubectl_dra.ui.row_list import RowList
from kubectl_dra.ui.tables import Asked, ClusterView, Subject, Table
from kubectl_dra.ui.worker import BackgroundWorker, ScreenSource, Tainting
from kubectl_dra.usage.choices import UseBy

T = TypeVar("T")


class RowKeys(App[None]):
    """The part of the application that acts on a row; the rest of it has the tables."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "what_if", show=False),
        Binding("d", "describe", show=False),
        Binding("l", "logs", show=False),
        Binding("y", "copy", show=False),
        Binding("t", "taint", show=False),
        Binding("u", "untaint", show=False),
    ]

    source: ScreenSource
    worker: BackgroundWorker
    cluster_view: ClusterView | None

    def __init__(self) -> None:
        super().__init__(ansi_color=True)
        self.rows = RowList()
        self.overview: Overview | None = None
        self.waiting: Table | None = None
        self._copied: tuple[tuple[CommandLine, ...], int] = ((), 0)

    def tell(self, do: Callable[[], None]) -> None:
        """Have something done in the screen's own thread."""
        raise NotImplementedError

    def compute(self, work: Callable[[], T], done: Callable[[T | None, str], None]) -> None:
        """Work something out in the worker's thread; the result, or why there is none, is told in the screen's own."""

        def job() -> None:
            try:
                result, problem = work(), ""
            except DraError as error:
                result, problem = None, str(error)
            self.tell(lambda: done(result, problem))

        self.worker.do(job)

    def say(self, sentence: str) -> None:
        """Say something below what is shown."""
        raise NotImplementedError

    def action_taint(self) -> None:
        """Taint the device under the cursor, or that of the page."""
        self._taint(remove=False)

    def action_untaint(self) -> None:
        """Take back our taints of the device under the cursor, or that of the page."""
        self._taint(remove=True)

    def _taint(self, *, remove: bool) -> None:
        device = self._device()
        if device is None:
            self.say("Only a device is tainted: Devices is 4")
            return
        if not self.source.live:
            self.say("saved objects cannot be tainted")
            return
        self.push_screen(TaintPage(device, remove=remove))

    def _subject(self) -> Subject | None:
        """What the row under the cursor, or the page, is about."""
        if isinstance(self.screen, (DevicePage, ExplainPage)):
            return self.screen.subject
        return self.rows.subject if len(self.screen_stack) == 1 else None

    def action_what_if(self) -> None:
        """Suppose something of the pod or claim under the cursor, or that the device there were free."""
        subject, typed = self._subject(), ""
        if isinstance(subject, DeviceID):
            typed = self._freeing(subject)
            pending = self.waiting.rows if self.waiting is not None else ()
            subject = pending[0].subject if pending else None
            if subject is None:
                self.say("Nothing is pending that could use the device.")
                return
        if not isinstance(subject, Asked):
            self.say("w supposes something of a pod, a claim or a device: choose one first")
            return
        self.push_screen(ExplainPage(subject, known(self.overview, subject), what_if=typed))

    def _freeing(self, device: DeviceID) -> str:
        """What would make a device free, as a what-if; empty if it is free, or nothing alone would."""
        row = self.cluster_view.device(device) if self.cluster_view is not None else None
        if row is None:
            return ""
        if row.taints:
            return f"untaint={device}"
        return f"free={row.holders[0].key}" if row.holders else ""

    def action_describe(self) -> None:
        """Show the object under the cursor as it is written."""
        subject, view = self._subject(), self.cluster_view
        if subject is None or view is None:
            self.say("There is nothing here to describe.")
            return
        kind, name, namespace = described(subject, view)
        if not kind:
            self.say("A namespace or an owner is described by kubectl; nodes, classes, pods, claims and devices here.")
            return
        self.push_screen(ObjectPage(kind, name, namespace))

    def action_logs(self) -> None:
        """Say which commands show the logs of the drivers of what is under the cursor."""
        subject, view = self._subject(), self.cluster_view
        if subject is None or view is None:
            self.say("There is nothing here that has a driver.")
            return

        def show(found: tuple[CommandLine, ...] | None, problem: str) -> None:
            if found is None:
                self.say(problem)
            else:
                self.push_screen(CommandsPage("logs of drivers", found))

        self.compute(lambda: commands.logs(subject, view.snapshot, self.source.where), show)
        self.say("looking for the driver ...")

    def action_copy(self) -> None:
        """Copy the suggested command to the terminal's clipboard; when asked again, the next one."""
        if isinstance(self.screen, (ExplainPage, CommandsPage)):
            page_commands = self.screen.commands
        else:
            subject = self._subject()
            page_commands = commands.of_row(subject, self.source.where) if subject is not None else ()
        if not page_commands:
            self.say("There is no command here to copy.")
            return
        before, at = self._copied
        at = (at + 1) % len(page_commands) if before == page_commands else 0
        self._copied = (page_commands, at)
        self.copy_to_clipboard(str(page_commands[at]))
        which = f" {at + 1} of {len(page_commands)}, y: the next" if len(page_commands) > 1 else ""
        warning = "; it changes the cluster" if page_commands[at].effect.changes else ""
        self.say(f"copied{which}{warning}: {page_commands[at]}")

    def _device(self) -> DeviceID | None:
        subject = self._subject()
        return subject if isinstance(subject, DeviceID) else None


def described(subject: Subject, view: ClusterView) -> tuple[str, str, str]:
    """The kind, name and namespace of the object that a row is about; a device is in its slice. Empty for others."""
    if isinstance(subject, Asked):
        return "Pod" if subject.kind == "pod" else "ResourceClaim", subject.name, subject.namespace
    if isinstance(subject, DeviceID):
        row = view.device(subject)
        return ("ResourceSlice", row.slice.name, "") if row is not None else ("", "", "")
    kinds = {UseBy.nodes: "Node", UseBy.classes: "DeviceClass"}
    return kinds.get(subject.by, ""), subject.first, ""


class ObjectPage(ScreenPage):
    """An object as YAML, without what only servers write for themselves."""

    def __init__(self, kind: str, name: str, namespace: str) -> None:
        super().__init__(f"{kind} {f'{namespace}/' if namespace else ''}{name}")
        self._wanted = (kind, name, namespace)
        self._lines = ""

    def on_mount(self) -> None:
        """Read it."""
        super().on_mount()
        self.remark("reading ...")
        screens = self.screens
        screens.compute(lambda: screens.source.described(*self._wanted), self._read)

    def _read(self, raw: Any, said: str) -> None:
        if not self.is_attached:
            return
        self.remark(said or ("" if raw is not None else "There is no such object any more."))
        if raw is not None:
            metadata = {key: value for key, value in raw.get("metadata", {}).items() if key != "managedFields"}
            text = yaml_text({**raw, "metadata": metadata})
            self._lines = "\n".join(map(one_line, text.splitlines()))
            self.draw()

    def text(self, columns: int) -> Text:
        """The object."""
        return Text(self._lines)


class CommandsPage(ScreenPage):
    """Commands to copy."""

    KEYS = key_help.ROW[-1:]

    def __init__(self, title: str, commands: Sequence[CommandLine]) -> None:
        super().__init__(title)
        self.commands = tuple(commands)

    def text(self, columns: int) -> Text:
        """A line for each."""
        return Text("\n".join(one_line(str(command)) for command in self.commands))


# Tainting from the screen: what is typed, what it would do, yes or no, and what was done.


USUAL = "maintenance:NoSchedule"
_GOES_ON: Final = (0, 3)
"""Exit codes of saying what would happen after which a yes is asked for: where it is undetermined, that was said."""


class TaintPage(ScreenPage):
    """Adds a taint to a device, or takes ours back, by the commands of that name.

    They run twice: first to say what they would do, then, after a yes, to do it. What they ask in between is
    answered with the same keys; their thread waits for the answer.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", show=False),
        Binding("escape,left,backspace,n", "decline", show=False),
    ]
    KEYS = key_help.CONFIRM

    def __init__(self, device: DeviceID, *, remove: bool) -> None:
        super().__init__(f"{'untaint' if remove else 'taint'} {device}")
        self._device = device
        self._remove = remove
        self._wanted = Tainting(device)
        self._said = ""
        self._answers: SimpleQueue[bool] = SimpleQueue()
        self._asking = False
        self._planned = False
        self.writing = False

    def on_mount(self) -> None:
        """Ask which taint."""
        super().on_mount()
        if self._remove:
            self._run(only_say=True)
        else:
            # What is only being laid out cannot take the keys.
            self.call_after_refresh(self._ask_taint)

    def _ask_taint(self) -> None:
        hint = "KEY[=VALUE]:EFFECT, with None, NoSchedule or NoExecute"
        self.prompt.ask("Taint", self._typed, value=USUAL, hint=hint, left=self.action_back)

    def text(self, columns: int) -> Text:
        """What the command said."""
        return Text.from_ansi(self._said)

    def _typed(self, taint: str) -> None:
        if not taint.strip():
            self.action_back()
            return
        self._wanted = Tainting(self._device, taint.strip())
        hint = "why; it is recorded with the rule, and may be left out"
        self.prompt.ask("Reason", self._reasoned, hint=hint, left=self.action_back)

    def _reasoned(self, reason: str) -> None:
        self._wanted = self._wanted._replace(reason=reason.strip())
        self._run(only_say=True)

    def _run(self, *, only_say: bool) -> None:
        self.set_focus(self.scroll)
        self._planned, self.writing = False, not only_say
        self.remark("looking whom it hits ..." if only_say else "writing ...")
        screens, wanted, sheet = self.screens, self._wanted, Sheet(max(self.size.width - MARGIN, 20))

        def ask(question: str) -> bool:
            screens.tell(lambda: self._question(question, sheet.getvalue()))
            return self._answers.get()

        def job() -> None:
            try:
                code = screens.source.taint(wanted, sheet, ask, only_say=only_say)
                said = sheet.getvalue()
            except DraError as error:
                code, said = 2, f"{sheet.getvalue()}error: {error}\n"
            except Exception as error:
                code, said = 2, f"{sheet.getvalue()}error: a defect of kubectl-dra: {type(error).__name__}: {error}\n"
            screens.tell(lambda: self._ran(said, code, only_say=only_say))

        screens.worker.do(job)

    def _question(self, question: str, said: str) -> None:
        self._said, self._asking = said, True
        self.draw()
        self.remark(f"{question} y: yes, Esc: no")

    def _ran(self, said: str, code: int, *, only_say: bool) -> None:
        self.writing = False
        if not self.is_attached:
            return
        self._said, self._planned = said, only_say and code in _GOES_ON
        self.draw()
        if self._planned:
            what = "Take these taints back?" if self._remove else "Write it?"
            self.remark(f"{what} y: yes, Esc: no. Nothing is written yet.")
        elif only_say:
            self.remark("Nothing was written. Esc: back")
        else:
            self.remark("Done. Esc: back" if not code else f"It ended with exit code {code}. Esc: back")
            self.screens.worker.read_again()

    def action_agree(self) -> None:
        """Yes to what is asked; nothing where nothing is."""
        if self._asking:
            self._asking = False
            self.remark("writing ...")
            self._answers.put(True)
        elif self._planned:
            self._run(only_say=False)
        else:
            self.remark("There is nothing to say yes to. Esc: back")

    def action_decline(self) -> None:
        """No, or back. What is being written is waited for."""
        if self._asking:
            self._asking = False
            self._answers.put(False)
        elif not self.writing:
            self.action_back()
