"""The flags of ``kubectl dra ui``."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import SchedulingFlags


class UiFlags(SchedulingFlags, frozen=True):
    """What is typed after ``ui``."""

    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", metavar="NS", help="Only claims and pods of this namespace. Default: all."),
    ] = ""
    snapshots: opt.Snapshots = ()
    complete: opt.Complete = False
    scheduler_config: opt.SchedulerConfigOption = ""
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()
