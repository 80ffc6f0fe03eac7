"""Where each device is, what the scheduler could do with it now, and whether a pod starts with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.capacity import ZERO
from kubectl_dra.allocation.counters import Table, available_counters
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Counters, Device, DeviceID, PoolID
from kubectl_dra.api.taints import BLOCKING_EFFECTS, DeviceTaint
from kubectl_dra.cluster.claim_relation import consumers_of
from kubectl_dra.cluster.cluster import ANY_NODE
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.drivers.concerns import not_published
from kubectl_dra.drivers.refused_claims import any_of_whole_nodes
from kubectl_dra.explain.funnel.device_view import DeviceView, PublishedDevice
from kubectl_dra.explain.funnel.stages import GROUPS_GATE, FeatureOff
from kubectl_dra.explain.not_starting import not_starting, troubled_nodes
from kubectl_dra.explain.phrase import ObjectName, Phrase, Statement, Words, say, with_owner
from kubectl_dra.explain.unread_kind import unread_devices


class Unpublished(NamedTuple):
    """The devices of a driver on a node (empty where that is not known), and the claims that hold them.

    ``silent``: the driver publishes nothing at all for that node. ``gone``: there is no such node any more.
    """

    driver: str
    node: str
    devices: tuple[DeviceID, ...]
    claims: tuple[ResourceClaim, ...]
    silent: bool
    gone: bool = False

    @property
    def words(self) -> Phrase:
        """As a sentence."""
        where = say(" on node {node}", node=ObjectName("Node", self.node)) if self.node else ""
        text = "{count:device} of driver {driver}{where} {count:is|are} held and not published: {devices:some 3}; "
        if self.gone:
            text += "the node is gone, and nobody ends its pods"
        elif self.silent:
            text += (
                "the driver publishes nothing there: it is away, or the kubelet has just started, which is over within "
                "a minute"
            )
        else:
            text += "the driver publishes others there by now"
        return say(text, count=len(self.devices), driver=self.driver, where=where, devices=self.devices)


def unpublished(snapshot: Snapshot, claims: Iterable[ResourceClaim] | None = None) -> tuple[Unpublished, ...]:
    """What is held (by these claims, or any) and not published, by driver and node.

    Nothing where slices were not read whole.
    """
    if snapshot.missing("ResourceSlice") is not None:
        return ()
    held: dict[tuple[str, str], list[tuple[DeviceID, ResourceClaim]]] = {}
    for claim, result, _ in not_published(snapshot.claims.values() if claims is None else claims, snapshot):
        if not result.admin_access:
            held.setdefault((result.device.driver, _node(claim, snapshot)), []).append((result.device, claim))
    there = {(slice_.driver, slice_.scope.node_name) for slice_ in snapshot.slices}
    return tuple(
        Unpublished(
            driver,
            node,
            tuple(dict.fromkeys(device for device, _ in pairs)),
            tuple({claim.key: claim for _, claim in pairs}.values()),
            (driver, node) not in there and (driver, "") not in there,
            snapshot.lacks_node(node),
        )
        for (driver, node), pairs in sorted(held.items())
    )


def _node(claim: ResourceClaim, snapshot: Snapshot) -> str:
    """The node of a claim's pods; empty if none is known."""
    return next((pod.node_name for pod in consumers_of(claim, snapshot.pods).pods if pod.node_name), "")


class Superseded(NamedTuple):
    """A device that only an older slice of its pool has: the generation of that slice, and the newest of the pool."""

    id: DeviceID
    generation: int
    newest: int

    def __str__(self) -> str:
        return older_slice(str(self.id), self)


def older_slice(names: str, like: Superseded, *, several: bool = False) -> str:
    """Note that a device, or several of a pool, are only in an older slice."""
    be, it, its = ("are", "them", "their") if several else ("is", "it", "its")
    return (
        f"{names} {be} only in an older slice, of generation {like.generation}, and {its} pool is at {like.newest}: "
        f"nobody gets {it} until {its} driver publishes {it} again"
    )


class DeviceState(StrEnum):
    """What the scheduler could do with a device now, in the order in which a summary counts them.

    The state is the first that applies of held, unusable, shared, blocked, tainted, unknown, unserved.
    """

    FREE = "free"
    SHARED = "shared"
    """Claims hold shares of it, and more can, up to its capacity."""
    HELD = "held"
    """A claim holds all of it, or claims hold shares of it and no other can get one: it is unusable."""
    TAINTED = "tainted"
    """Only requests that tolerate its taints can get it."""
    BLOCKED = "blocked"
    """Other devices use up its counters (KEP-4815)."""
    UNSERVED = "unserved"
    """The scheduler would give it, and a pod that gets it does not start: its driver does not run on its node, or
    refuses a claim for it.
    """
    UNUSABLE = "unusable"
    """Its pool is incomplete, invalid or obsolete, or no node sees it."""
    UNKNOWN = "unknown"
    """Nothing that was read keeps it from being free, but not everything that decides could be read."""


class NodeMissing(Statement, frozen=True):
    """The only node that could use the device does not exist."""

    TEXT = "there is no node {name}"
    name: str


class SeenByNoNode(Statement, frozen=True):
    """The device's scope contains no node."""

    TEXT = "no node sees it ({scope})"
    scope: object


NOTHING: Final[Mapping[str, Quantity]] = {}


class DeviceLocation(NamedTuple):
    """Where a device is: the nodes, in words, the node named by its scope, what makes it unusable there, and why pods
    that get it do not start there.
    """

    nodes: Sequence[str]
    where: str
    named: str
    problem: Words
    away: Words


class DeviceStates:
    """The places and states of the devices of one snapshot."""

    def __init__(self, snapshot: Snapshot, cycle: Cycle, view: DeviceView) -> None:
        self._snapshot = snapshot
        self._cycle = cycle
        self._view = view
        # All devices of a slice without scopes of their own are in the same place.
        self._places: dict[str, DeviceLocation] = {}
        self._counters: dict[PoolID, Table] = {}
        self._refused: dict[tuple[str, str], Words] = {}
        # Claims that hold a device, rules that taint it, or the lack of its node.
        self._hidden = next((unread for unread in unread_devices(snapshot) if unread.gap.kind != "ResourceSlice"), None)

    def place(self, item: PublishedDevice) -> DeviceLocation:
        """Where a device is."""
        shared = not item.slice.per_device_node_selection
        known = self._places.get(item.slice.name) if shared else None
        if known is not None:
            return known
        scope = item.slice.scope if shared else item.device.scope
        nodes = tuple(self._view.nodes_of(item))
        where = scope.node_name or (nodes[0] if len(nodes) == 1 and nodes[0] != ANY_NODE else str(scope))
        gone = away(item.slice.driver, nodes, self._snapshot)
        place = DeviceLocation(nodes, where, scope.node_name, self._problem(item, nodes), gone)
        if shared:
            self._places[item.slice.name] = place
        return place

    def state(self, item: PublishedDevice, place: DeviceLocation) -> tuple[DeviceState, Words]:
        """The state of a device, and the reason; of one that is held and unusable, why it is unusable."""
        state, reason = self._by_scheduler(item, place)
        if state is DeviceState.FREE and (why := self.unserved(item, place)):
            return DeviceState.UNSERVED, why
        return state, reason

    def unserved(self, item: PublishedDevice, place: DeviceLocation) -> Words:
        """Why a pod that gets some of a device now does not start; empty where nothing is known to keep it."""
        return place.away or self._of_whole_node(item.slice.driver, item.slice.scope.node_name)

    def _of_whole_node(self, driver: str, node: str) -> Words:
        """Why no claim gets a device: its driver gives no part of its node, and another device there is not free."""
        if not node or not any_of_whole_nodes((driver,)):
            return ""
        if (driver, node) not in self._refused:
            devices = self._on_node[driver, node]
            states = ((item, self._by_scheduler(item, self.place(item))[0]) for item in devices)
            text = "driver {driver} gives a claim all {count} devices of node {node} or none, and {name} is {state}"
            words = {"driver": driver, "node": ObjectName("Node", node), "count": len(devices)}
            taken = ((item, state) for item, state in states if state is not DeviceState.FREE)
            refusals = (say(text, name=item.name, state=state.value, **words) for item, state in taken)
            self._refused[driver, node] = next(refusals, "")
        return self._refused[driver, node]

    @cached_property
    def _on_node(self) -> Mapping[tuple[str, str], Sequence[PublishedDevice]]:
        """The devices by driver and node."""
        on_node = defaultdict[tuple[str, str], list[PublishedDevice]](list)
        for item in self._view.published:
            on_node[item.slice.driver, item.slice.scope.node_name].append(item)
        return on_node

    def _by_scheduler(self, item: PublishedDevice, place: DeviceLocation) -> tuple[DeviceState, Words]:
        """The state of a device as far as the scheduler decides about it, and the reason."""
        state = self._cycle.state
        if problem := self.unusable(item, place):
            held = item.id in state.exclusive or item.id in state.shared
            return DeviceState.HELD if held else DeviceState.UNUSABLE, problem
        if item.id in state.exclusive:
            return DeviceState.HELD, ""
        if item.id in state.shared:
            return DeviceState.SHARED, _usage(item.device, state.consumed.get(item.id, NOTHING))
        if item.device.consumes_counters and (short := self._short_counter(item)):
            return DeviceState.BLOCKED, short
        if taints := self.blocking(item):
            return DeviceState.TAINTED, with_owner(taints[0])
        if self._hidden is not None:
            return DeviceState.UNKNOWN, self._hidden
        return DeviceState.FREE, ""

    def unusable(self, item: PublishedDevice, place: DeviceLocation) -> Words:
        """What keeps the scheduler from giving the device to anybody; empty if nothing does."""
        if not place.problem and item.device.consumes_counters and not self._cycle.features.partitionable_devices:
            return FeatureOff("it uses shared counters", "DRAPartitionableDevices")
        return place.problem

    def blocking(self, item: PublishedDevice) -> tuple[DeviceTaint, ...]:
        """The taints that the scheduler heeds: requests that do not tolerate them do not get the device."""
        if not self._cycle.features.device_taints:
            return ()
        return tuple(taint for taint in item.device.taints if taint.effect in BLOCKING_EFFECTS)

    def _problem(self, item: PublishedDevice, nodes: Sequence[str]) -> Words:
        """What keeps the scheduler from using any device of this place; empty if nothing does."""
        view, pool_id = self._view, item.slice.pool
        if view.pool_error is not None:
            return view.pool_error.message
        if self._cycle.features.ignores_groups and self._cycle.index.uses_groups(item.slice):
            return FeatureOff("its slice has compatibility groups", GROUPS_GATE)
        newest = view.newest[pool_id]
        if item.slice.generation < newest and not nodes:
            text = "generation {own} is obsolete: other nodes have generation {newest} of the pool"
            return say(text, own=item.slice.generation, newest=newest)
        pool = view.pool_seen.get(pool_id)
        if pool is not None and pool.incomplete and pool.ignored:
            text = (
                "the pool is incomplete: {found} of {expected} slices; {ignored} more {ignored:has|have} compatibility "
                "groups, and the feature {gate} is off"
            )
            return say(text, found=pool.found, expected=pool.expected, ignored=pool.ignored, gate=GROUPS_GATE)
        if pool is not None and pool.incomplete:
            return say("the pool is incomplete: {found} of {expected} slices", found=pool.found, expected=pool.expected)
        if pool is not None and pool.invalid:
            return say("the pool is invalid: {why}", why=pool.invalid)
        if not nodes and self._snapshot.nodes:
            scope = item.device.scope if item.slice.per_device_node_selection else item.slice.scope
            return NodeMissing(scope.node_name) if scope.node_name else SeenByNoNode(scope)
        return ""

    def _short_counter(self, item: PublishedDevice) -> Words:
        """The counter of which devices in use leave too little; empty if all suffice."""
        pool = self._view.pool_seen.get(item.slice.pool)
        if pool is None:
            return ""
        available = self._counters.get(pool.id)
        if available is None:
            available = self._counters[pool.id] = available_counters(pool, self._cycle.state, self._cycle.defects)
        for consumption in item.device.consumes_counters:
            counters = available.get(consumption.counter_set, {})
            for name, needed in consumption.counters.items():
                rest = counters.get(name)
                if rest is not None and rest < needed:
                    text = "needs {needed} of counter {name} in {set}, {rest} left"
                    return say(text, needed=needed, name=name, set=consumption.counter_set, rest=max(rest, ZERO))
        return ""


def _usage(device: Device, consumed: Mapping[str, Quantity]) -> Words:
    used = [
        say("{name} {used} of {all} used", name=name, used=amount, all=device.capacity[name].get("value", "0"))
        for name, amount in consumed.items()
        if amount and name in device.capacity
    ]
    return say("{used}", used=used) if used else ""


# What a device is for a person: the product, and which part of it.

_PARTS: Final = ("profile", "partitionProfile", "computePartition", "memoryPartition")
"""Attributes that tell parts of one product apart: a MIG profile, the partition modes of an AMD GPU."""
_NAMED: Final = ("productName", "model")
_IDENTIFYING: Final = (*_NAMED, "pciDevice", "accelerator", "deviceType", *_PARTS, "family", "architecture", "type")
"""Attributes that say what a device is, best first; drivers differ in what they publish."""


def identifying(attributes: Iterable[str], *more: str) -> list[str]:
    """Those of the attributes that say what a device is, best first, then those called like one of ``more``."""
    short = {name.rpartition("/")[2]: name for name in attributes}
    return [short[name] for name in (*_IDENTIFYING, *more) if name in short]


def model_of(attributes: Mapping[str, Mapping[str, Any]]) -> str:
    """The product and its part, as in ``NVIDIA A30 1g.6gb``; empty where no attribute says it."""
    short = _short(attributes)
    product = next((text for name in _IDENTIFYING if name not in _PARTS and (text := _text(short.get(name)))), "")
    return " ".join(filter(None, (product, *(_text(short.get(name)) for name in _PARTS))))


def product_of(attributes: Mapping[str, Mapping[str, Any]]) -> str:
    """The product alone, as its vendor writes it for people; empty where only an id or a family is published."""
    short = _short(attributes)
    name = next((text for name in _NAMED if (text := _text(short.get(name)))), "")
    return name.replace("_", " ")


def _short(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {name.rpartition("/")[2]: value for name, value in attributes.items()}


def _text(attribute: Mapping[str, Any] | None) -> str:
    value = attribute.get("string") if attribute else None
    return value if isinstance(value, str) else ""


# Part of divided hardware that a device takes, by the counters that all its divisions share (KEP-4815).

NO_DRAWS: Final[Mapping[str, float]] = MappingProxyType({})


def draws_of(device: Device, totals: Mapping[str, Counters]) -> Mapping[str, float]:
    """The part of each counter set that a device needs, by the counter of which it needs most."""
    found: dict[str, float] = {}
    for consumption in device.consumes_counters:
        there = totals.get(consumption.counter_set, {})
        parts = (_of_total(needed, there.get(name)) for name, needed in consumption.counters.items())
        found[consumption.counter_set] = max(parts, default=0.0)
    return found or NO_DRAWS


def _of_total(needed: Quantity, total: Quantity | None) -> float:
    if total is None or not total:
        return 1.0
    return min(1.0, needed.approximate_float() / total.approximate_float())


# Devices that the scheduler gives and pods cannot use: their driver does not run, or refuses the claim.


def away(driver: str, nodes: Sequence[str], snapshot: Snapshot) -> Words:
    """Why pods with devices of a driver start on none of the nodes that can use them; empty where some do."""
    if not nodes or not troubled_nodes(snapshot).issuperset(nodes):
        return ""
    where = not_starting(snapshot, ((name, (driver,)) for name in nodes))
    return where[0].why if len(where) == len(nodes) else ""
