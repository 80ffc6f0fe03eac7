"""``kubectl dra devices``: every device, where it is, and who holds it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kubectl_dra.cli import options as opt

HELP = """List every device that drivers publish: where it is, which classes select it, and who holds it.

Reads the live cluster, or a snapshot with --snapshot. Never writes. Selections combine: a device has to fulfil
all of them; a flag that is repeated lists alternatives.

\b
States, the first that applies:
  unusable  its pool is incomplete, invalid or obsolete, or no node sees it
  held      a claim holds all of it
  shared    claims hold shares of it; more fit as far as its capacity goes
  blocked   other devices take the counters that it needs
  tainted   only requests that tolerate its taints get it
  unknown   no holder is known, but not all claims could be read
  free      nothing of that

\b
Examples:
  # every device of the cluster
  kubectl dra devices
  # what is free on a node, with attributes and capacity
  kubectl dra devices --node gpu-1 --free -o wide
  # devices that a request with this selector could get
  kubectl dra devices --class gpu.nvidia.com --selector \
'device.attributes["gpu.nvidia.com"].productName.contains("H100")'
  # which devices are tainted, and by whom, from saved objects
  kubectl dra devices --tainted -o wide --snapshot cluster.json
  # names for a script: DRIVER/POOL/DEVICE, one a line
  kubectl dra devices --driver gpu.nvidia.com -o name
  # the fleet as a picture, in one file
  kubectl dra devices -o html > devices.html

\b
Exit codes:
  0  devices are listed
  1  no device matches
  2  error: usage, a name that does not exist, input, connection
"""


class DevicesOutput(StrEnum):
    """Output formats of the list."""

    text = "text"
    wide = "wide"
    json = "json"
    yaml = "yaml"
    name = "name"
    html = "html"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("devices", help=HELP, cls=opt.ClusterCommand)(devices)


def devices(
    context: typer.Context,
    driver: Annotated[
        list[str] | None, typer.Option("--driver", metavar="NAME", help="Only devices of this driver.")
    ] = None,
    node: Annotated[
        list[str] | None, typer.Option("--node", metavar="NODE", help="Only devices that this node can use.")
    ] = None,
    pool: Annotated[
        list[str] | None, typer.Option("--pool", metavar="[DRIVER/]POOL", help="Only devices of this pool.")
    ] = None,
    device_class: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="NAME", help="Only devices that this DeviceClass selects."),
    ] = None,
    selector: Annotated[
        str, typer.Option("--selector", metavar="CEL", help="Only devices for which this CEL expression is true.")
    ] = "",
    free: Annotated[
        bool, typer.Option("--free", help="Only free devices: nobody holds them, nothing keeps them back.")
    ] = False,
    tainted: Annotated[bool, typer.Option("--tainted", help="Only devices with taints, held or not.")] = False,
    snapshot: opt.Snapshots = None,
    output: Annotated[
        DevicesOutput,
        typer.Option(
            "--output", "-o", help="Output format; wide adds attributes, capacity and taints, html is a page."
        ),
    ] = DevicesOutput.text,
    color: opt.ColorOption = opt.Color.auto,
    kubernetes_version: opt.ReleaseOption = "",
    feature_gates: opt.GatesOption = None,
) -> None:
    from kubectl_dra.cli.devices import run as devices_run

    asked = devices_run.Asked(
        drivers=tuple(driver or ()),
        nodes=tuple(node or ()),
        pools=tuple(pool or ()),
        classes=tuple(device_class or ()),
        selector=selector,
        free=free,
        tainted=tainted,
        snapshots=tuple(snapshot or ()),
        release=kubernetes_version,
        gates=tuple(feature_gates or ()),
    )
    raise typer.Exit(devices_run.run(asked, opt.connection_of(context), output.value, color.value))
