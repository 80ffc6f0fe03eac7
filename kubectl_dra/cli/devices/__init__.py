"""The flags of ``kubectl dra devices``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import CommandFlags
from kubectl_dra.explain.devices.arrangement import CountedBy, SortKey


class DevicesOutput(StrEnum):
    """Output formats of the list."""

    text = "text"
    wide = "wide"
    json = "json"
    yaml = "yaml"
    name = "name"
    html = "html"


class DevicesFlags(CommandFlags, frozen=True):
    """The flags of ``devices``."""

    places: Annotated[
        tuple[str, ...],
        typer.Argument(
            metavar="[NODE | NODE/DEVICE]...",
            help="Only devices that these nodes can use, or these devices.",
            show_default=False,
        ),
    ] = ()
    drivers: Annotated[
        tuple[str, ...], typer.Option("--driver", metavar="NAME", help="Only devices of this driver.")
    ] = ()
    nodes: Annotated[tuple[str, ...], typer.Option("--node", metavar="NODE", help="The same as NODE alone.")] = ()
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
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NS", help="Only devices that claims of this namespace hold.")
    ] = ""
    full: Annotated[bool, typer.Option("--full", help="Show each device in a row of its own, alike or not.")] = False
    by: Annotated[CountedBy | None, typer.Option("--by", help="Count devices by this.", show_default=False)] = None
    sort: Annotated[
        SortKey,
        typer.Option(
            "--sort-by", help="Sort by this: names from the first to the last, numbers from the largest down."
        ),
    ] = SortKey.name
    all_namespaces: opt.Everywhere = False
    limit: opt.LimitOption = None
    no_headers: opt.NoHeaders = False
    watch: opt.Watch = False
    snapshots: opt.Snapshots = ()
    complete: opt.Complete = False
    output: Annotated[
        DevicesOutput,
        typer.Option(
            "--output", "-o", help="Output format; wide adds attributes, capacity and taints, html is a page."
        ),
    ] = DevicesOutput.text
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()
