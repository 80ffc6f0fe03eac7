"""What can be typed after ``kubectl dra devices``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kubectl_dra.cli import options as opt


class DevicesOutput(StrEnum):
    """Output formats of the list."""

    text = "text"
    wide = "wide"
    json = "json"
    yaml = "yaml"
    name = "name"
    html = "html"


class DevicesFlags(opt.CommandFlags, frozen=True):
    """What is typed after ``devices``."""

    drivers: Annotated[
        tuple[str, ...], typer.Option("--driver", metavar="NAME", help="Only devices of this driver.")
    ] = ()
    nodes: Annotated[
        tuple[str, ...], typer.Option("--node", metavar="NODE", help="Only devices that this node can use.")
    ] = ()
    pools: Annotated[
        tuple[str, ...], typer.Option("--pool", metavar="[DRIVER/]POOL", help="Only devices of this pool.")
    ] = ()
    classes: Annotated[
        tuple[str, ...],
        typer.Option("--class", metavar="NAME", help="Only devices that this DeviceClass selects."),
    ] = ()
    selector: Annotated[
        str, typer.Option("--selector", metavar="CEL", help="Only devices for which this CEL expression is true.")
    ] = ""
    free: Annotated[bool, typer.Option("--free", help="Only devices that are free and usable.")] = False
    tainted: Annotated[bool, typer.Option("--tainted", help="Only devices with taints, held or not.")] = False
    snapshots: opt.Snapshots = ()
    output: Annotated[
        DevicesOutput,
        typer.Option(
            "--output", "-o", help="Output format; wide adds attributes, capacity and taints, html is a page."
        ),
    ] = DevicesOutput.text
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()
