"""Part of divided hardware that a device takes, by the counters that all its divisions share (KEP-4815)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import Counters, Device

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
