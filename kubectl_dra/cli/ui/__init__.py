"""The flags of ``kubectl dra ui``."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.explain import ExplainFlags


class UiFlags(opt.CommandFlags, frozen=True):
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

    def as_explain(self, *, everything: bool) -> ExplainFlags:
        """What ``explain`` would be asked: of all that is pending, or of one pod."""
        return ExplainFlags(
            namespace=self.namespace,
            snapshots=self.snapshots,
            complete=self.complete,
            all_claims=everything and bool(self.namespace),
            all_namespaces=everything and not self.namespace,
            target=() if everything else ("pod",),
            scheduler_config=self.scheduler_config,
            release=self.release,
            gates=self.gates,
        )
