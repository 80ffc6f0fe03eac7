"""What can be typed after ``kubectl dra top``."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import ClusterCommand, CommandFlags
from kubectl_dra.cli.kind_words import kind_of
from kubectl_dra.usage.choices import UseBy, UseSort

_ROWS: Final = {
    "node": UseBy.nodes,
    "class": UseBy.classes,
    "claim": UseBy.claims,
    "pod": UseBy.claims,
    "namespace": UseBy.namespaces,
    "ns": UseBy.namespaces,
    "owner": UseBy.owners,
}
"""What to count by, by the kinds that kubectl's words mean: a pod has its devices by claims."""


class TopCommand(ClusterCommand):
    """A command that takes the words for a kind in singular, too, as kubectl does."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        kind: Any = next(parameter.type for parameter in self.params if parameter.name == "by")
        convert = kind.convert
        kind.convert = lambda value, *rest: convert(_ROWS.get(kind_of(value) or value.lower(), value), *rest)


class TopFlags(CommandFlags, frozen=True):
    """What is typed after ``top``."""

    COMMAND = TopCommand

    by: Annotated[
        UseBy | None,
        typer.Argument(metavar="[nodes|classes|namespaces|owners|claims]", help="What to count by. Default: nodes."),
    ] = None
    sort: Annotated[
        UseSort | None,
        typer.Option("--sort-by", help="Sort by this. Default: what holds most devices first.", show_default=False),
    ] = None
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", metavar="NS", help="Of namespaces, owners and claims only this namespace's."),
    ] = ""
    all_namespaces: opt.Everywhere = False
    limit: opt.LimitOption = None
    no_headers: opt.NoHeaders = False
    full: Annotated[bool, typer.Option("--full", help="Show all rows and columns, whatever room there is.")] = False
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Count again every five seconds; on a terminal in place.")
    ] = False
    snapshots: opt.Snapshots = ()
    complete: opt.Complete = False
    output: opt.OutputOption = opt.Output.text
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()
