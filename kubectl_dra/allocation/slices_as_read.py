"""ResourceSlices as the allocator of a release reads them, in the shape that the model of today's allocator takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kubectl_dra.allocation.features import Features
from kubectl_dra.api.slices import ResourceSlice


def slices_as_read(slices: Sequence[ResourceSlice], features: Features) -> Sequence[ResourceSlice]:
    """The slices, changed where the allocator does not see what they say."""
    if features.loose_pools:
        slices = list(_counters_apart(slices))
    if features.stable:
        slices = [_exclusive(entry) for entry in slices]
    return slices


def _counters_apart(slices: Sequence[ResourceSlice]) -> Iterator[ResourceSlice]:
    """Up to 1.34 a slice may hold devices and the counters that they share. Later there are two slices for that."""
    mixed = Counter((entry.pool, entry.generation) for entry in slices if entry.shared_counters and entry.devices)
    for entry in slices:
        more = mixed[entry.pool, entry.generation]
        if more:
            entry = replace(entry, slice_count=entry.slice_count + more)
        if not entry.shared_counters or not entry.devices:
            yield entry
            continue
        yield replace(entry, shared_counters=())
        yield replace(entry, name=f"{entry.name} (counters)", devices=(), individual=None)


def _exclusive(entry: ResourceSlice) -> ResourceSlice:
    """The stable variant takes every device to serve one claim, for selectors too, and none to bind to its node."""
    if not any(device.allow_multiple_allocations or device.binds_to_node for device in entry.devices):
        return entry
    devices = tuple(replace(device, allow_multiple_allocations=False, binds_to_node=False) for device in entry.devices)
    return replace(entry, devices=devices)
