"""Devices that may be the same hardware: a taint on one does not affect the others (KEP-4815)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.explain.devices.inventory import DeviceRow

Counters = tuple[str, str, str]
"""Driver, pool and name of a counter set."""


def parts_of(devices: Iterable[DeviceID], rows: Sequence[DeviceRow]) -> dict[DeviceID, tuple[DeviceID, ...]]:
    """For each of the devices, the other devices that consume counters of the same sets.

    A driver publishes a GPU and its partitions as devices of one counter set, so they may be one piece of
    hardware.
    """
    wanted = set(devices)
    sets: dict[DeviceID, list[Counters]] = {}
    members: dict[Counters, list[DeviceID]] = {}
    for row in rows:
        for consumption in row.device.consumes_counters:
            counters = (row.id.driver, row.id.pool, consumption.counter_set)
            members.setdefault(counters, []).append(row.id)
            sets.setdefault(row.id, []).append(counters)
    out: dict[DeviceID, tuple[DeviceID, ...]] = {}
    for device in sorted(wanted & sets.keys()):
        others = dict.fromkeys(id for counters in sets[device] for id in members[counters] if id not in wanted)
        if others:
            out[device] = tuple(others)
    return out
