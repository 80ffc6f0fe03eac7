"""Runs printed command lines in a shell that records what is executed, with which words, and executes nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Final, NamedTuple

PRINTED: Final = re.compile(
    r"^\s*(?:(?P<before>[A-Z][\w ,-]*(?: \([\w ,]+\))?): )?(?:\$ )?"
    r"(?P<line>(?:kubectl|helm|envsubst|curl|docker|gcloud|uv|pip|pipx|cd) .*)$"
)
"""A line that starts like a command, perhaps with what it is before it."""
SHELLS: Final = [shell for shell in ("bash", "zsh") if shutil.which(shell)]
FENCED: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_AMID: Final = re.compile(r"(?<![\w`'])kubectl (?:dra )?[a-z]+ (?:[^;,|()'\n]|'[^'\n]*')+")
_HERE_DOCUMENT: Final = re.compile(r"<<-?'?(\w+)'?\n.*?^\1$", re.MULTILINE | re.DOTALL)
_EACH: Final = """
mkdir() { command -p mkdir "$@"; }
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
    return [line for _, line in marked(text)]


def marked(text: str) -> list[tuple[str, str]]:
    """The same, each after the words that stand before it on its line."""
    return [(match["before"] or "", match["line"]) for line in text.splitlines() if (match := PRINTED.match(line))]


def amid(text: str) -> list[str]:
    """Commands amid the sentences of an output, with a flag or an object: others only say what a command is for."""
    found = (match[0] for line in text.splitlines() if not PRINTED.match(line) for match in _AMID.finditer(line))
    given = (command for command in found if " -" in command or "/" in command)
    # Words in capitals stand for names: it is no line to paste.
    return [command for command in given if not re.search(r"\b[A-Z]{3,}\b", command)]


def typed(page: str) -> list[str]:
    """The lines of a Markdown page that its reader is to type, those of one command as one; comments as well."""
    lines: list[str] = []
    for _, language, text in FENCED.findall(page):
        block = dedent(text)
        if language == "console":
            lines += [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
        elif language == "sh":
            lines += _HERE_DOCUMENT.sub("</dev/null", block).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip()]


def inline(page: str) -> list[str]:
    """Commands amid the sentences of a Markdown page; what has an ellipsis is visibly none."""
    found = re.findall(r"`((?:kubectl|helm|uv|pipx?|docker|gcloud) [^`]*)`", FENCED.sub("", page))
    return [" ".join(code.split()) for code in found if "..." not in code and "…" not in code]


def executed(program: str, lines: Sequence[str]) -> Executed:
    """Runs the lines with no program on the path, in an empty folder; ``program`` is bash or zsh."""
    path = shutil.which(program)
    assert path is not None
    with TemporaryDirectory() as top:
        folder = Path(top)
        here, listed, record, other = (folder / name for name in ("here", "lines", "words", "other"))
        here.mkdir()
        listed.write_text("".join(f"{line}\n" for line in lines))
        environment = {
            "PATH": "/nowhere",
            "HOME": str(here),
            "RECORD": str(record),
            "OTHER": str(other),
            "LISTED": str(listed),
        }
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
