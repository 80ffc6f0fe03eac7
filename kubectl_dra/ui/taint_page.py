"""Tainting from the screen: what is typed, what it would do, yes or no, and what was done."""

from __future__ import annotations

from queue import SimpleQueue
from typing import ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.errors import DraError
from kubectl_dra.report.color import Sheet
from kubectl_dra.ui import key_help
from kubectl_dra.ui.pages import MARGIN, ScreenPage
from kubectl_dra.ui.worker import Tainting

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
