r"""The one way out to the terminal.

Names, attributes, messages and file names come from strangers. On its way out each character that could move the
cursor, hide text or turn its direction is written as JSON has it (``\u001b``), so that JSON and quoted YAML say the
same as before. A line feed ends a line where this program says so, not where a value does. Secrets are not shown.

``sys.stdout`` and ``sys.stderr`` are a ``Console`` in every command, so that libraries go the same way.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TextIO, cast

CLEAR_LINE: Final = "\r\033[K"
_SHORTEST_SECRET: Final = 8
_SHORT_WAIT: Final = 0.3
# Control characters but tab and line feed; invisible ones and those that turn the direction of text; halves of
# surrogate pairs; tags.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
# What a runner of GitHub Actions takes for a command.
_COMMAND: Final = re.compile(r"^(\s*):(?=:)|##(?=\[)", re.MULTILINE)
_secrets: set[str] = set()


def visible(text: str) -> str:
    r"""The text with hidden characters written as ``\u202e``, and without secrets. Line feeds and tabs stay."""
    for secret in _secrets:
        text = text.replace(secret, "…")
    if text.isascii() and (text.isprintable() or text.replace("\n", "").isprintable()):
        return text
    return _HIDDEN.sub(_escaped, text)


def one_line(value: str) -> str:
    r"""A value that shall not end a line: as ``visible``, line feeds as ``\n``."""
    return visible(value).replace("\n", "\\n")


def is_hidden(text: str) -> bool:
    """Whether there is a character that ``visible`` writes out."""
    return _HIDDEN.search(text) is not None


def conceal(secret: str) -> None:
    """Never show this text from now on. What is too short to be a secret is not remembered."""
    if len(secret) >= _SHORTEST_SECRET:
        _secrets.add(secret)


class Console:
    """A text stream that shows what is hidden; for everything else it is the stream that it was made of."""

    def __init__(self, stream: TextIO, *, may_fail: bool = False) -> None:
        """With ``may_fail``, what cannot be written is lost: a full disk behind 2> is no reason to end otherwise."""
        self._stream = stream
        self._failures: tuple[type[Exception], ...] = (OSError,) if may_fail else ()
        self._runner = os.environ.get("GITHUB_ACTIONS") == "true"

    def write(self, text: str) -> int:
        clean = visible(text)
        if self._runner:
            clean = _COMMAND.sub(_defused, clean)
        self.exact(clean)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def exact(self, text: str) -> None:
        """Write what this program made itself, such as colours."""
        with suppress(*self._failures):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(*self._failures):
            self._stream.flush()

    def painted(self, text: str) -> None:
        """Write text that has passed ``visible`` before it was wrapped and coloured: a new line may begin anywhere."""
        self.exact(_COMMAND.sub(_defused, text) if self._runner else text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def install() -> None:
    """Make ``sys.stdout`` and ``sys.stderr`` consoles, in UTF-8 whatever the locale, as kubectl's output is."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller (>&-)
            stream = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        if not isinstance(stream, Console):
            setattr(sys, name, cast(TextIO, Console(stream, may_fail=name == "stderr")))


def put(text: str, stream: TextIO | None = None) -> None:
    """Write text with the line feeds that it has, to standard output if no stream is given."""
    (stream or sys.stdout).write(text)


def lines(values: Iterable[str], stream: TextIO) -> None:
    """Write each value on a line of its own."""
    stream.write("".join(f"{one_line(value)}\n" for value in values))


def exact(text: str, stream: TextIO) -> None:
    """Write what this program made itself, byte for byte."""
    (stream.exact if isinstance(stream, Console) else stream.write)(text)


def painted(text: str, stream: TextIO) -> None:
    """Write what has passed ``visible``, wrapped and coloured: no line of it is a command to a runner."""
    (stream.painted if isinstance(stream, Console) else stream.write)(text)


def clear_screen() -> None:
    """Make room on the terminal for what comes next."""
    exact("\033[H\033[J", sys.stdout)


def document(text: str) -> None:
    """Write the user's own text to standard output: byte for byte where a program reads it, else as ``visible``."""
    if sys.stdout.isatty():
        put(text.replace("\r\n", "\n"))
    else:
        exact(text, sys.stdout)


def _escaped(match: re.Match[str]) -> str:
    data = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at]:02x}{data[at + 1]:02x}" for at in range(0, len(data), 2))


def _defused(match: re.Match[str]) -> str:
    return f"{match[1]}\\u003a" if match[1] is not None else "#\\u0023"


def typed_line() -> str:
    """A line that a person types; empty at the end of the input.

    A Ctrl-C that comes just before a wait is only seen after it, so that no wait is long.
    """
    from select import select

    with suppress(OSError, TypeError, ValueError):
        while not select([sys.stdin], (), (), _SHORT_WAIT)[0]:
            pass
    return sys.stdin.readline()
