"""The flags and arguments of ``kubectl dra demo``."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import CommandFlags, DocumentedCommand


class DemoFlags(CommandFlags, frozen=True):
    """The flags and arguments of ``demo``."""

    COMMAND = DocumentedCommand

    name: Annotated[str, typer.Argument(metavar="[NAME]", help="The example to play.", show_default=False)] = ""
    path: Annotated[bool, typer.Option("--path", help="Print where the example's files are, and play nothing.")] = False
    color: opt.ColorOption = opt.Color.auto
