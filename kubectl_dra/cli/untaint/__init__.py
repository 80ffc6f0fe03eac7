"""The flags and arguments of ``kubectl dra untaint``."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli import taint as common


class UntaintFlags(common.DeviceFlags, frozen=True):
    """The flags and arguments of ``untaint``."""

    words: Annotated[
        tuple[str, ...], typer.Argument(metavar="[DEVICE]... [KEY[[=VALUE]:EFFECT]-]", show_default=False)
    ] = ()
    expired: Annotated[bool, typer.Option("--expired", help="Every expired rule of kubectl dra.")] = False
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Also remove rules that others made for exactly these devices.")
    ] = False
    wait: common.Wait = ""
    yes: common.Yes = False
    dry_run: common.DryRunOption = common.DryRun.none
    output: common.OutputOption = common.TaintOutput.text
    field_manager: common.FieldManager = "kubectl-dra"
    color: opt.ColorOption = opt.Color.auto
    snapshots: opt.Snapshots = ()
    complete: opt.Complete = False
    namespace: opt.Namespace = ""
