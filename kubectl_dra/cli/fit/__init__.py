"""What can be typed after ``kubectl dra fit``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import SchedulingFlags


class FitOutput(StrEnum):
    """Output formats of the answer."""

    text = "text"
    json = "json"
    yaml = "yaml"
    html = "html"


class FitFlags(SchedulingFlags, frozen=True):
    """What is typed after ``fit``."""

    target: Annotated[
        tuple[str, ...],
        typer.Argument(
            metavar="[deployment/NAME]",
            help="A workload of the cluster, in place of a manifest: also job/NAME, statefulset/NAME and the like.",
            show_default=False,
        ),
    ] = ()
    manifests: Annotated[
        tuple[str, ...],
        typer.Option(
            "--filename",
            "-f",
            metavar="MANIFEST",
            callback=opt.no_empty_path,
            help="The workload: Deployment, StatefulSet, Job, JobSet, LeaderWorkerSet, PodGroup with its pods, Pod and "
            "the like; - is standard input.",
        ),
    ] = ()
    replicas: Annotated[
        int | None,
        typer.Option("--replicas", metavar="N", min=1, help="Place so many replicas instead of those written."),
    ] = None
    most: Annotated[bool, typer.Option("--max", help="Place as many replicas as fit.")] = False
    with_nodes: opt.WithNodes = ()
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain the first pod that does not fit, as explain does.")
    ] = False
    full: Annotated[
        bool, typer.Option("--full", help="Every node that gets pods, everything that makes room, and all notes.")
    ] = False
    namespace: opt.Namespace = ""
    snapshots: opt.Snapshots = ()
    complete: opt.Complete = False
    output: Annotated[FitOutput, typer.Option("--output", "-o", help="Output format; html is one page.")] = (
        FitOutput.text
    )
    scheduler_config: opt.SchedulerConfigOption = ""
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()
