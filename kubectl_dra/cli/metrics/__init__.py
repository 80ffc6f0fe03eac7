"""What can be typed after ``kubectl dra metrics``."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import SchedulingFlags


class MetricsFlags(SchedulingFlags, frozen=True):
    """What is typed after ``metrics``."""

    listen: Annotated[
        str,
        typer.Option(
            "--listen",
            metavar="[HOST]:PORT",
            help="Serve the metrics here and keep them current by watching the cluster. Default: print them once.",
        ),
    ] = ""
    node_pool_labels: Annotated[
        tuple[str, ...],
        typer.Option(
            "--node-pool-label",
            metavar="KEY",
            help="Label of nodes whose value is node_pool; of several the first that a node has. Default: those of "
            "GKE, EKS, AKS and Karpenter, else the instance type.",
        ),
    ] = ()
    snapshots: opt.Snapshots = ()
    complete: opt.Complete = False
    scheduler_config: opt.SchedulerConfigOption = ""
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()
