"""``kubectl dra taint``: takes devices out of service, and says who is hit."""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.errors import UsageError
from kubectl_dra.taint import times

HELP = """Taint devices: keep new pods off them (NoSchedule), or end the pods that use them as well (NoExecute).

DEVICE is DRIVER/POOL/DEVICE, or as much of its end as is unambiguous (NODE/DEVICE, DEVICE). Instead of names, flags
select devices; they are resolved to names, shown, and confirmed when there are several.

For each device a DeviceTaintRule is made, which selects nothing else; ResourceSlices are never changed. Before
anything is written the blast radius is shown: who uses the devices, who cannot be placed any more, what is left.

\b
Effects:
  None        informs only
  NoSchedule  keeps new pods off; those that run stay
  NoExecute   deletes pods that use the device and do not tolerate it;
              PodDisruptionBudgets are not consulted. The rule is made with
              effect None first, and the server's own answer compared with
              the prediction.

--wait says what becomes of each pod, and ends when no claim holds the devices; claims with admin access hold nothing
and are not waited for. Interrupted or timed out, the same command again goes on from there.

\b
Examples:
  # what would happen
  kubectl dra taint gpu-node-1/gpu-0 maintenance:NoExecute --dry-run=client
  # no new pods on one GPU; say why
  kubectl dra taint gpu-node-1/gpu-0 maintenance:NoSchedule --reason "ECC errors" --ticket OPS-42
  # an hour for pods to end by themselves, then evict; wait until it is free
  kubectl dra taint gpu-node-1/gpu-0 maintenance:NoExecute --drain --grace 1h --wait=2h
  # by UUID, for four hours
  kubectl dra taint --uuid GPU-8f3c1d52-6a0b-4f27-9c3e-51d7e0b4a96f maintenance:NoSchedule --expires 4h
  # every taint of the cluster
  kubectl dra taint --list
  # back into service (the same as kubectl dra untaint)
  kubectl dra taint gpu-node-1/gpu-0 maintenance-

\b
Exit codes:
  0    done, or nothing had to be done
  1    refused (another taint is there, or not confirmed), or --wait timed out
  2    error: usage, no such device, permission, DeviceTaintRules not served
  130  interrupted: what was written stays
"""


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


class OptionalWait(opt.ClusterCommand):
    """A command on a cluster whose --wait may stand without a value, as kubectl's --wait does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reads the arguments.

        Raises:
            UsageError: --dry-run without a value.
        """
        for word, value in pairwise([*args, ""]):
            if word == "--":
                break
            if word == "--dry-run" and value not in tuple(DryRun):
                raise UsageError(
                    "--dry-run needs a value: --dry-run=client only says what would be done, --dry-run=server lets "
                    f"the server check it as well. See '{ctx.command_path} --help'"
                )
        return super().parse_args(ctx, [f"--wait={times.FOREVER}" if word == "--wait" else word for word in args])


Nodes = Annotated[
    list[str] | None,
    typer.Option("--node", metavar="NODE", help="Devices that this node can use."),
]
Drivers = Annotated[list[str] | None, typer.Option("--driver", metavar="NAME", help="Devices of this driver.")]
Pools = Annotated[list[str] | None, typer.Option("--pool", metavar="[DRIVER/]POOL", help="Devices of this pool.")]
Classes = Annotated[
    list[str] | None, typer.Option("--class", metavar="NAME", help="Devices that this DeviceClass selects.")
]
Selector = Annotated[
    str, typer.Option("--selector", metavar="CEL", help="Devices for which this CEL expression is true.")
]
Hardware = Annotated[
    list[str] | None, typer.Option("--uuid", metavar="ID", help="The device with this UUID or serial number.")
]
Claims = Annotated[
    list[str] | None, typer.Option("--claim", metavar="[NS/]NAME", help="The devices that this ResourceClaim holds.")
]
Pods = Annotated[list[str] | None, typer.Option("--pod", metavar="[NS/]NAME", help="The devices that this pod holds.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRunOption = Annotated[
    DryRun,
    typer.Option("--dry-run", help="client: only say what would be done; server: let the server check it as well."),
]
OutputOption = Annotated[TaintOutput, typer.Option("--output", "-o", help="Output format.")]
FieldManager = Annotated[
    str, typer.Option("--field-manager", metavar="NAME", help="Name under which the server records what is written.")
]
Wait = Annotated[
    str,
    typer.Option("--wait", metavar="[=TIMEOUT]", help="Wait, for ever or this long: 90s, 30m, 2h.", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("taint", help=HELP, cls=OptionalWait)(taint)


def taint(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[DEVICE]... KEY[=VALUE]:EFFECT | KEY[:EFFECT]-", show_default=False)
    ] = None,
    list_taints: Annotated[bool, typer.Option("--list", help="List every taint of the cluster.")] = False,
    node: Nodes = None,
    driver: Drivers = None,
    pool: Pools = None,
    device_class: Classes = None,
    selector: Selector = "",
    uuid: Hardware = None,
    claim: Claims = None,
    pod: Pods = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, recorded with the rule.")] = "",
    ticket: Annotated[str, typer.Option("--ticket", metavar="ID", help="A ticket, recorded with the rule.")] = "",
    expires: Annotated[
        str,
        typer.Option(
            "--expires", metavar="DURATION", help="Until when it is meant: untaint --expired removes it after that."
        ),
    ] = "",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a rule for the device and key that says something else.")
    ] = False,
    wait: Wait = "",
    drain: Annotated[
        bool, typer.Option("--drain", help="NoSchedule now, NoExecute after --grace or when the device is free.")
    ] = False,
    grace: Annotated[
        str,
        typer.Option(
            "--grace", metavar="DURATION", help="With --drain: how long pods have to end by themselves. [default: 5m]"
        ),
    ] = "",
    yes: Yes = False,
    dry_run: DryRunOption = DryRun.none,
    output: OutputOption = TaintOutput.text,
    field_manager: FieldManager = "kubectl-dra",
    color: opt.ColorOption = opt.Color.auto,
    snapshot: opt.Snapshots = None,
    namespace: opt.Namespace = "",
) -> None:
    from kubectl_dra.cli.taint import run as taint_run
    from kubectl_dra.cli.taint.plan import Asked
    from kubectl_dra.cli.taint.session import Selection

    selection = Selection(
        nodes=tuple(node or ()),
        drivers=tuple(driver or ()),
        pools=tuple(pool or ()),
        classes=tuple(device_class or ()),
        selector=selector,
        hardware=tuple(uuid or ()),
        claims=tuple(claim or ()),
        pods=tuple(pod or ()),
    )
    asked = Asked(
        words=tuple(words or ()),
        selection=selection,
        list_taints=list_taints,
        reason=reason,
        ticket=ticket,
        expires=expires,
        overwrite=overwrite,
        wait=wait,
        drain=drain,
        grace=grace,
        yes=yes,
        dry_run=dry_run.value,
        field_manager=field_manager,
        snapshots=tuple(snapshot or ()),
        namespace=namespace,
    )
    raise typer.Exit(taint_run.run(asked, opt.connection_of(context), output.value, color.value))
