"""The flags of ``kubectl dra lsp``."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import CommandFlags
from kubectl_dra.cli.lint import LintFlags


class LspFlags(CommandFlags, frozen=True):
    """The flags of ``lsp``: those of ``lint`` that say what to check for."""

    snapshots: opt.Snapshots = ()
    complete: opt.Complete = False
    live: Annotated[bool, typer.Option("--live", help="Know the classes and devices of the cluster.")] = False
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NS", help="With --live: read this namespace of the cluster.")
    ] = ""
    config: Annotated[
        str, typer.Option("--config", metavar="FILE", help="Configuration instead of the nearest .kubectl-dra.yaml.")
    ] = ""
    release: Annotated[
        str,
        typer.Option(
            "--kubernetes-version",
            metavar="VERSION",
            help="Release to check for, 1.31 to 1.37. Default: the cluster's with --live or --snapshot, else 1.37.",
        ),
    ] = ""
    gates: opt.GatesOption = ()

    def as_lint(self) -> LintFlags:
        """What ``lint`` would be asked for."""
        return LintFlags(
            snapshots=self.snapshots,
            complete=self.complete,
            live=self.live,
            namespace=self.namespace,
            config=self.config,
            release=self.release,
            gates=self.gates,
        )
