"""What can be typed after ``kubectl dra claims``."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import SchedulingFlags
from kubectl_dra.usage.choices import ClaimSort, ClaimState


class ClaimsFlags(SchedulingFlags, frozen=True):
    """What is typed after ``claims``."""

    pods: Annotated[
        tuple[str, ...],
        typer.Argument(
            metavar="[POD...]", help="With --alignment: only these pods, as NAME or pod/NAME.", show_default=False
        ),
    ] = ()
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NS", help="Only claims of this namespace.")
    ] = ""
    all_namespaces: opt.Everywhere = False
    labels: opt.Labels = ""
    states: Annotated[
        tuple[ClaimState, ...], typer.Option("--state", help="Only claims in this state; may be repeated.")
    ] = ()
    alignment: Annotated[
        bool,
        typer.Option(
            "--alignment",
            help="Show where the devices of each pod are: NUMA node, PCIe root. Of one pod: what would align them.",
        ),
    ] = False
    sort: Annotated[
        ClaimSort,
        typer.Option("--sort-by", help="Sort by this: the most devices, and the oldest claim, first."),
    ] = ClaimSort.name
    limit: opt.LimitOption = None
    no_headers: opt.NoHeaders = False
    full: opt.Full = False
    watch: opt.Watch = False
    snapshots: opt.Snapshots = ()
    complete: opt.Complete = False
    output: Annotated[
        opt.TableOutput, typer.Option("--output", "-o", help="Output format; wide names drivers, pools and classes.")
    ] = opt.TableOutput.text
    color: opt.ColorOption = opt.Color.auto
