"""What ``taint`` and ``untaint`` share: the cluster read once, devices resolved, questions on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cli.live import Progress, api_server, read_saved, require_namespace
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.release import assumed
from kubectl_dra.cli.taint import DeviceFlags
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.errors import ClusterError, UsageError
from kubectl_dra.exit_codes import EXIT_NO
from kubectl_dra.explain.devices.inventory import Inventory, SlicesNotRead, take_inventory
from kubectl_dra.explain.devices.wanted import Wanted, compiled_selector
from kubectl_dra.explain.settings import Settings
from kubectl_dra.report.color import tell
from kubectl_dra.safe_output import one_line, put, typed_line
from kubectl_dra.taint import times
from kubectl_dra.taint.apply import RuleWriter
from kubectl_dra.taint.blast_radius import ENDED
from kubectl_dra.taint.device_taint_rules import (
    NEXT_AT,
    UNCHANGED,
    DesiredRule,
    RuleStage,
    Serving,
    require_rules,
    served_in,
    undetermined,
)
from kubectl_dra.taint.result import Tainted
from kubectl_dra.taint.steady_watches import Patience, TimedOut, Watcher
from kubectl_dra.taint.targets import Devices, Target, parts_of
from kubectl_dra.taint.wait_until_drained import Drain

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


class TaintedCluster(Struct, frozen=True):
    """The cluster as it was read, and how it is understood. ``cluster`` and ``serving`` are None for a snapshot."""

    snapshot: Snapshot
    settings: Settings
    cycle: Cycle
    inventory: Inventory
    devices: Devices
    namespace: str
    cluster: ApiServer | None = None
    serving: Serving | None = None

    @property
    def served(self) -> bool | None:
        """Whether the cluster serves DeviceTaintRules; None where saved objects do not tell."""
        # A live cluster that does not serve them is an error before there is a plan.
        return self.cluster is not None or served_in(self.snapshot, self.settings.scheduler.release)

    @property
    def unseen(self) -> str:
        """Note that it is invisible whether the cluster acts on rules; empty where it is visible, or the default."""
        return undetermined(self.serving) if self.serving is not None else ""


def read_tainted(
    connection: ConnectionFlags, flags: DeviceFlags, *, kinds: Sequence[str] = ALL_KINDS, rules: bool = True
) -> TaintedCluster:
    """Reads these kinds from the live cluster, or saved objects.

    ``rules``: the cluster must serve DeviceTaintRules and act on them.
    """
    if flags.snapshots:
        saved = read_saved(flags)
        saved.require_dra()
        saved.require_namespace(flags.namespace)
        return tainted_cluster(saved, flags.namespace or "default")
    cluster = api_server(connection, flags.namespace)
    serving = require_rules(cluster) if rules else None
    with Progress() as progress:
        snapshot = cluster.read_snapshot(kinds, progress=progress)
    snapshot.require_dra()
    require_namespace(flags.namespace, snapshot, connection, live=True)
    try:
        return tainted_cluster(snapshot, cluster.namespace, cluster, serving)
    except SlicesNotRead as error:
        if not rules:
            raise
        raise ClusterError(str(error)) from None


def tainted_cluster(
    snapshot: Snapshot, namespace: str, cluster: ApiServer | None = None, serving: Serving | None = None
) -> TaintedCluster:
    """Understands a snapshot as a cluster on which DeviceTaintRules work."""
    settings = assumed(snapshot)
    settings = replace(settings, scheduler=settings.scheduler.changed(gates=settings.scheduler.gates | _GATES))
    cycle = settings.scheduler.cycle(snapshot)
    inventory = take_inventory(snapshot, cycle, Wanted())
    devices = Devices(inventory, snapshot)
    return TaintedCluster(snapshot, settings, cycle, inventory, devices, namespace, cluster, serving)


def resolve(tainted: TaintedCluster, names: Sequence[str], selection: DeviceFlags) -> tuple[Target, ...]:
    """The devices meant, never none.

    Raises:
        UsageError: neither names nor a selection, or both; a selection without any device.
        InputError: a name that does not exist or is ambiguous.
    """
    if names and selection.select:
        raise UsageError("give devices by name or by flags, not both")
    if names:
        return tainted.devices.named(names)
    if not selection.select:
        raise UsageError("say which device: DRIVER/POOL/DEVICE, NODE/DEVICE, or a flag such as --node or --uuid")
    targets = _selected(tainted, selection)
    if not targets:
        # No rule is ever made without a device.
        raise UsageError("no device is selected; nothing is done")
    return targets


def _selected(tainted: TaintedCluster, selection: DeviceFlags) -> tuple[Target, ...]:
    wanted = Wanted(
        drivers=selection.drivers,
        nodes=selection.nodes,
        pools=selection.pools,
        classes=selection.classes,
        selector=compiled_selector(selection.selector, tainted.cycle.selectors.environment)
        if selection.selector
        else None,
    )
    parts: list[tuple[Target, ...]] = []
    if wanted != Wanted():
        rows = take_inventory(tainted.snapshot, tainted.cycle, wanted).rows
        targets = (tainted.devices.get(row.id) for row in rows)
        parts.append(tuple(dict.fromkeys(target for target in targets if target is not None)))
    if selection.hardware:
        parts.append(tainted.devices.with_hardware(selection.hardware))
    for names, find in ((selection.claims, tainted.devices.of_claim), (selection.pods, tainted.devices.of_pod)):
        if names:
            parts.append(tuple(dict.fromkeys(target for name in names for target in find(name, tainted.namespace))))
    first, *others = parts
    return tuple(target for target in first if all(target in other for other in others))


def say_gaps(tainted: TaintedCluster) -> None:
    """What was asked for and could not be read, with the verb and resource that the server names."""
    for gap in tainted.snapshot.gaps:
        if gap.reason != ABSENT:
            tell(f"note: not seen: {gap}")


class Confirm(Protocol):
    """Asks a person whether to go on; with ``yes`` the answer is known."""

    def __call__(self, question: str, *, yes: bool) -> bool:
        """Raises UsageError where nobody can be asked."""


def confirmed(question: str, *, yes: bool) -> bool:
    """Whether to go on: asked on a terminal; elsewhere only ``yes`` will do.

    Raises UsageError: there is nobody to ask.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to ask on: give --yes. Nothing was changed")
    put(f"{one_line(question)} [y/N] ", sys.stderr)
    sys.stderr.flush()
    return typed_line().strip().lower() in ("y", "yes")


# Waiting until tainted devices are free, and the second step of --drain.


def wait(
    tainted: TaintedCluster,
    rules: RuleWriter,
    desired_rules: Sequence[DesiredRule],
    result: Tainted,
    deadline: float | None,
    *,
    escalate: bool,
) -> Tainted:
    """Wait until the devices are free or until ``deadline`` (``time.monotonic``; None means no limit).

    ``escalate``: --drain, which turns NoSchedule into NoExecute on the way.

    Raises:
        RuleGone, RuleRefused: somebody else deleted or changed one of the rules.
        ClusterError: the cluster can no longer be reached.
    """
    with _watcher(tainted, deadline) as watcher:
        drain = _drain(tainted, desired_rules, result, watcher, "NoSchedule" if escalate else "")
        try:
            if escalate:
                _let_end(rules, desired_rules, drain)
            blockers = drain.wait()
        except TimedOut:
            # The server did not answer at the end: what was known last is told.
            return replace(result, free=False, blockers=drain.blockers, exit_code=EXIT_NO)
    for claim in drain.watchers:
        tell(f"note: {claim}")
    ended = replace(result, free=not blockers, blockers=blockers, exit_code=EXIT_NO if blockers else 0)
    return ended if blockers else replace(ended, held_parts=drain.held_parts)


def let_end(tainted: TaintedCluster, rules: RuleWriter, desired_rules: Sequence[DesiredRule], result: Tainted) -> None:
    """--drain without --wait: returns when every rule has the effect NoExecute. Raises as ``wait``."""
    with _watcher(tainted) as watcher:
        _let_end(rules, desired_rules, _drain(tainted, desired_rules, result, watcher, "NoSchedule"))


def _watcher(tainted: TaintedCluster, deadline: float | None = None) -> Watcher:
    assert tainted.cluster is not None
    return Watcher(tainted.cluster, Patience(tell, deadline, limit=tainted.cluster.client.until))


def _drain(
    tainted: TaintedCluster, desired_rules: Sequence[DesiredRule], result: Tainted, watcher: Watcher, effect: str
) -> Drain:
    assert tainted.cluster is not None
    pods = [identity for identity, pod in result.radius.pods().items() if pod.fate != ENDED]
    parts = parts_of([desired.device for desired in desired_rules], tainted.inventory.rows)
    others = [part for siblings in parts.values() for part in siblings]
    return Drain(tainted.cluster, watcher, _taints(desired_rules, effect), pods, others)


def _let_end(rules: RuleWriter, desired_rules: Sequence[DesiredRule], drain: Drain) -> None:
    """Turn NoSchedule into NoExecute: each rule at its own time, or all when the devices are free earlier.

    Raises TimedOut: --wait ends before that.
    """
    patience = drain.patience
    names = [desired.name for desired in desired_rules]
    due = {name: _due(patience.ask(partial(rules.get, name))) for name in names}
    whole = patience.deadline
    for at in sorted(set(due.values())):
        seconds, free = at - time.time(), False
        if seconds > 0:
            tell(f"NoSchedule now; NoExecute in {times.span(seconds)}, or as soon as the devices are free")
            until = time.monotonic() + seconds
            patience.deadline = until if whole is None else min(whole, until)
            with suppress(TimedOut):
                free = not drain.wait()
            patience.deadline = whole
            if patience.expired():
                raise TimedOut
        now = [desired for desired in desired_rules if due[desired.name] == at or (free and due[desired.name] > at)]
        for desired in now:
            written = patience.ask(partial(rules.write, desired, RuleStage("NoExecute"), escalate=True))
            if written.outcome != UNCHANGED:
                tell(f"{desired.device}: NoExecute")
        drain.taints(_taints(now))
        if free:
            return


def _due(raw: Mapping[str, Mapping[str, Mapping[str, str]]] | None) -> float:
    """When NoExecute comes, in seconds since the epoch; 0 if it is already set or wanted at once."""
    end = times.parse((raw or {}).get("metadata", {}).get("annotations", {}).get(NEXT_AT, ""))
    return end.timestamp() if end is not None else 0.0


def _taints(desired_rules: Sequence[DesiredRule], effect: str = "") -> dict[DeviceID, DeviceTaint]:
    """The taint that evicts pods, per device; of several the strongest."""
    order = {"NoExecute": 0, "NoSchedule": 1, "None": 2}
    out: dict[DeviceID, DeviceTaint] = {}
    for desired in sorted(desired_rules, key=lambda desired: -order[desired.taint.effect]):
        out[desired.device] = DeviceTaint(
            desired.taint.key, desired.taint.value, effect or desired.taint.effect, "", desired.name
        )
    return out
