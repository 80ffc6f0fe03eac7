"""A program on a real (pseudo) terminal: what a person would see of it, and typing to it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[@-Z\\^_=>])|[\x0e\x0f]")

_ERASED = re.compile(r"[^\n]*\r\x1b\[K")


class Terminal:
    """A running program whose standard streams are a terminal of the given width. Use it with ``with``."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 80,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self._process = subprocess.Popen(
            list(command),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env={**kept, "TERM": "xterm", **(environment or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.raw = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """Everything shown so far, without control sequences."""
        shown = _ERASED.sub("", self.raw.decode(errors="replace"))
        return _CONTROL.sub("", shown).replace("\r", "")

    def type(self, text: str) -> None:
        """Types; a tab is the TAB key."""
        os.write(self._master, text.encode())

    def until(self, pattern: str, seconds: float = 60) -> re.Match[str]:
        """Waits until the screen's text matches. Raises AssertionError with the text when it does not in time."""
        end = time.monotonic() + seconds
        while (found := re.search(pattern, self.text, re.DOTALL)) is None:
            if time.monotonic() > end or not self._read(max(0.0, min(0.2, end - time.monotonic()))):
                raise AssertionError(f"{pattern!r} did not appear in:\n{self.text}")
        return found

    def end(self, seconds: float = 60) -> int:
        """Waits for the end of the program; returns its exit code."""
        end = time.monotonic() + seconds
        while self._read(0.2):
            assert time.monotonic() < end, f"it did not end:\n{self.text}"
        return self._process.wait(timeout=30)

    def _read(self, seconds: float) -> bool:
        """Reads what comes within that time; False when the program has closed the terminal."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.raw += data
        return bool(data)
