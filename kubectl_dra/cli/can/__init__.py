"""The flags of ``kubectl dra can``."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import CommandFlags


class CanFlags(CommandFlags, frozen=True):
    """The flags of ``can``."""

    command: Annotated[
        str, typer.Argument(metavar="[COMMAND]", help="The command to ask about. Default: all that ask a cluster.")
    ] = ""
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NS", help="Also say what is allowed in this namespace alone.")
    ] = ""
    needs: Annotated[
        bool, typer.Option("--needs", help="Print what it needs, without asking a server; -o yaml prints the role.")
    ] = False
    full: Annotated[bool, typer.Option("--full", help="Also name the permissions that only some answers need.")] = False
    output: opt.OutputOption = opt.Output.text
    color: opt.ColorOption = opt.Color.auto
