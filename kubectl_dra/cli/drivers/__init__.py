"""What can be typed after ``kubectl dra drivers``."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import CommandFlags


class DriversFlags(CommandFlags, frozen=True):
    """What is typed after ``drivers``."""

    drivers: Annotated[
        tuple[str, ...], typer.Argument(metavar="[DRIVER]...", help="Only these drivers.", show_default=False)
    ] = ()
    nodes: Annotated[tuple[str, ...], typer.Option("--node", metavar="NODE", help="Only drivers on this node.")] = ()
    drain_check: Annotated[
        bool,
        typer.Option("--drain-check", help="Say who needs the drivers of --node while they are restarted or upgraded."),
    ] = False
    all_namespaces: opt.Everywhere = False
    limit: opt.LimitOption = None
    no_headers: opt.NoHeaders = False
    full: opt.Full = False
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Look again every five seconds; on a terminal in place.")
    ] = False
    snapshots: opt.Snapshots = ()
    complete: opt.Complete = False
    output: Annotated[
        opt.TableOutput,
        typer.Option("--output", "-o", help="Output format; wide adds slices, generation, image and feature gates."),
    ] = opt.TableOutput.text
    color: opt.ColorOption = opt.Color.auto
