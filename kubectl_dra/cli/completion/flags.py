"""The flags and arguments of ``kubectl dra completion``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kubectl_dra.cli.command_line import CommandFlags, DocumentedCommand


class Shell(StrEnum):
    """The shell, or kubectl."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"
    powershell = "powershell"
    kubectl = "kubectl"


class CompletionFlags(CommandFlags, frozen=True):
    """The flags and arguments of ``completion``."""

    COMMAND = DocumentedCommand
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish|powershell|kubectl", help="The shell, or kubectl.")]
