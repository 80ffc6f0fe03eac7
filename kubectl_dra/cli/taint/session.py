"""What ``taint`` and ``untaint`` share: the cluster read once, devices resolved, questions on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.cli.assumed import assumed
from kubectl_dra.cli.devices.run import compiled_selector
from kubectl_dra.cli.live import Progress, connection_options, read_saved
from kubectl_dra.cli.options import ConnectionFlags, Reading
from kubectl_dra.cli.taint import DeviceFlags
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.console import one_line, put, typed_line
from kubectl_dra.errors import ClusterError, UsageError
from kubectl_dra.explain.devices.inventory import Inventory, SlicesNotRead, Wanted, take_inventory
from kubectl_dra.explain.scene.prepare import Settings, cycle_of
from kubectl_dra.report.paint import tell
from kubectl_dra.taint.rules import Serving, require_rules
from kubectl_dra.taint.targets import Devices, Target, refuse_nothing

EXIT_LEFT: Final = 1
EXIT_UNDETERMINED: Final = 3
EXIT_ERROR: Final = 2
EXIT_INTERRUPTED: Final = 130
ALL_KINDS: Final = (
    "ResourceSlice",
    "DeviceClass",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "DeviceTaintRule",
    "Pod",
    "Node",
)
"""The kinds that the blast radius is made from."""
_GATES: Final = frozenset(("DRADeviceTaints", "DRADeviceTaintRules"))


class TaintWorld(Struct, frozen=True):
    """The cluster as it was read, and how it is understood. ``cluster`` and ``serving`` are None for a snapshot."""

    snapshot: Snapshot
    settings: Settings
    cycle: Cycle
    inventory: Inventory
    devices: Devices
    namespace: str
    cluster: ApiServer | None = None
    serving: Serving | None = None


class SavedWorld(Reading, Protocol):
    """Flags that name saved objects or a namespace of the cluster."""

    @property
    def namespace(self) -> str: ...


def read_world(
    connection: ConnectionFlags,
    asked: SavedWorld,
    *,
    kinds: Sequence[str] = ALL_KINDS,
    rules: bool = True,
) -> TaintWorld:
    """Reads these kinds from the live cluster, or saved objects.

    ``rules``: the cluster must serve DeviceTaintRules and act on them.

    Raises:
        DraError: no cluster, DeviceTaintRules not served, ResourceSlices not readable.
    """
    if asked.snapshots:
        return make_world(read_saved(asked), asked.namespace or "default")
    cluster = ApiServer(connection_options(connection, asked.namespace))
    serving = require_rules(cluster) if rules else None
    with Progress() as progress:
        snapshot = cluster.read_snapshot(kinds, progress=progress)
    snapshot.require_dra()
    try:
        return make_world(snapshot, cluster.namespace, cluster, serving)
    except SlicesNotRead as error:
        if not rules:
            raise
        raise ClusterError(str(error)) from None


def make_world(
    snapshot: Snapshot, namespace: str, cluster: ApiServer | None = None, serving: Serving | None = None
) -> TaintWorld:
    """Understands a snapshot as a cluster on which DeviceTaintRules work."""
    settings = assumed(snapshot)
    settings = replace(settings, gates=settings.gates | _GATES)
    cycle = cycle_of(snapshot, settings)
    inventory = take_inventory(snapshot, cycle, Wanted())
    devices = Devices(inventory.rows, snapshot)
    return TaintWorld(snapshot, settings, cycle, inventory, devices, namespace, cluster, serving)


def resolve(world: TaintWorld, names: Sequence[str], selection: DeviceFlags) -> tuple[Target, ...]:
    """The devices meant, never none.

    Raises:
        UsageError: neither names nor a selection, or both; a selection without any device.
        InputError: a name that does not exist or is ambiguous.
    """
    if names and selection.select:
        raise UsageError("give devices by name or by flags, not both")
    if names:
        return world.devices.named(names)
    if not selection.select:
        raise UsageError("say which device: DRIVER/POOL/DEVICE, NODE/DEVICE, or a flag such as --node or --uuid")
    targets = _selected(world, selection)
    refuse_nothing(targets)
    return targets


def _selected(world: TaintWorld, selection: DeviceFlags) -> tuple[Target, ...]:
    wanted = Wanted(
        drivers=selection.drivers,
        nodes=selection.nodes,
        pools=selection.pools,
        classes=selection.classes,
        selector=compiled_selector(selection.selector, world.cycle.selectors.environment)
        if selection.selector
        else None,
    )
    parts: list[tuple[Target, ...]] = []
    if wanted != Wanted():
        rows = take_inventory(world.snapshot, world.cycle, wanted).rows
        found = (world.devices.get(row.id) for row in rows)
        parts.append(tuple(dict.fromkeys(target for target in found if target is not None)))
    if selection.hardware:
        parts.append(world.devices.with_hardware(selection.hardware))
    for names, find in ((selection.claims, world.devices.of_claim), (selection.pods, world.devices.of_pod)):
        if names:
            parts.append(tuple(dict.fromkeys(target for name in names for target in find(name, world.namespace))))
    first, *others = parts
    return tuple(target for target in first if all(target in other for other in others))


def say_gaps(world: TaintWorld) -> None:
    """What was asked for and could not be read, with the verb and resource that the server names."""
    for gap in world.snapshot.gaps:
        if gap.reason != ABSENT:
            say(f"note: not seen: {gap}")


def say(sentence: str) -> None:
    """One line on stderr: progress, notes, warnings."""
    tell(sentence)


class Confirm(Protocol):
    """Asks a person whether to go on; with ``yes`` the answer is known."""

    def __call__(self, question: str, *, yes: bool) -> bool:
        """Raises UsageError where nobody can be asked."""


def confirmed(question: str, *, yes: bool) -> bool:
    """Whether to go on: asked on a terminal; elsewhere only ``yes`` will do.

    Raises:
        UsageError: there is nobody to ask.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to ask on: give --yes. Nothing was changed")
    put(f"{one_line(question)} [y/N] ", sys.stderr)
    sys.stderr.flush()
    return typed_line().strip().lower() in ("y", "yes")
