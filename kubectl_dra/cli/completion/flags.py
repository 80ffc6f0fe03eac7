"""What can be typed after ``kubectl dra completion``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer.core import TyperCommand

from kubectl_dra.cli.options import CommandFlags


class Shell(StrEnum):
    """What is to complete."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"
    powershell = "powershell"
    kubectl = "kubectl"


class CompletionFlags(CommandFlags, frozen=True):
    """What is typed after ``completion``."""

    COMMAND = TyperCommand
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish|powershell|kubectl", help="The shell, or kubectl.")]
