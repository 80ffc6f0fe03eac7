"""Where each device is, and what the scheduler could do with it now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.capacity import ZERO
from kubectl_dra.allocation.counters import Table, available_counters
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, PoolID
from kubectl_dra.api.taints import BLOCKING_EFFECTS, DeviceTaint
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.explain.scene.view import ANY_NODE, Published, View

FREE: Final = "free"
HELD: Final = "held"
SHARED: Final = "shared"
TAINTED: Final = "tainted"
BLOCKED: Final = "blocked"
UNUSABLE: Final = "unusable"
UNKNOWN: Final = "unknown"
STATES: Final = (FREE, SHARED, HELD, TAINTED, BLOCKED, UNUSABLE, UNKNOWN)
"""What the scheduler could do with a device now, in the order in which a summary counts them.

``unusable``: its pool is incomplete, invalid or obsolete, or no node sees it. ``held``: a claim has all of it.
``shared``: claims have shares of it, and it takes more as far as its capacity goes. ``blocked``: its counters
(KEP-4815) are taken by other devices. ``tainted``: only requests that tolerate its taints get it. ``unknown``:
nobody is known to hold it, but not all claims could be read. The first that applies of unusable, held, shared,
blocked, tainted, unknown is the state.
"""

NOTHING: Final[Mapping[str, Quantity]] = {}
_HIDDEN: Final = {ABSENT: "no ResourceClaim in the snapshot"}


class DeviceLocation(NamedTuple):
    """Where a device is: the nodes, in words, the node that its scope names, and what makes it unusable there."""

    nodes: Sequence[str]
    where: str
    named: str
    problem: str


class DeviceStates:
    """The places and states of the devices of one snapshot."""

    def __init__(self, snapshot: Snapshot, cycle: Cycle, view: View) -> None:
        self._snapshot = snapshot
        self._cycle = cycle
        self._view = view
        # All devices of a slice without scopes of their own are in the same place.
        self._places: dict[str, DeviceLocation] = {}
        self._counters: dict[PoolID, Table] = {}
        gap = snapshot.missing("ResourceClaim")
        self._claims_hidden = "" if gap is None else _HIDDEN.get(gap.reason, "not all ResourceClaims could be read")

    def place(self, item: Published) -> DeviceLocation:
        """Where a device is."""
        shared = not item.slice.per_device_node_selection
        known = self._places.get(item.slice.name) if shared else None
        if known is not None:
            return known
        scope = item.slice.scope if shared else item.device.scope
        nodes = tuple(self._view.nodes_of(item))
        where = scope.node_name or (nodes[0] if len(nodes) == 1 and nodes[0] != ANY_NODE else str(scope))
        place = DeviceLocation(nodes, where, scope.node_name, self._problem(item, nodes))
        if shared:
            self._places[item.slice.name] = place
        return place

    def state(self, item: Published, place: DeviceLocation) -> tuple[str, str]:
        """The state of a device, and why it is that."""
        state = self._cycle.state
        if place.problem:
            return UNUSABLE, place.problem
        if item.device.consumes_counters and not self._cycle.features.partitionable_devices:
            return UNUSABLE, "it uses shared counters, and the feature DRAPartitionableDevices is off"
        if item.id in state.exclusive:
            return HELD, ""
        if item.id in state.shared:
            return SHARED, _usage(item.device, state.consumed.get(item.id, NOTHING))
        if item.device.consumes_counters and (short := self._short_counter(item)):
            return BLOCKED, short
        if self._cycle.features.device_taints:
            for taint in item.device.taints:
                if taint.effect in BLOCKING_EFFECTS:
                    return TAINTED, f"{taint} ({taint_owner(taint)})"
        if self._claims_hidden:
            return UNKNOWN, self._claims_hidden
        return FREE, ""

    def _problem(self, item: Published, nodes: Sequence[str]) -> str:
        """What keeps the scheduler from all devices of this place; empty where nothing does."""
        view, pool_id = self._view, item.slice.pool
        if view.pool_error is not None:
            return view.pool_error.message
        newest = view.newest[pool_id]
        if item.slice.generation < newest and not nodes:
            return f"generation {item.slice.generation} is obsolete: other nodes have generation {newest} of the pool"
        pool = view.pool_seen.get(pool_id)
        if pool is not None and pool.incomplete:
            return f"the pool is incomplete: {pool.found} of {pool.expected} slices"
        if pool is not None and pool.invalid:
            return f"the pool is invalid: {pool.invalid}"
        if not nodes and self._snapshot.nodes:
            scope = item.device.scope if item.slice.per_device_node_selection else item.slice.scope
            return f"there is no node {scope.node_name}" if scope.node_name else f"no node sees it ({scope})"
        return ""

    def _short_counter(self, item: Published) -> str:
        """The counter that devices in use leave too little of, in words; empty where all suffice."""
        pool = self._view.pool_seen.get(item.slice.pool)
        if pool is None:
            return ""
        left = self._counters.get(pool.id)
        if left is None:
            left = self._counters[pool.id] = available_counters(pool, self._cycle.state)
        for consumption in item.device.consumes_counters:
            counters = left.get(consumption.counter_set, {})
            for name, needed in consumption.counters.items():
                rest = counters.get(name)
                if rest is not None and rest < needed:
                    return f"needs {needed} of counter {name} in {consumption.counter_set}, {max(rest, ZERO)} left"
        return ""


def taint_owner(taint: DeviceTaint) -> str:
    """Who sets a taint: the driver in its slice, or a DeviceTaintRule."""
    return f"DeviceTaintRule {taint.rule}" if taint.rule else "driver"


def _usage(device: Device, consumed: Mapping[str, Quantity]) -> str:
    parts = [
        f"{name} {used} of {device.capacity[name].get('value', '0')} used"
        for name, used in consumed.items()
        if used and name in device.capacity
    ]
    return ", ".join(parts)
