"""Shared counters of partitionable devices (KEP-4815): what is left, and what this attempt charges."""

from __future__ import annotations

from dataclasses import dataclass

from kubectl_dra.allocation.features import Quirks
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.allocation.state import AllocatedState
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Device, DeviceID, PoolID

Table = dict[str, dict[str, Quantity]]
Key = PoolID | str
ZERO = Quantity.parse("0")


@dataclass(frozen=True, slots=True)
class CounterShortage:
    """The counter that keeps a device from being charged.

    ``available`` is what allocated devices leave, ``charged`` what this attempt already took, ``needed``
    what the device wants of this counter (zero where the counter belongs to another device's set).
    """

    counter_set: str
    counter: str
    available: Quantity
    charged: Quantity
    needed: Quantity


def available_counters(pool: Pool, state: AllocatedState) -> Table:
    """The pool's counters minus what its allocated devices consume; may be negative."""
    table: Table = {name: dict(counters) for name, counters in pool.counter_sets.items()}
    for entry in (*pool.slices, *pool.other_slices):
        for device in entry.devices:
            if not device.consumes_counters or not state.in_use(DeviceID(*pool.id, device.name)):
                continue
            for consumption in device.consumes_counters:
                left = table.get(consumption.counter_set, {})
                for counter, amount in consumption.counters.items():
                    if counter in left:
                        left[counter] = left[counter] - amount
    return table


class CounterLedger:
    """Counters of one attempt on one node; ``available`` is shared by all nodes of a cycle."""

    def __init__(self, available: dict[Key, Table], state: AllocatedState, quirks: Quirks) -> None:
        self._available = available
        self._charged: dict[Key, Table] = {}
        self._state = state
        self._quirks = quirks

    def charge(self, pool: Pool, device: Device) -> CounterShortage | None:
        """Charges a device, or returns the counter that is short and charges nothing."""
        key = self._key(pool)
        available = self._available.get(key)
        if available is None:
            available = self._available[key] = available_counters(pool, self._state)
        charged = self._charged.setdefault(key, {})
        _apply(charged, device, 1)
        for set_name, counters in available.items():
            taken = charged.get(set_name)
            for counter, left in counters.items():
                total = taken.get(counter, ZERO) if taken else ZERO
                if left < total:
                    _apply(charged, device, -1)
                    needed = _needed(device, set_name, counter)
                    return CounterShortage(set_name, counter, left, total - needed, needed)
        return None

    def release(self, pool: Pool, device: Device) -> None:
        """Takes a charge back."""
        _apply(self._charged.setdefault(self._key(pool), {}), device, -1)

    def _key(self, pool: Pool) -> Key:
        return pool.id.name if self._quirks.counters_keyed_by_pool_name else pool.id


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
