"""Text for a terminal or a pipe: a few styles, wrapped lines, colour only where it is wanted."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import TextIO

PIPE_WIDTH = 110
MIN_WIDTH = 60


class Painter:
    """Writes styled text through rich, which decides on colours; lines are wrapped here, never cut."""

    def __init__(self, stream: TextIO | None = None, color: str = "auto") -> None:
        self.stream = stream or sys.stdout
        terminal = self.stream.isatty()
        self.width = PIPE_WIDTH
        if terminal:
            self.width = max(MIN_WIDTH, shutil.get_terminal_size((PIPE_WIDTH, 24)).columns)
        self._styled = color == "always" or (color == "auto" and _wanted(terminal))

    def write(self, *parts: str | tuple[str, str]) -> None:
        """Writes one line; a part may be (text, style) with style bold, red, green, yellow, cyan or dim."""
        out = "".join(part if isinstance(part, str) else self._style(*part) for part in parts)
        self.stream.write(out.rstrip() + "\n")

    def paragraph(self, text: str, indent: str = "", first: str | None = None, style: str = "") -> None:
        """Writes wrapped text; ``first`` starts the first line instead of ``indent``."""
        for index, line in enumerate(wrap(text, self.width - len(indent))):
            start = first if first is not None and index == 0 else indent
            self.write(start, (line, style) if style else line)

    def _style(self, text: str, style: str) -> str:
        if not self._styled or not text:
            return text
        from rich.console import Console
        from rich.text import Text

        console = Console(force_terminal=True, color_system="standard", no_color=False, width=100_000)
        with console.capture() as capture:
            console.print(Text(text, style=style), end="", soft_wrap=True)
        return capture.get()


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` characters; a longer word stays whole. Never empty."""
    return textwrap.wrap(text, max(20, width), break_long_words=False, break_on_hyphens=False) or [""]


def _wanted(terminal: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return terminal and os.environ.get("TERM") != "dumb"
