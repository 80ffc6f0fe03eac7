"""The ResourceSlices that a node sees, as pools: generations, completeness, validity, order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.allocation.errors import AllocationCheck, AllocationError
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.api.labels import InvalidNodeSelector
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import Counters, Device, NodeScope, PoolID, ResourceSlice, newest_slices
from kubectl_dra.by_identity import ByIdentity

K = TypeVar("K")


class Pool(Struct, frozen=True, gc=False):
    """One pool as a node sees it.

    ``slices`` are the device slices of the kept generation that are relevant for the node, by name;
    ``other_slices`` are those of the same generation for other nodes, as far as the scheduler looked at them.
    An incomplete pool has ``found`` != ``expected``, and offers devices only if it ``serves_incomplete``. ``invalid``
    says why a pool is invalid. ``ignored`` slices of the generation do not count: they have compatibility groups, which
    the scheduler does not know.
    """

    id: PoolID
    generation: int
    slices: tuple[ResourceSlice, ...]
    other_slices: tuple[ResourceSlice, ...]
    counter_sets: Mapping[str, Counters]
    expected: int
    found: int
    invalid: str = ""
    ignored: int = 0
    serves_incomplete: bool = False

    @property
    def incomplete(self) -> bool:
        """Whether the number of slices differs from the number they announce."""
        return self.expected != self.found

    @property
    def usable(self) -> bool:
        """Whether the pool offers devices."""
        return not self.invalid and (self.serves_incomplete or not self.incomplete)


class NodePools(Struct, frozen=True, gc=False):
    """The pools that a node sees, in the order in which the scheduler tries them.

    ``obsolete`` are pools that this node loses because a newer generation exists elsewhere. ``superseded``
    are slices of an older generation than the one kept.
    """

    pools: tuple[Pool, ...]
    obsolete: tuple[PoolID, ...]
    superseded: tuple[ResourceSlice, ...]


NO_COUNTERS: Final[Mapping[str, Counters]] = {}


class SliceIndex:
    """ResourceSlices by node and by pool, so that a node reads only those that can concern it."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self.slices = tuple(slices)
        self.by_pool: dict[PoolID, list[ResourceSlice]] = {}
        self._local: dict[str, list[ResourceSlice]] = {}
        # Shared counters of pools whose slices all name nodes, by these nodes.
        self._counters: dict[str, list[ResourceSlice]] = {}
        self._shared: list[ResourceSlice] = []
        # Why a pool of one slice with these devices is invalid.
        self.problems: dict[Features, ByIdentity[tuple[Device, ...], str]] = {}
        self._grouped = ByIdentity[tuple[Device, ...], bool]()
        self._foreign: dict[Features, list[tuple[PoolID, Pool | None]]] = {}
        for slice_ in self.slices:
            _add(self.by_pool, slice_.pool, slice_)
        homes = self._homes()
        for slice_ in self.slices:
            if slice_.scope.node_name and not slice_.shared_counters:
                _add(self._local, slice_.scope.node_name, slice_)
            elif slice_.pool in homes:
                for node in homes[slice_.pool]:
                    self._counters.setdefault(node, []).append(slice_)
            else:
                self._shared.append(slice_)

    def _homes(self) -> dict[PoolID, set[str]]:
        """For each pool with shared counters whose slices all name a node: those nodes."""
        pools = {slice_.pool for slice_ in self.slices if slice_.shared_counters}
        return {
            pool: {slice_.scope.node_name for slice_ in self.by_pool[pool]}
            for pool in pools
            if all(slice_.scope.node_name for slice_ in self.by_pool[pool])
        }

    def uses_groups(self, slice_: ResourceSlice) -> bool:
        """Whether a device of the slice has compatibility groups."""
        return self._grouped.of(slice_.devices, uses_groups)

    @cached_property
    def has_groups(self) -> bool:
        """Whether any slice has devices with compatibility groups."""
        return any(map(self.uses_groups, self.slices))

    @cached_property
    def takes_of_nodes(self) -> bool:
        """Whether any device takes of its node's own resources."""
        distinct = {id(slice_.devices): slice_.devices for slice_ in self.slices}
        return any(device.node_resources for devices in distinct.values() for device in devices)

    def alone(self, node: str) -> ResourceSlice | None:
        """The only slice that can concern a node, if it is a whole pool; None where it takes a closer look."""
        own = self._local.get(node)
        if own is None or len(own) > 1 or self._shared or self._counters or own[0].slice_count != 1:
            return None
        return own[0]

    def candidates(self, node: str) -> list[ResourceSlice]:
        """Slices that may be relevant for a node: its own first, then shared ones."""
        return [*self._local.get(node, ()), *self._counters.get(node, ()), *self._shared]

    def foreign(self, features: Features) -> Sequence[tuple[PoolID, Pool | None]]:
        """Pools of other nodes, of which this node sees only the shared counters.

        They have no devices here, so only obsolete (None), incomplete and invalid ones count.
        """
        pools = self._foreign.get(features)
        if pools is None:
            pools = self._foreign[features] = []
            for pool_id in self._homes():
                counters = newest_slices(slice_ for slice_ in self.by_pool[pool_id] if slice_.shared_counters)
                pool = _build(pool_id, counters[pool_id], self, features)
                if pool is None or not pool.usable:
                    pools.append((pool_id, pool))
        return pools


def uses_groups(devices: Iterable[Device]) -> bool:
    """Whether any of the devices has a compatibility group."""
    return any(consumption.groups for device in devices for consumption in device.consumes_counters)


def scope_matches(scope: NodeScope, node: Node) -> bool:
    """Whether the node scope of a slice or device covers the node. The first field that is set decides.

    Raises:
        InvalidNodeSelector: the selector cannot be parsed.
    """
    if scope.node_name:
        return scope.node_name == node.name
    if scope.all_nodes:
        return True
    if scope.node_selector is not None:
        return scope.node_selector.matches(node)
    return False


def relevant(slice_: ResourceSlice, node: Node, features: Features, defects: KnownDefects) -> bool:
    """Whether a node loads a slice.

    Raises:
        InvalidNodeSelector: a node selector cannot be parsed.
    """
    if not features.partitionable_devices and (
        slice_.per_device_node_selection is not None or (slice_.shared_counters and not features.loose_pools)
    ):
        return False
    if slice_.shared_counters and _counters_everywhere(features, defects):
        return True
    if not slice_.scope.empty:
        return scope_matches(slice_.scope, node)
    if slice_.per_device_node_selection:
        return any(scope_matches(device.scope, node) for device in slice_.devices)
    return False


def _counters_everywhere(features: Features, defects: KnownDefects) -> bool:
    """Whether every node sees the slices with shared counters; the stable variant has kept that."""
    return defects.counter_slices_everywhere or (features.stable and not features.loose_pools)


def _add(index: dict[K, list[ResourceSlice]], key: K, slice_: ResourceSlice) -> None:
    """Add a slice to a list that is mostly the only one: made with it, the list takes a third less."""
    known = index.get(key)
    if known is None:
        index[key] = [slice_]
    else:
        known.append(slice_)


def pools_of_node(index: SliceIndex, node: Node, features: Features, defects: KnownDefects) -> NodePools:
    """The pools of a node.

    Raises:
        AllocationError: a slice's node selector cannot be parsed; this fails every node.
    """
    alone = index.alone(node.name)
    without_groups = features.ignores_groups and index.has_groups
    if alone is not None and alone.per_device_node_selection is None and not without_groups:
        return NodePools((_of_one(alone, index, features),), (), ())
    kept: dict[PoolID, list[ResourceSlice]] = {}
    superseded: list[ResourceSlice] = []
    for candidate in index.candidates(node.name):
        try:
            if (without_groups and index.uses_groups(candidate)) or not relevant(candidate, node, features, defects):
                continue
        except InvalidNodeSelector as error:
            raise AllocationError(
                f"gather pool information: failed to perform node selection for slice {candidate.name}: {error}",
                check=AllocationCheck.SLICE_NODE_SELECTOR,
                subject=candidate.name,
            ) from error
        same_pool = kept.get(candidate.pool)
        if same_pool is None:
            kept[candidate.pool] = [candidate]
        elif candidate.generation == same_pool[0].generation:
            same_pool.append(candidate)
        elif candidate.generation > same_pool[0].generation:
            superseded.extend(same_pool)
            kept[candidate.pool] = [candidate]
        else:
            superseded.append(candidate)
    pools: list[Pool] = []
    obsolete: list[PoolID] = []
    for pool_id, slices in kept.items():
        pool = _build(pool_id, slices, index, features)
        if pool is None:
            obsolete.append(pool_id)
        else:
            pools.append(pool)
    if features.partitionable_devices and _counters_everywhere(features, defects):
        for pool_id, pool in index.foreign(features):
            if pool_id in kept:
                continue
            if pool is None:
                obsolete.append(pool_id)
            else:
                pools.append(pool)
    if len(pools) > 1:
        pools.sort(key=lambda pool: (_waits_for_binding(pool) and not features.stable, pool.id))
    return NodePools(tuple(pools), tuple(obsolete), tuple(superseded))


def _build(pool_id: PoolID, slices: Sequence[ResourceSlice], index: SliceIndex, features: Features) -> Pool | None:
    generation, expected = slices[0].generation, slices[0].slice_count
    if len(slices) == 1 and expected == 1 and not slices[0].shared_counters:
        return _of_one(slices[0], index, features)
    everywhere = index.by_pool[pool_id]
    count, others, ignored = len(slices), [], 0
    if count != expected and not features.local_pools:
        if any(slice_.generation > generation for slice_ in everywhere):
            return None
        same_generation = [slice_ for slice_ in everywhere if slice_.generation == generation]
        if features.ignores_groups and index.has_groups:
            ignored = sum(map(index.uses_groups, same_generation))
            same_generation = [slice_ for slice_ in same_generation if not index.uses_groups(slice_)]
        count = len(same_generation)
        seen = {id(slice_) for slice_ in slices}
        others = [slice_ for slice_ in same_generation if id(slice_) not in seen]
    counter_slices = [slice_ for slice_ in (*slices, *others) if slice_.shared_counters]
    pool = Pool(
        id=pool_id,
        generation=generation,
        slices=_in_order([slice_ for slice_ in slices if not slice_.shared_counters], features),
        other_slices=tuple(slice_ for slice_ in others if not slice_.shared_counters),
        counter_sets={
            counter_set.name: counter_set.counters
            for slice_ in counter_slices
            for counter_set in slice_.shared_counters
        },
        expected=expected,
        found=count,
        ignored=ignored,
        serves_incomplete=features.loose_pools,
    )
    if pool.incomplete and not features.loose_pools:
        return pool
    return replace(pool, invalid=_problem(pool, counter_slices, features))


def _in_order(slices: Sequence[ResourceSlice], features: Features) -> tuple[ResourceSlice, ...]:
    """Slices of a pool as they are tried: by name, or, where the order is random, as they come."""
    return tuple(slices if features.any_pool_order else sorted(slices, key=lambda slice_: slice_.name))


def _of_one(slice_: ResourceSlice, index: SliceIndex, features: Features) -> Pool:
    """The complete pool of a single slice. Many nodes may have one with the same devices."""
    pool = Pool(slice_.pool, slice_.generation, (slice_,), (), NO_COUNTERS, 1, 1)
    known = index.problems.setdefault(features, ByIdentity())
    problem = known.of(slice_.devices, lambda _: _problem(pool, (), features))
    return replace(pool, invalid=problem) if problem else pool


def _problem(pool: Pool, counter_slices: Sequence[ResourceSlice], features: Features) -> str:
    """The first reason why a complete pool is invalid; empty if it is valid."""
    names: set[str] = set()
    for slice_ in pool.slices:
        for name in slice_.names:
            if name in names:
                return f"duplicate device name {name}"
            names.add(name)
    if not features.partitionable_devices or features.loose_pools:
        return ""
    sets: set[str] = set()
    for slice_ in counter_slices:
        for counter_set in slice_.shared_counters:
            if counter_set.name in sets:
                return f"duplicate counter set name {counter_set.name}"
            sets.add(counter_set.name)
    for slice_ in (*pool.slices, *pool.other_slices):
        for device in slice_.devices:
            for consumption in device.consumes_counters:
                counters = pool.counter_sets.get(consumption.counter_set)
                if counters is None:
                    return f"counter set {consumption.counter_set} not found"
                for counter in consumption.counters:
                    if counter not in counters:
                        return f"counter {counter} not found in counter set {consumption.counter_set}"
    return ""


def _waits_for_binding(pool: Pool) -> bool:
    """Whether the pool is tried last: it is usable, and a device has binding conditions (even an empty list)."""
    return pool.usable and any(
        device.binding_conditions is not None for slice_ in pool.slices for device in slice_.devices
    )
