"""Runs printed command lines in a shell that records what is executed, with which words, and executes nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

PRINTED: Final = re.compile(
    r"^\s*(?:[A-Z][\w ,-]*(?: \([\w ,]+\))?: )?(?:\$ )?(?P<line>(?:kubectl|helm|envsubst|curl) .*|cd .*)$"
)
"""A line that starts like a command, perhaps with what it is before it."""
SHELLS: Final = [shell for shell in ("bash", "zsh") if shutil.which(shell)]
_EACH: Final = """
kubectl() { printf '%s\\0' kubectl "$@" $'\\n' >>"$RECORD"; }
command_not_found_handle() { printf '%s\\n' "$*" >>"$OTHER"; }
command_not_found_handler() { printf '%s\\n' "$*" >>"$OTHER"; }
while IFS= read -r line; do eval "$line" || printf 'failed: %s\\n' "$line" >>"$OTHER"; done <"$LISTED"
"""


class Executed(NamedTuple):
    """What lines do in a shell: the words of each call of kubectl, and whatever else happened."""

    calls: list[list[str]]
    other: str


def printed(text: str) -> list[str]:
    """The commands in an output."""
    return [match["line"] for line in text.splitlines() if (match := PRINTED.match(line))]


def executed(program: str, lines: Sequence[str]) -> Executed:
    """Runs the lines with no program on the path, in an empty folder; ``program`` is bash or zsh."""
    path = shutil.which(program)
    assert path is not None
    with TemporaryDirectory() as top:
        folder = Path(top)
        here, listed, record, other = (folder / name for name in ("here", "lines", "words", "other"))
        here.mkdir()
        listed.write_text("".join(f"{line}\n" for line in lines))
        environment = {"PATH": "/nowhere", "RECORD": str(record), "OTHER": str(other), "LISTED": str(listed)}
        subprocess.run([path, "-c", _EACH], cwd=here, env=environment, check=True, timeout=60, capture_output=True)
        words = record.read_text().split("\0") if record.exists() else []
        made = "".join(f"made {path.name!r}\n" for path in here.iterdir())
        said = other.read_text() if other.exists() else ""
    calls: list[list[str]] = []
    call: list[str] = []
    for word in words:
        if word == "\n":
            calls.append(call)
            call = []
        else:
            call.append(word)
    return Executed(calls, f"{said}{made}")
