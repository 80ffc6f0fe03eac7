"""Compatibility groups: which devices may take from one counter set at the same time (alpha in 1.37)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kubectl_dra.allocation.pools import Pool
from kubectl_dra.allocation.state import AllocatedState
from kubectl_dra.api.slices import NO_GROUPS, Device, DeviceID, PoolID


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
    found: dict[str, Common] = {}
    for entry in (*pool.slices, *pool.other_slices):
        for device, name in zip(entry.devices, entry.names, strict=True):
            if not device.consumes_counters or not state.in_use(DeviceID(*pool.id, name)):
                continue
            for consumption in device.consumes_counters:
                _join(found, consumption.counter_set, consumption.groups)
    return found


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


def uses_groups(devices: Iterable[Device]) -> bool:
    """Whether any of the devices has a group."""
    return any(consumption.groups for device in devices for consumption in device.consumes_counters)


def _join(found: dict[str, Common], counter_set: str, groups: frozenset[str]) -> None:
    known = found.get(counter_set)
    found[counter_set] = Common(groups or NO_GROUPS, not groups) if known is None else known.joined(groups)


def _sorted(groups: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(groups))
