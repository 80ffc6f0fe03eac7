"""The flags of ``kubectl dra snapshot``."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import CommandFlags


class SnapshotFlags(CommandFlags, frozen=True):
    """The flags of ``snapshot``."""

    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write: .json, .yaml or .yml, or - for JSON on stdout."
        ),
    ] = ""
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Replace names and other identities, consistently.")
    ] = False
    seed: Annotated[
        str,
        typer.Option(
            "--seed",
            metavar="TEXT",
            help="With --anonymize: give serial numbers and UUIDs the same replacements in each run. Default: random.",
        ),
    ] = ""
    names: Annotated[
        str,
        typer.Option(
            "--names",
            metavar="FILE",
            help="With --anonymize: also write a JSON file that maps each name to its replacement. Keep it private.",
        ),
    ] = ""
    every: Annotated[
        str,
        typer.Option(
            "--every",
            metavar="DURATION",
            help="Go on, with a new snapshot so often (10m, 1h), each a file in the directory of --output.",
        ),
    ] = ""
    keep: Annotated[
        int, typer.Option("--keep", metavar="N", min=1, help="With --every: how many snapshots to keep, the newest.")
    ] = 144
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False
    snapshots: opt.Snapshots = ()
    complete: opt.Complete = False
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NS", help="Namespace to read if reading all namespaces is forbidden."
        ),
    ] = ""
