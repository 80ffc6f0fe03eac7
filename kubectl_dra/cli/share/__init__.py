"""What can be typed after ``kubectl dra share``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import SchedulingFlags


class ShareBy(StrEnum):
    """A way to share: the values of ``fit.sharing.SharingWay``, named here without importing it."""

    each = "each"
    claim = "claim"
    time_slices = "time-slices"
    mps = "mps"
    partitions = "partitions"
    capacity = "capacity"
    admin = "admin"


class ShareFlags(SchedulingFlags, frozen=True):
    """What is typed after ``share``."""

    manifests: Annotated[
        tuple[str, ...],
        typer.Option(
            "--filename",
            "-f",
            metavar="MANIFEST",
            callback=opt.no_empty_path,
            help="A workload with a claim from a template, and the template unless the cluster has it; - is standard "
            "input.",
        ),
    ] = ()
    device_class: Annotated[
        str, typer.Option("--class", metavar="CLASS", help="Without a manifest: share devices of this class.")
    ] = ""
    pods: Annotated[
        int | None,
        typer.Option(
            "--pods", metavar="N", min=1, help="So many pods share, with --class. Default: 2.", show_default=False
        ),
    ] = None
    containers: Annotated[
        int | None,
        typer.Option(
            "--containers",
            metavar="N",
            min=2,
            help="So many containers of one pod share, with --class.",
            show_default=False,
        ),
    ] = None
    tolerate: Annotated[
        tuple[str, ...],
        typer.Option(
            "--tolerate",
            metavar="KEY[=VALUE][:EFFECT]",
            help="With --class: the pods tolerate this taint of nodes; may be repeated.",
        ),
    ] = ()
    by: Annotated[
        ShareBy | None,
        typer.Option("--by", help="Write the manifest for this way to standard output.", show_default=False),
    ] = None
    part: Annotated[
        str, typer.Option("--part", metavar="QUANTITY", help="With capacity: how much each pod gets, such as 10Gi.")
    ] = ""
    namespace: opt.Namespace = ""
    snapshots: opt.Snapshots = ()
    complete: opt.Complete = False
    output: opt.OutputOption = opt.Output.text
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()
