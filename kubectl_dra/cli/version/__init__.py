"""The flags of ``kubectl dra version``."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import ClusterCommand, CommandFlags


class Quick(ClusterCommand):
    """A command that does not wait for an unresponsive server."""

    request_timeout = "3s"


class VersionFlags(CommandFlags, frozen=True):
    """The flags of ``version``."""

    COMMAND = Quick
    client: Annotated[bool, typer.Option("--client", help="Do not ask the server.")] = False
    full: Annotated[bool, typer.Option("--full", help="List the kinds and feature gates of each release as well.")] = (
        False
    )
    output: opt.OutputOption = opt.Output.text
    color: opt.ColorOption = opt.Color.auto
