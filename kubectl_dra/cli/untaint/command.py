"""``kubectl dra untaint``: takes devices back into service."""

from __future__ import annotations

from typing import Annotated

import typer

from kubectl_dra.cli import options as opt
from kubectl_dra.cli.taint import command as common
from kubectl_dra.cli.taint.command import DryRun, OptionalWait, TaintOutput

HELP = """Remove the DeviceTaintRules that kubectl dra taint made for devices.

DEVICE and the flags that select devices are those of kubectl dra taint. Without KEY- all of them are removed. Rules
that others made for exactly these devices are removed with --overwrite only, rules that select more never; taints
that a driver sets in its ResourceSlice are the driver's to remove. What stays is said, and whose it is.

\b
Examples:
  kubectl dra untaint gpu-node-1/gpu-0
  kubectl dra untaint gpu-node-1/gpu-0 maintenance- --wait=1m
  # what would be removed of a saved cluster
  kubectl dra untaint --node gpu-node-1 --dry-run=client --snapshot cluster.json
  # every rule whose time is over
  kubectl dra untaint --expired

\b
Exit codes:
  0    done; with --expired also when nothing has expired
  1    there was nothing to remove, not confirmed, or --wait timed out
  2    error: usage, no such device, permission, DeviceTaintRules not served
  130  interrupted: what was removed stays removed
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("untaint", help=HELP, cls=OptionalWait)(untaint)


def untaint(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[DEVICE]... [KEY[:EFFECT]-]", show_default=False)
    ] = None,
    expired: Annotated[bool, typer.Option("--expired", help="Every rule of ours whose --expires is over.")] = False,
    node: common.Nodes = None,
    driver: common.Drivers = None,
    pool: common.Pools = None,
    device_class: common.Classes = None,
    selector: common.Selector = "",
    uuid: common.Hardware = None,
    claim: common.Claims = None,
    pod: common.Pods = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Also remove rules that others made for exactly these devices.")
    ] = False,
    wait: common.Wait = "",
    yes: common.Yes = False,
    dry_run: common.DryRunOption = DryRun.none,
    output: common.OutputOption = TaintOutput.text,
    field_manager: common.FieldManager = "kubectl-dra",
    color: opt.ColorOption = opt.Color.auto,
    snapshot: opt.Snapshots = None,
    namespace: opt.Namespace = "",
) -> None:
    from kubectl_dra.cli.taint.session import Selection
    from kubectl_dra.cli.untaint import run as untaint_run

    asked = untaint_run.Asked(
        words=tuple(words or ()),
        selection=Selection(
            nodes=tuple(node or ()),
            drivers=tuple(driver or ()),
            pools=tuple(pool or ()),
            classes=tuple(device_class or ()),
            selector=selector,
            hardware=tuple(uuid or ()),
            claims=tuple(claim or ()),
            pods=tuple(pod or ()),
        ),
        expired=expired,
        overwrite=overwrite,
        wait=wait,
        yes=yes,
        dry_run=dry_run.value,
        field_manager=field_manager,
        snapshots=tuple(snapshot or ()),
        namespace=namespace,
    )
    raise typer.Exit(untaint_run.run(asked, opt.connection_of(context), output.value, color.value))
