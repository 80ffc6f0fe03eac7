"""The flags and arguments of ``kubectl dra taint`` and ``untaint``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any

from typer import Argument, Option

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.command_line import ClusterCommand, ReadingFlags
from kubectl_dra.errors import UsageError


class DryRun(StrEnum):
    """kubectl's values of --dry-run."""

    none = "none"
    client = "client"
    server = "server"


class TaintOutput(StrEnum):
    """Output formats."""

    text = "text"
    json = "json"
    yaml = "yaml"
    name = "name"


Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]


DryRunOption = Annotated[
    DryRun, Option("--dry-run", help="client: only print what would be done; server: also let the server check it.")
]


OutputOption = Annotated[TaintOutput, Option("--output", "-o", help="Output format.")]


FieldManager = Annotated[
    str, Option("--field-manager", metavar="NAME", help="Name under which the server records the changes.")
]


Wait = Annotated[
    str,
    Option(
        "--wait", metavar="[=TIMEOUT]", help="Wait, optionally at most this long: 90s, 30m, 2h.", show_default=False
    ),
]


class OptionalWait(ClusterCommand):
    """A command on a cluster whose --wait needs no value, as in kubectl."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises UsageError: --dry-run without a value, or --wait with one that does not follow "=".
        """
        for word, value in pairwise([*args, ""]):
            if word == "--":
                break
            if word == "--dry-run" and value not in tuple(DryRun):
                raise UsageError(
                    "--dry-run needs a value: --dry-run=client only says what would be done, --dry-run=server lets "
                    f"the server check it as well. See '{ctx.command_path} --help'"
                )
        if "--wait" in args:
            args = _with_its_wait(args)
        return super().parse_args(ctx, args)


def _with_its_wait(args: Sequence[str]) -> list[str]:
    """The arguments, with --wait alone as the longest one. Raises UsageError: a duration that does not follow "="."""
    from kubectl_dra.taint.times import FOREVER, is_duration

    for word, value in pairwise([*args, ""]):
        if word == "--":
            break
        if word == "--wait" and is_duration(value):
            raise UsageError(f"--wait {value} names a device {value}; for the longest wait write --wait={value}")
    return [f"--wait={FOREVER}" if word == "--wait" else word for word in args]


class DeviceFlags(ReadingFlags, frozen=True):
    """Select devices by properties instead of names; all given ones must hold."""

    COMMAND = OptionalWait
    namespace: opt.Namespace = ""
    nodes: Annotated[tuple[str, ...], Option("--node", metavar="NODE", help="Devices that this node can use.")] = ()
    drivers: Annotated[tuple[str, ...], Option("--driver", metavar="NAME", help="Devices of this driver.")] = ()
    pools: Annotated[tuple[str, ...], Option("--pool", metavar="[DRIVER/]POOL", help="Devices of this pool.")] = ()
    classes: Annotated[
        tuple[str, ...], Option("--class", metavar="NAME", help="Devices that this DeviceClass selects.")
    ] = ()
    selector: Annotated[
        str, Option("--selector", metavar="CEL", help="Devices for which this CEL expression is true.")
    ] = ""
    hardware: Annotated[
        tuple[str, ...], Option("--uuid", metavar="ID", help="The device with this UUID or serial number.")
    ] = ()
    claims: Annotated[
        tuple[str, ...], Option("--claim", metavar="[NS/]NAME", help="The devices that this ResourceClaim holds.")
    ] = ()
    pods: Annotated[tuple[str, ...], Option("--pod", metavar="[NS/]NAME", help="The devices that this pod holds.")] = ()

    @property
    def select(self) -> bool:
        """Whether any is given."""
        by_place = (self.nodes, self.drivers, self.pools, self.classes, self.selector)
        return any((*by_place, self.hardware, self.claims, self.pods))


class TaintFlags(DeviceFlags, frozen=True):
    """The flags and arguments of ``taint``."""

    words: Annotated[
        tuple[str, ...], Argument(metavar="[DEVICE]... KEY[=VALUE]:EFFECT | KEY[[=VALUE]:EFFECT]-", show_default=False)
    ] = ()
    list_taints: Annotated[bool, Option("--list", help="List every taint of the cluster.")] = False
    all_namespaces: opt.Everywhere = False
    no_headers: opt.NoHeaders = False
    reason: Annotated[str, Option("--reason", metavar="TEXT", help="The reason, recorded with the rule.")] = ""
    ticket: Annotated[str, Option("--ticket", metavar="ID", help="A ticket number, recorded with the rule.")] = ""
    expires: Annotated[
        str, Option("--expires", metavar="DURATION", help="Time after which untaint --expired removes the rule.")
    ] = ""
    overwrite: Annotated[bool, Option("--overwrite", help="Replace a different rule for the same device and key.")] = (
        False
    )
    wait: Wait = ""
    drain: Annotated[
        bool, Option("--drain", help="NoSchedule now, NoExecute after --grace or when the device is free.")
    ] = False
    grace: Annotated[
        str,
        Option("--grace", metavar="DURATION", help="With --drain: time for pods to end by themselves. [default: 5m]"),
    ] = ""
    yes: Yes = False
    dry_run: DryRunOption = DryRun.none
    output: Annotated[
        TaintOutput,
        Option(
            "--output", "-o", help="Output format; json is a report, yaml the rules, which kubectl apply -f - takes."
        ),
    ] = TaintOutput.text
    field_manager: FieldManager = "kubectl-dra"
    color: opt.ColorOption = opt.Color.auto


class UntaintFlags(DeviceFlags, frozen=True):
    """The flags and arguments of ``untaint``."""

    words: Annotated[tuple[str, ...], Argument(metavar="[DEVICE]... [KEY[[=VALUE]:EFFECT]-]", show_default=False)] = ()
    expired: Annotated[bool, Option("--expired", help="Every expired rule of kubectl dra.")] = False
    overwrite: Annotated[
        bool, Option("--overwrite", help="Also remove rules that others made for exactly these devices.")
    ] = False
    wait: Wait = ""
    yes: Yes = False
    dry_run: DryRunOption = DryRun.none
    output: OutputOption = TaintOutput.text
    field_manager: FieldManager = "kubectl-dra"
    color: opt.ColorOption = opt.Color.auto
