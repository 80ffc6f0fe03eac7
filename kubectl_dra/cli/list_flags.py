"""What can be typed after the commands that list: ``devices``, ``claims``, ``drivers`` and ``top``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

from typer import Argument, Option

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import ClusterCommand, ReadingFlags, SchedulingFlags
from kubectl_dra.cli.kind_words import kind_of
from kubectl_dra.explain.devices.arrangement import CountedBy, SortKey
from kubectl_dra.usage.choices import ClaimSort, ClaimState, UseBy, UseSort


class DevicesOutput(StrEnum):
    """Output formats of the list."""

    text = "text"
    wide = "wide"
    json = "json"
    yaml = "yaml"
    name = "name"
    html = "html"


class DevicesFlags(ReadingFlags, frozen=True):
    """The flags of ``devices``."""

    places: Annotated[
        tuple[str, ...],
        Argument(
            metavar="[NODE | NODE/DEVICE]...",
            help="Only devices that these nodes can use, or these devices.",
            show_default=False,
        ),
    ] = ()
    drivers: Annotated[tuple[str, ...], Option("--driver", metavar="NAME", help="Only devices of this driver.")] = ()
    nodes: Annotated[tuple[str, ...], Option("--node", metavar="NODE", help="The same as NODE alone.")] = ()
    pools: Annotated[tuple[str, ...], Option("--pool", metavar="[DRIVER/]POOL", help="Only devices of this pool.")] = ()
    classes: Annotated[
        tuple[str, ...], Option("--class", metavar="NAME", help="Only devices that this DeviceClass selects.")
    ] = ()
    selector: Annotated[
        str, Option("--selector", metavar="CEL", help="Only devices for which this CEL expression is true.")
    ] = ""
    free: Annotated[bool, Option("--free", help="Only devices that are free and usable.")] = False
    tainted: Annotated[bool, Option("--tainted", help="Only devices with taints, held or not.")] = False
    namespace: Annotated[
        str, Option("--namespace", "-n", metavar="NS", help="Only devices that claims of this namespace hold.")
    ] = ""
    full: Annotated[bool, Option("--full", help="Show each device in a row of its own, alike or not.")] = False
    by: Annotated[CountedBy | None, Option("--by", help="Count devices by this.", show_default=False)] = None
    sort: Annotated[
        SortKey,
        Option("--sort-by", help="Sort by this: names from the first to the last, numbers from the largest down."),
    ] = SortKey.name
    all_namespaces: opt.Everywhere = False
    limit: opt.LimitOption = None
    no_headers: opt.NoHeaders = False
    watch: opt.Watch = False
    output: Annotated[
        DevicesOutput,
        Option("--output", "-o", help="Output format; wide adds attributes, capacity and taints, html is a page."),
    ] = DevicesOutput.text
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()


class ClaimsFlags(SchedulingFlags, frozen=True):
    """What is typed after ``claims``."""

    pods: Annotated[
        tuple[str, ...],
        Argument(
            metavar="[POD...]", help="With --alignment: only these pods, as NAME or pod/NAME.", show_default=False
        ),
    ] = ()
    namespace: Annotated[str, Option("--namespace", "-n", metavar="NS", help="Only claims of this namespace.")] = ""
    all_namespaces: opt.Everywhere = False
    labels: opt.Labels = ""
    states: Annotated[
        tuple[ClaimState, ...], Option("--state", help="Only claims in this state; may be repeated.")
    ] = ()
    alignment: Annotated[
        bool,
        Option(
            "--alignment",
            help="Show where the devices of each pod are: NUMA node, PCIe root. Of one pod: what would align them.",
        ),
    ] = False
    sort: Annotated[
        ClaimSort, Option("--sort-by", help="Sort by this: the most devices, and the oldest claim, first.")
    ] = ClaimSort.name
    limit: opt.LimitOption = None
    no_headers: opt.NoHeaders = False
    full: opt.Full = False
    watch: opt.Watch = False
    output: Annotated[
        opt.TableOutput, Option("--output", "-o", help="Output format; wide names drivers, pools and classes.")
    ] = opt.TableOutput.text
    color: opt.ColorOption = opt.Color.auto


class DriversFlags(ReadingFlags, frozen=True):
    """What is typed after ``drivers``."""

    drivers: Annotated[
        tuple[str, ...], Argument(metavar="[DRIVER]...", help="Only these drivers.", show_default=False)
    ] = ()
    nodes: Annotated[tuple[str, ...], Option("--node", metavar="NODE", help="Only drivers on this node.")] = ()
    drain_check: Annotated[
        bool, Option("--drain-check", help="Say who needs the drivers of --node while they are restarted or upgraded.")
    ] = False
    all_namespaces: opt.Everywhere = False
    limit: opt.LimitOption = None
    no_headers: opt.NoHeaders = False
    full: opt.Full = False
    watch: Annotated[bool, Option("--watch", "-w", help="Look again every five seconds; on a terminal in place.")] = (
        False
    )
    output: Annotated[
        opt.TableOutput,
        Option("--output", "-o", help="Output format; wide adds slices, generation, image and feature gates."),
    ] = opt.TableOutput.text
    color: opt.ColorOption = opt.Color.auto


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


class TopFlags(ReadingFlags, frozen=True):
    """What is typed after ``top``."""

    COMMAND = TopCommand

    by: Annotated[
        UseBy | None,
        Argument(metavar="[nodes|classes|namespaces|owners|claims]", help="What to count by. Default: nodes."),
    ] = None
    sort: Annotated[
        UseSort | None,
        Option("--sort-by", help="Sort by this. Default: what holds most devices first.", show_default=False),
    ] = None
    namespace: Annotated[
        str, Option("--namespace", "-n", metavar="NS", help="Of namespaces, owners and claims only this namespace's.")
    ] = ""
    all_namespaces: opt.Everywhere = False
    limit: opt.LimitOption = None
    no_headers: opt.NoHeaders = False
    full: Annotated[bool, Option("--full", help="Show all rows and columns, whatever room there is.")] = False
    watch: Annotated[bool, Option("--watch", "-w", help="Count again every five seconds; on a terminal in place.")] = (
        False
    )
    output: opt.OutputOption = opt.Output.text
    color: opt.ColorOption = opt.Color.auto
    release: opt.ReleaseOption = ""
    gates: opt.GatesOption = ()
