"""Shared counters of partitionable devices (KEP-4815): what is left, and what this attempt charges."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from kubectl_dra.allocation.capacity import ZERO
from kubectl_dra.allocation.features import KnownDefects
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.allocation.state import AllocatedState
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import NO_GROUPS, CounterConsumption, Device, DeviceID, PoolID

Table = dict[str, dict[str, Quantity]]
CounterTableKey = PoolID | str


class CounterShortage(Struct, frozen=True):
    """The counter that prevents a device from being charged.

    ``available`` is what allocated devices leave, ``charged`` what this attempt already took, ``needed`` what
    the device wants of this counter (zero if the counter belongs to another device's set).
    """

    counter_set: str
    counter: str
    available: Quantity
    charged: Quantity
    needed: Quantity


def available_counters(pool: Pool, state: AllocatedState, defects: KnownDefects) -> Table:
    """The pool's counters minus what its allocated devices consume; may be negative."""
    table: Table = {name: dict(counters) for name, counters in pool.counter_sets.items()}
    for consumption in _consumed(pool, state.exclusive.__contains__ if defects.shares_charge_nothing else state.in_use):
        remaining = table.get(consumption.counter_set, {})
        for counter, amount in consumption.counters.items():
            if counter in remaining:
                remaining[counter] = remaining[counter] - amount
    return table


def _consumed(pool: Pool, used: Callable[[DeviceID], bool]) -> Iterator[CounterConsumption]:
    """What the devices of a pool that are used consume."""
    for slice_ in (*pool.slices, *pool.other_slices):
        for device, name in zip(slice_.devices, slice_.names, strict=True):
            if device.consumes_counters and used(DeviceID(*pool.id, name)):
                yield from device.consumes_counters


class CounterLedger:
    """Counters of one attempt on one node; ``available`` is shared by all nodes of a cycle.

    ``groups`` are those of the same attempt where compatibility groups count.
    """

    def __init__(
        self,
        available: dict[CounterTableKey, Table],
        state: AllocatedState,
        defects: KnownDefects,
        groups: GroupLedger | None = None,
    ) -> None:
        self._available = available
        self._charged: dict[CounterTableKey, Table] = {}
        self._overdrawn: dict[CounterTableKey, bool] = {}
        self._state = state
        self._defects = defects
        self._groups = groups

    def charge(self, pool: Pool, device: Device) -> CounterShortage | GroupClash | None:
        """Charge a device, or return the counter that is short, or why groups forbid it, and charge nothing."""
        if self._groups is None:
            return self._charge(pool, device)
        clash = self._groups.join(pool, device)
        if clash is not None:
            return clash
        short = self._charge(pool, device)
        if short is not None:
            self._groups.leave(pool)
        return short

    def _charge(self, pool: Pool, device: Device) -> CounterShortage | None:
        key = self.key(pool)
        available = self.available(pool)
        charged = self._charged.setdefault(key, {})
        _apply(charged, device, 1)
        # What was charged before did fit, so only the device's own counters can be exceeded now, unless a
        # counter was negative from the start, which blocks every device of the pool.
        if not self._overdrawn[key] and _fits(available, charged, device):
            return None
        for set_name, counters in available.items():
            consumed = charged.get(set_name)
            for counter, rest in counters.items():
                total = consumed.get(counter, ZERO) if consumed else ZERO
                if rest < total:
                    _apply(charged, device, -1)
                    needed = _needed(device, set_name, counter)
                    return CounterShortage(set_name, counter, rest, total - needed, needed)
        return None

    def release(self, pool: Pool, device: Device) -> None:
        """Undo a charge; with groups, the last one."""
        if self._groups is not None:
            self._groups.leave(pool)
        _apply(self._charged.setdefault(self.key(pool), {}), device, -1)

    def key(self, pool: Pool) -> CounterTableKey:
        """The key of the pool's counters. If keyed by name alone, drivers that use one name share them."""
        return pool.id.name if self._defects.counters_keyed_by_pool_name else pool.id

    def available(self, pool: Pool) -> Table:
        """The counters that allocated devices leave, computed by the first pool with the key."""
        key = self.key(pool)
        available = self._available.get(key)
        if available is None:
            available = self._available[key] = available_counters(pool, self._state, self._defects)
        if key not in self._overdrawn:
            self._overdrawn[key] = any(rest < ZERO for counters in available.values() for rest in counters.values())
        return available

    def peek(self, pool: Pool) -> Table:
        """The answer of ``available``, without making this pool the first."""
        known = self._available.get(self.key(pool))
        return available_counters(pool, self._state, self._defects) if known is None else known

    def charges(self) -> tuple[tuple[CounterTableKey, str, str, int], ...]:
        """What this attempt has charged, as (key, counter set, counter, nano units), without zeros."""
        return tuple(
            sorted(
                (key, set_name, counter, amount.nanos)
                for key, table in self._charged.items()
                for set_name, counters in table.items()
                for counter, amount in counters.items()
                if amount.nanos
            )
        )

    def copy(self) -> dict[CounterTableKey, Table]:
        """The current charges, for ``restore``."""
        return _copied(self._charged)

    def restore(self, charged: dict[CounterTableKey, Table]) -> None:
        """Set the charges to an earlier ``copy``."""
        self._charged = _copied(charged)


def _copied(charged: dict[CounterTableKey, Table]) -> dict[CounterTableKey, Table]:
    return {key: {name: dict(counters) for name, counters in table.items()} for key, table in charged.items()}


def _fits(available: Table, charged: Table, device: Device) -> bool:
    for consumption in device.consumes_counters:
        limits = available.get(consumption.counter_set)
        if limits is None:
            continue
        totals = charged[consumption.counter_set]
        for counter in consumption.counters:
            rest = limits.get(counter)
            if rest is not None and rest < totals[counter]:
                return False
    return True


def _apply(table: Table, device: Device, sign: int) -> None:
    for consumption in device.consumes_counters:
        counters = table.setdefault(consumption.counter_set, {})
        for name, amount in consumption.counters.items():
            total = counters.get(name, ZERO)
            counters[name] = total + amount if sign > 0 else total - amount


def _needed(device: Device, counter_set: str, counter: str) -> Quantity:
    for consumption in device.consumes_counters:
        if consumption.counter_set == counter_set and counter in consumption.counters:
            return consumption.counters[counter]
    return ZERO


# Compatibility groups: which devices may take from one counter set at the same time (alpha in 1.37).


class Common(Struct, frozen=True):
    """What the devices that take from a counter set have in common.

    ``without``: none of them has a group. Otherwise the groups that all share, which are none if devices were allocated
    before they contradicted each other.
    """

    groups: frozenset[str]
    without: bool

    def admits(self, groups: frozenset[str]) -> bool:
        """Whether a device with these groups may join."""
        return bool(self.groups & groups) if groups else self.without

    def joined(self, groups: frozenset[str]) -> Common:
        """What is left in common with one more device."""
        return self if self.without or not groups else Common(self.groups & groups, False)


class GroupClash(Struct, frozen=True):
    """A device shares no group with the devices that take from its counter set already.

    ``own`` are the device's groups, ``common`` those of the others; either may be empty, for devices without a group.
    """

    counter_set: str
    own: tuple[str, ...]
    common: tuple[str, ...]


InUse = dict[PoolID, dict[str, Common]]
"""By pool and counter set: what the devices that are allocated in the cluster have in common."""


def groups_in_use(pool: Pool, state: AllocatedState) -> dict[str, Common]:
    """What the pool's allocated devices have in common, by counter set."""
    common: dict[str, Common] = {}
    for consumption in _consumed(pool, state.in_use):
        _join(common, consumption.counter_set, consumption.groups)
    return common


class GroupLedger:
    """The groups of one attempt on one node. ``in_use`` is shared by all nodes of a cycle."""

    def __init__(self, in_use: InUse, state: AllocatedState) -> None:
        self._in_use = in_use
        self._state = state
        self._now: dict[PoolID, dict[str, Common]] = {}
        self._before: list[dict[str, Common]] = []

    def join(self, pool: Pool, device: Device) -> GroupClash | None:
        """Add a device to those in use, or return why it may not be, and change nothing."""
        now = self._now.get(pool.id)
        if now is None:
            if pool.id not in self._in_use:
                self._in_use[pool.id] = groups_in_use(pool, self._state)
            now = self._in_use[pool.id]
        joined = dict(now)
        for consumption in device.consumes_counters:
            known = joined.get(consumption.counter_set)
            if known is not None and not known.admits(consumption.groups):
                return GroupClash(consumption.counter_set, _sorted(consumption.groups), _sorted(known.groups))
            _join(joined, consumption.counter_set, consumption.groups)
        self._before.append(now)
        self._now[pool.id] = joined
        return None

    def leave(self, pool: Pool) -> None:
        """Remove the device that joined last, which was one of this pool."""
        self._now[pool.id] = self._before.pop()


def _join(common: dict[str, Common], counter_set: str, groups: frozenset[str]) -> None:
    known = common.get(counter_set)
    common[counter_set] = Common(groups or NO_GROUPS, not groups) if known is None else known.joined(groups)


def _sorted(groups: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(groups))
