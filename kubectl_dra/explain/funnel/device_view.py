"""The cluster as one question sees it: eligible nodes, the pools they see, and every published device."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain, count, groupby, repeat
from typing import Final

from msgspec import Struct

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.extended_resources import ExtendedRequests
from kubectl_dra.allocation.pools import NodePools, Pool, scope_matches
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.labels import InvalidNodeSelector
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.shared_devices import PerDeviceColumn
from kubectl_dra.api.slices import Device, DeviceID, PoolID, ResourceSlice, newest_slices
from kubectl_dra.explain.phrase import Words

MAX_NEAR = 20
_NO_NAMES: Final[frozenset[str]] = frozenset()


class PublishedDevice(Struct, frozen=True, gc=False):
    """A device of the newest generation of its pool, with the slice that publishes it, and its place there."""

    device: Device
    slice: ResourceSlice
    position: int

    @property
    def id(self) -> DeviceID:
        """The device's identity. Made when it is asked for: hardly one in a hundred thousand is."""
        driver, pool = self.slice.pool
        return DeviceID(driver, pool, self.name)

    @property
    def name(self) -> str:
        """The device's name, which it does not carry where names are kept apart."""
        return self.device.name or self.slice.names[self.position]

    @property
    def exact(self) -> Device:
        """The device with its own values of all attributes."""
        return self.slice.exact_device(self.position)

    def on(self, node: Node) -> bool:
        """Whether the device itself is usable on a node that sees its slice."""
        if not self.slice.per_device_node_selection:
            return True
        try:
            return scope_matches(self.device.scope, node)
        except InvalidNodeSelector:
            return False


def in_slices(items: Iterable[PublishedDevice]) -> Iterator[tuple[ResourceSlice, list[PublishedDevice]]]:
    """Consecutive devices of one slice, grouped: what slices keep apart is then looked up once."""
    for _, group in groupby(items, lambda item: id(item.slice)):
        found = list(group)
        yield found[0].slice, found


def distinct(items: Iterable[PublishedDevice]) -> list[PublishedDevice]:
    """Each device object once, at one of its places; devices that the question cannot tell apart may share one."""
    return list({id(item.device): item for item in items}.values())


class DeviceView:
    """Indexes for one question. ``ineligible`` maps a node's name to why the pod cannot run there.

    ``judged``: see ``Snapshot.judged``. ``extended``: what devices may serve of the pod's extended resources.
    """

    def __init__(
        self,
        cycle: Cycle,
        nodes: Sequence[Node],
        ineligible: Mapping[str, Words],
        judged: Set[PerDeviceColumn] = frozenset(),
        extended: ExtendedRequests | None = None,
    ) -> None:
        self.cycle = cycle
        self._judged = judged
        self._extended = extended
        self.nodes = tuple(nodes)
        self.ineligible = ineligible
        self.node_by_name = {node.name: node for node in nodes}
        self.pools: dict[str, NodePools] = {}
        self.pool_error: AllocationError | None = None
        # A slice that only one node sees, as nearly all are, has its name without a list.
        self.slice_nodes: dict[str, str | list[str]] = {}
        self.pool_seen: dict[PoolID, Pool] = {}
        self.obsolete: dict[PoolID, list[str]] = {}
        for node in nodes:
            self._add(node)
        newest = newest_slices(cycle.index.slices)
        self.newest = {pool: entries[0].generation for pool, entries in newest.items()}
        self.by_slice: dict[str, list[PublishedDevice]] = {}
        for entry in cycle.index.slices:
            if entry.generation == self.newest[entry.pool] or entry.name in self.slice_nodes:
                self.by_slice.setdefault(entry.name, []).extend(
                    map(PublishedDevice, entry.devices, repeat(entry), count())
                )
        self.published = tuple(chain.from_iterable(self.by_slice.values()))
        self._on_node: dict[str, list[PublishedDevice]] = {}

    def _add(self, node: Node) -> None:
        try:
            pools = self.cycle.pools_of(node)
        except AllocationError as error:
            self.pool_error = self.pool_error or error
            return
        self.pools[node.name] = pools
        for pool in pools.pools:
            known = self.pool_seen.get(pool.id)
            if known is None or (known.usable and not pool.usable):
                self.pool_seen[pool.id] = pool
            for entry in pool.slices:
                seen_by = self.slice_nodes.setdefault(entry.name, node.name)
                if isinstance(seen_by, list):
                    seen_by.append(node.name)
                elif seen_by != node.name:
                    self.slice_nodes[entry.name] = [seen_by, node.name]
        for pool_id in pools.obsolete:
            self.obsolete.setdefault(pool_id, []).append(node.name)

    def _seen_by(self, entry: ResourceSlice) -> Sequence[str]:
        """The eligible nodes that see a slice."""
        nodes = self.slice_nodes.get(entry.name, ())
        return (nodes,) if isinstance(nodes, str) else nodes

    def sees_alone(self, node: str) -> bool:
        """Whether no other eligible node sees any slice that a node sees."""
        pools = self.pools.get(node)
        slices = (entry for pool in pools.pools for entry in pool.slices) if pools is not None else ()
        return all(isinstance(self.slice_nodes[entry.name], str) for entry in slices)

    def held_alone(self, entry: ResourceSlice) -> Set[str]:
        """The names of devices in a slice's pool that claims hold for themselves."""
        return self.cycle.state.exclusive_by_pool.get(entry.pool, _NO_NAMES)

    def on_node(self, name: str) -> Sequence[PublishedDevice]:
        """The devices in all pools, usable or not, that a node sees and that are meant for it."""
        known = self._on_node.get(name)
        if known is None:
            known = self._on_node[name] = self._find_on_node(name)
        return known

    def _find_on_node(self, name: str) -> list[PublishedDevice]:
        pools = self.pools.get(name)
        if pools is None:
            return []
        node = self.node_by_name[name]
        if len(pools.pools) == 1 and len(pools.pools[0].slices) == 1:
            (only,) = pools.pools[0].slices
            if not only.per_device_node_selection:
                return self.by_slice.get(only.name, [])
        found: list[PublishedDevice] = []
        for pool in pools.pools:
            for entry in pool.slices:
                items = self.by_slice.get(entry.name, ())
                found.extend((item for item in items if item.on(node)) if entry.per_device_node_selection else items)
        return found

    def _alike(self, name: str) -> Hashable:
        """What attempts can see of a node's devices, whatever their claims; nodes with equal values fare
        alike.

        None if it is too much. What attempts with certain claims read is less (``likeness``).
        """
        state, pools = self.cycle.state, self.pools.get(name)
        if pools is None or state.shared or state.consumed:
            return None
        seen: list[object] = []
        for pool in pools.pools:
            if not pool.usable or pool.counter_sets:
                return None
            for entry in pool.slices:
                if entry.per_device_node_selection:
                    return None
                seen.append(id(entry) if self.differs(entry) else id(entry.devices))
                seen.append(tuple(map(self.held_alone(entry).__contains__, entry.names)))
        return tuple(seen)

    def differs(self, entry: ResourceSlice) -> bool:
        """Whether the devices of a slice have values of their own in what the question reads."""
        return entry.has_own(self._judged)

    @cached_property
    def different_nodes(self) -> Sequence[Node]:
        """The first node of each kind that an attempt can distinguish."""
        seen: set[Hashable] = set()
        different: list[Node] = []
        for node in self.nodes:
            key = self._alike(node.name)
            kind = (key, self._extended.delegated(node) if self._extended is not None else None)
            if key is None or kind not in seen:
                seen.add(kind)
                different.append(node)
        return different

    @cached_property
    def kinds(self) -> Sequence[PublishedDevice]:
        """The published devices, each object once."""
        return distinct(self.published)

    def nodes_of(self, item: PublishedDevice) -> list[str]:
        """The eligible nodes on which a device could be used, judging by its pool and scope."""
        return [name for name in self._seen_by(item.slice) if item.on(self.node_by_name[name])]

    def near(self, items: Iterable[PublishedDevice]) -> list[Node]:
        """A few of the eligible nodes on which some of these devices could be used."""
        names: dict[str, None] = {}
        for item in items:
            names.update(dict.fromkeys(self.nodes_of(item)[:MAX_NEAR]))
            if len(names) >= MAX_NEAR:
                break
        return [self.node_by_name[name] for name in names]

    def seeing(self, pools: Iterable[PoolID]) -> list[Node]:
        """A few of the eligible nodes that see these pools."""
        slices = [entry for pool in dict.fromkeys(pools) for entry in self.cycle.index.by_pool.get(pool, ())]
        names = dict.fromkeys(name for entry in slices for name in self._seen_by(entry)[:MAX_NEAR])
        return [self.node_by_name[name] for name in list(names)[:MAX_NEAR]]

    def held_near(self, claim: ResourceClaim) -> list[Node]:
        """A few of the eligible nodes on which a claim holds devices."""
        return self.seeing(PoolID(device.driver, device.pool) for device in claim.devices)

    def drivers(self) -> dict[str, int]:
        """The number of published devices per driver."""
        counts: dict[str, int] = {}
        for item in self.published:
            counts[item.slice.driver] = counts.get(item.slice.driver, 0) + 1
        return counts
