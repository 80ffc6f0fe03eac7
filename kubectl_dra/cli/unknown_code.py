"""A code that a command's ``--explain`` does not know: the command that does, or a code like it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kubectl_dra.command import CommandLine
from kubectl_dra.data.packed import packed
from kubectl_dra.errors import UsageError
from kubectl_dra.text import did_you_mean, nearest

_FOLDERS: Final = {"causes": "explain", "rules": "lint", "changes": "migrate"}
"""Where pages are, and the command that prints them."""
_NUMBERED: Final = re.compile(r"[a-z]{3}[0-9]+", re.IGNORECASE)


def unknown_code(what: str, code: str, known: Iterable[str], listed: str) -> UsageError:
    """The error about a cause, rule or code that a command lacks; ``listed`` says where all of them are.

    A number (``DRA999``) is no misspelling of another number, so nothing is proposed for it.
    """
    if command := _command_of(code):
        line = CommandLine(("kubectl", "dra", command, "--explain", code))
        return UsageError(f'"{code}" is explained by {command}: {line}')
    near = () if _NUMBERED.fullmatch(code) else nearest(code, known)
    hint = f"; {did_you_mean(near)}" if near else f" ({listed})"
    return UsageError(f'there is no {what} "{code}"{hint}')


def _command_of(code: str) -> str:
    """The command that prints this page; empty if none does."""
    names = {code.lower(), code.upper()}
    for folder, command in _FOLDERS.items():
        if names & {page.stem for page in packed(folder).glob("*.md") if page.stem != "README"}:
            return command
    return ""
