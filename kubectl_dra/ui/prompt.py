"""One line at the bottom in which something is typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input, Static

Typed = Callable[[str], None]


class Prompt(Horizontal):
    """Hidden until something is asked; Enter answers, Esc does not."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self) -> None:
        super().__init__()
        self._done: Typed | None = None
        self._changed: Typed | None = None
        self._left: Callable[[], None] | None = None
        self._label = Static(classes="label")
        self._input = Input(compact=True, select_on_focus=False)

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
        """Ask: ``done`` gets the answer, ``changed`` each text on the way to it, and ``left`` is told of Esc."""
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

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Tell the answer."""
        event.stop()
        done = self._done
        self._hide()
        if done is not None:
            done(event.value)

    def action_leave(self) -> None:
        """Answer nothing."""
        left = self._left
        self._hide()
        if left is not None:
            left()

    def _hide(self) -> None:
        self.display = False
        self._done = self._changed = self._left = None
        self.screen.set_focus(None)
