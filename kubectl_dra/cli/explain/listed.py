"""``explain class/NAME``, ``device/NAME`` and ``driver/NAME``: what ``devices`` and ``drivers`` say of them."""

from __future__ import annotations

from kubectl_dra.cli.devices import DevicesFlags, DevicesOutput
from kubectl_dra.cli.drivers import DriversFlags, DriversOutput
from kubectl_dra.cli.explain import ExplainFlags, ExplainOutput
from kubectl_dra.cli.explain.refused_flags import RELEASE, refuse_flags
from kubectl_dra.cli.explain.target import TypedTarget
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.errors import UsageError


def run_listed(target: TypedTarget, asked: ExplainFlags, connection: ConnectionFlags) -> int:
    """Print what is the case with it; return the exit code.

    Raises:
        UsageError: flags that ask about a pod or claim.
    """
    allowed = ("--node",) if target.kind == "driver" else ("--node", *RELEASE)
    refuse_flags(asked, f"a pod or claim, not a {target.kind}", allowed)
    nodes = (asked.node,) if asked.node else ()
    if target.kind == "driver":
        from kubectl_dra.cli.drivers.run import run as drivers

        if asked.output is ExplainOutput.html:
            raise UsageError("explain driver/NAME prints text, json or yaml, not html")
        output = DriversOutput.wide if asked.whole_page else DriversOutput(asked.output.value)
        return drivers(
            DriversFlags(
                drivers=(target.name,),
                nodes=nodes,
                snapshots=asked.snapshots,
                complete=asked.complete,
                output=output,
                color=asked.color,
            ),
            connection,
        )
    from kubectl_dra.cli.devices.run import run as devices

    return devices(
        DevicesFlags(
            places=(_as_place(target.name),) if target.kind == "device" else (),
            classes=(target.name,) if target.kind == "class" else (),
            nodes=nodes,
            full=asked.whole_page,
            snapshots=asked.snapshots,
            complete=asked.complete,
            output=DevicesOutput(asked.output.value),
            color=asked.color,
            release=asked.release,
            gates=asked.gates,
        ),
        connection,
    )


def _as_place(name: str) -> str:
    """A device as ``devices`` takes it. Raises UsageError for one without its node, of which there may be many."""
    if "/" not in name:
        raise UsageError(f"name the node of device {name} as well: device/NODE/{name}")
    return name
