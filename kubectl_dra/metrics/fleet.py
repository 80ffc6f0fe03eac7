"""What the metrics count in one cluster at one moment. No label names a pod, a claim, a device or a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from kubectl_dra.allocation.capacity import ZERO
from kubectl_dra.api.claims import ResourceClaim, devices_of
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cluster.snapshot import ABSENT, Gap, Snapshot
from kubectl_dra.cluster.time_read import Moment, moment, parse
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.drivers.refused_claims import any_of_whole_nodes
from kubectl_dra.errors import UndeterminedError
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.attributes_read import complete
from kubectl_dra.explain.devices.alike_devices import CapacityRoom
from kubectl_dra.explain.devices.device_state import DeviceState
from kubectl_dra.explain.devices.inventory import DeviceRow, take_inventory
from kubectl_dra.explain.devices.wanted import Wanted
from kubectl_dra.explain.eviction import Evictions
from kubectl_dra.explain.overview import Alike, Overview, pending
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.usage.claim_use import ClaimUses, claim_uses
from kubectl_dra.usage.counts import DeviceSupply, demand_of_namespaces, supply_of_classes
from kubectl_dra.usage.largest_request import LargestRequest

T = TypeVar("T")
Labels = tuple[str, ...]

MOST_GROUPS: Final = 200
"""Of one metric, combinations of labels."""
OTHERS: Final = "(others)"
"""The value of a label for all that have none of their own."""


def bounded(
    table: Mapping[Labels, T], merge: Callable[[T, T], T], weight: Callable[[T], float], most: int = MOST_GROUPS
) -> dict[Labels, T]:
    """The table with at most so many rows: the smallest values of the label that has most of them become one.

    ``merge`` makes one value of two, ``weight`` says which ones stay by themselves.
    """
    rows = dict(table)
    while len(rows) > most:
        weights: list[Counter[str]] = [Counter() for _ in next(iter(rows))]
        for labels, value in rows.items():
            for own, label in zip(weights, labels, strict=True):
                if label != OTHERS:
                    own[label] += weight(value)  # type: ignore[assignment]
        position = max(range(len(weights)), key=lambda index: len(weights[index]))
        ranked = sorted(weights[position], key=lambda label: (-weights[position][label], label))
        kept = frozenset(ranked[: len(ranked) // 2])
        merged: dict[Labels, T] = {}
        for labels, value in rows.items():
            if labels[position] not in kept:
                labels = (*labels[:position], OTHERS, *labels[position + 1 :])
            merged[labels] = merge(merged[labels], value) if labels in merged else value
        rows = merged
    return rows


Counts = Mapping[Labels, int]

NODE_POOL_LABELS: Final = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "node.kubernetes.io/instance-type",
)
"""Labels that say to which pool a node belongs; the first that it has counts."""
UNPUBLISHED: Final = "unpublished"
"""The state of a device that a claim holds and no ResourceSlice has."""
DEVICE_STATES: Final = (*(state.value for state in DeviceState), UNPUBLISHED)
NO_CAUSE: Final = "none"
"""The cause where explain names none: the pod would be placed now."""
REQUEST_SIZES: Final = (1, 2, 4, 8)
"""For requests of so many devices it is counted how many fit."""


class Waiting(NamedTuple):
    """So many pods or claims; the oldest was created at ``oldest`` (seconds since 1970), 0 if that is not known."""

    number: int
    oldest: float

    def together(self, other: Waiting) -> Waiting:
        """Both in one."""
        return Waiting(self.number + other.number, min(filter(None, (self.oldest, other.oldest)), default=0.0))


class FleetCounts(Struct, frozen=True):
    """The counts of a cluster; a table is None where what it counts could not be read.

    The labels of each table are those of its metric, see ``families``. ``unread`` are kinds without which something
    else is unknown, ``unexplained`` how many pods and claims were left out because it took too long.
    """

    at: Moment
    devices: Counts | None = None
    class_devices: Counts | None = None
    largest: Mapping[str, LargestRequest] | None = None
    room: Mapping[Labels, CapacityRoom] | None = None
    fits: Counts | None = None
    pods: Mapping[Labels, Waiting] | None = None
    lone_claims: Mapping[Labels, Waiting] | None = None
    claims: Counts | None = None
    held: Counts | None = None
    idle: Counts | None = None
    drivers: Counts | None = None
    unhealthy: Counts | None = None
    evicted: Counts | None = None
    unread: Counts = {}
    unexplained: int = 0


def fleet_of(snapshot: Snapshot, settings: Settings, node_pool_labels: Sequence[str] = NODE_POOL_LABELS) -> FleetCounts:
    """Counts a cluster, and explains what waits in it."""
    whole = complete(None, snapshot, settings)
    gaps: set[Gap] = set()
    uses: ClaimUses | None = None
    counts: dict[str, object] = {}
    try:
        uses = claim_uses(snapshot)
    except UndeterminedError:
        gaps.update(snapshot.unread(("ResourceClaim",)))
    else:
        gaps.update(note.gap for note in uses.unread)
        counts |= _claims(uses)
    try:
        inventory = take_inventory(whole, settings.scheduler.cycle(whole), Wanted())
    except UndeterminedError:
        gaps.update(snapshot.unread(("ResourceSlice",)))
    else:
        lost = [device for group in inventory.unpublished for device in group.devices]
        counts |= _devices(inventory.rows, [device.driver for device in lost], snapshot, node_pool_labels)
        gaps.update(snapshot.unread(("ResourceSlice", "ResourceClaim", "DeviceClass", "Node")))
        if not snapshot.is_gap("DeviceClass"):
            supply = supply_of_classes(inventory, uses or ClaimUses(()), whole, settings.scheduler)
            # A class without devices has a number as well: an alert on it has to fire.
            known = {row.name for row in supply}
            none = dict.fromkeys((name for name in snapshot.classes if name not in known), LargestRequest(0))
            if not inventory.all_read:
                none = {}
            counts["largest"] = none | {row.name: row.largest for row in supply if row.name and row.largest is not None}
            counts["room"] = {(row.name, room.name): room for row in supply if row.name for room in _to_get(row)}
            counts["fits"] = _fits(inventory.rows, snapshot)
    drivers = joined(snapshot)
    gaps.update(drivers.gaps)
    counts["drivers"] = dict(Counter((row.driver, row.state.value) for row in drivers.rows if row.driver))
    overview = pending(snapshot, "", settings)
    gaps.update(note.gap for note in overview.unread)
    gaps |= overview.lacking
    namespaces = {namespace for namespace, _ in snapshot.claims}
    if not snapshot.unread(("Pod",)):
        counts |= _pods(snapshot, settings.scheduler, {slice_.driver for slice_ in snapshot.slices}, namespaces)
    counts |= _waiting(overview, snapshot, namespaces)
    unread = Counter((gap.kind, gap.reason) for gap in gaps if gap.reason != ABSENT or not snapshot.server)
    return FleetCounts(moment(snapshot), **counts, unread=dict(unread), unexplained=overview.left_out)  # type: ignore[arg-type]


def _to_get(row: DeviceSupply) -> Iterator[CapacityRoom]:
    """Capacities left of a class; no request gets any where defects of the scheduler refuse every one."""
    for room in row.room:
        yield room if row.largest is None else room._replace(most=ZERO, on=None)


def _devices(
    rows: Sequence[DeviceRow], lost: Iterable[str], snapshot: Snapshot, labels: Sequence[str]
) -> dict[str, object]:
    """Every device once, and every device in each of its classes. ``lost`` are the drivers of unpublished devices."""
    # Devices of one slice share one list of nodes.
    pools = ByIdentity[Sequence[str], str]()
    devices: Counter[Labels] = Counter()
    of_classes: Counter[Labels] = Counter({(name, "", "", DeviceState.FREE.value): 0 for name in snapshot.classes})
    for row in rows:
        pool = pools.of(row.nodes, lambda names: node_pool(map(snapshot.nodes.get, names), labels))
        devices[row.id.driver, pool, row.state.value] += 1
        for name in row.classes:
            of_classes[name, row.id.driver, pool, row.state.value] += 1
            of_classes.pop((name, "", "", DeviceState.FREE.value), None)
    devices.update((driver, "", UNPUBLISHED) for driver in lost)
    return {"devices": dict(devices), "class_devices": None if snapshot.is_gap("DeviceClass") else dict(of_classes)}


def node_pool(nodes: Iterable[Node | None], labels: Sequence[str]) -> str:
    """The pool to which all of these nodes belong; empty if that is not one."""
    pools = {
        next((node.labels[label] for label in labels if node.labels.get(label)), "") if node is not None else ""
        for node in nodes
    }
    return pools.pop() if len(pools) == 1 else ""


def _fits(rows: Sequence[DeviceRow], snapshot: Snapshot) -> Counts:
    """By class and size, how many requests for so many devices fit on nodes that are not cordoned, each on one node.

    Classes with devices that take from each other or can be shared are left out: that depends on more than numbers.
    Of a driver that gives a claim all devices of a node or none, only that number fits.
    """
    free: dict[str, Counter[tuple[str, bool]]] = {name: Counter() for name in snapshot.classes}
    open_: set[str] = set()
    for row in rows:
        if row.device.allow_multiple_allocations or row.device.consumes_counters or row.state is DeviceState.UNKNOWN:
            open_.update(row.classes)
        elif row.state is DeviceState.FREE:
            whole = any_of_whole_nodes((row.id.driver,))
            nodes = [snapshot.nodes.get(name) for name in row.nodes]
            if not nodes or any(node is None or not node.unschedulable for node in nodes):
                for name in row.classes:
                    free[name][row.where, whole] += 1
    return {
        (name, str(size)): sum(count == size if whole else count // size for (_, whole), count in places.items())
        for name, places in free.items()
        if name not in open_
        for size in REQUEST_SIZES
    }


def _claims(uses: ClaimUses) -> dict[str, object]:
    demand = demand_of_namespaces(uses)
    return {
        "claims": dict(Counter((use.claim.metadata.namespace, use.state.value) for use in uses.items)),
        "held": {(row.namespace,): row.devices for row in demand},
        "idle": {(row.namespace,): row.idle for row in demand},
    }


def _pods(
    snapshot: Snapshot, scheduler: Scheduler, drivers: Iterable[str], namespaces: Iterable[str]
) -> dict[str, object]:
    """The devices that kubelets report to be unhealthy, and the pods that the eviction controller has still to end.

    Of ``drivers`` and ``namespaces`` also where there are none.
    """
    unhealthy: set[tuple[str, str, str]] = set()
    evicted: Counter[Labels] = Counter({(namespace,): 0 for namespace in namespaces})
    evictions = Evictions(snapshot, scheduler.features)
    possible = evictions.possible
    for pod in snapshot.pods.values():
        if not pod.node_name or pod.finished or not pod.claims:
            continue
        names = ((pod.metadata.namespace, name) for name in pod.claim_names)
        claims = [claim for key in names if (claim := snapshot.claims.get(key)) is not None]
        unhealthy.update(_unhealthy(pod, claims))
        if possible and not pod.metadata.deletion_timestamp and evictions.first(claims) is not None:
            evicted[(pod.metadata.namespace,)] += 1
    by_driver: Counter[Labels] = Counter({(driver,): 0 for driver in drivers})
    by_driver.update((driver,) for driver, _, _ in unhealthy)
    return {"unhealthy": dict(by_driver), "evicted": dict(evicted)}


def _unhealthy(pod: Pod, claims: Sequence[ResourceClaim]) -> Iterator[tuple[str, str, str]]:
    """The devices of a pod that its kubelet reports to be unhealthy (KEP-4680): driver, node, and what they are called.

    The kubelet calls a device DRIVER/POOL/DEVICE, or by a CDI name that does not say whose it is.
    """
    drivers = {device.driver for device in devices_of(claims)}
    for status in pod.status.container_statuses:
        for device_status in status.allocated_resources_status:
            for resource in device_status.resources:
                if resource.health == "Unhealthy":
                    first = resource.resource_id.partition("/")[0]
                    driver = first if first in drivers else min(drivers) if len(drivers) == 1 else ""
                    yield driver, pod.node_name, resource.resource_id


def _waiting(overview: Overview, snapshot: Snapshot, namespaces: Iterable[str]) -> dict[str, object]:
    """Pods, and claims that no pod uses, by namespace, the first cause and the verdict.

    Of ``namespaces`` none that would be placed now is counted, too: so each has a number.
    """
    nobody: dict[Labels, Waiting] = {
        (namespace, NO_CAUSE, Verdict.SCHEDULABLE.value): Waiting(0, 0.0) for namespace in namespaces
    }
    pods: dict[Labels, Waiting] = {**nobody}
    claims: dict[Labels, Waiting] = {**nobody}
    for alike in overview.found:
        diagnosis = alike.diagnosis
        cause = diagnosis.findings[0].kind.code if diagnosis.findings else NO_CAUSE
        labels = (diagnosis.namespace, cause, diagnosis.verdict.value)
        table = claims if diagnosis.kind == "claim" else pods
        here = Waiting(len(alike.names), min(_created(alike, snapshot), default=0.0))
        table[labels] = table[labels].together(here) if labels in table else here
    unseen = {note.gap.kind for note in overview.unread}
    return {"pods": None if "Pod" in unseen else pods, "lone_claims": None if "ResourceClaim" in unseen else claims}


def _created(alike: Alike, snapshot: Snapshot) -> Iterator[float]:
    objects = snapshot.claims if alike.diagnosis.kind == "claim" else snapshot.pods
    for key in alike.keys:
        space, _, name = key.partition("/")
        item = objects.get((space, name))
        created = parse(item.metadata.creation_timestamp) if item is not None else None
        if created is not None:
            yield created.timestamp()
