"""ResourceSlices as the allocator of a release reads them, in the shape that the model of today's allocator takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kubectl_dra.allocation.features import Features
from kubectl_dra.api.slices import Device, ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.by_identity import ByIdentity


def slices_as_read(slices: Sequence[ResourceSlice], features: Features) -> Sequence[ResourceSlice]:
    """The slices, changed where the allocator does not see what they say."""
    if features.loose_pools:
        slices = list(_counters_apart(slices))
    if features.stable:
        slices = [_exclusive(slice_) for slice_ in slices]
    return slices


def _counters_apart(slices: Sequence[ResourceSlice]) -> Iterator[ResourceSlice]:
    """Up to 1.34 a slice may hold devices and the counters that they share. Later there are two slices for that."""
    mixed = Counter((slice_.pool, slice_.generation) for slice_ in slices if slice_.shared_counters and slice_.devices)
    for slice_ in slices:
        more = mixed[slice_.pool, slice_.generation]
        if more:
            slice_ = replace(slice_, slice_count=slice_.slice_count + more)
        if not slice_.shared_counters or not slice_.devices:
            yield slice_
            continue
        yield replace(slice_, shared_counters=())
        yield replace(slice_, name=f"{slice_.name} (counters)", devices=(), individual=None)


def _exclusive(slice_: ResourceSlice) -> ResourceSlice:
    """The stable variant takes every device to serve one claim, for selectors too, and none to bind to its node."""
    if not any(device.allow_multiple_allocations or device.binds_to_node for device in slice_.devices):
        return slice_
    devices = tuple(replace(device, allow_multiple_allocations=False, binds_to_node=False) for device in slice_.devices)
    return replace(slice_, devices=devices)


# DeviceTaintRules applied to slices, as the scheduler's taint tracker does.

_Numbers = tuple[int, ...]


def apply_rules(slices: Iterable[ResourceSlice], rules: Sequence[DeviceTaintRule]) -> tuple[ResourceSlice, ...]:
    """Slices with each matching rule's taint appended to its devices, whatever the slice's generation.

    A rule without a selector matches nothing, as the API documents. Devices that are the same object before
    and get the same taints are the same object afterwards.
    """
    if not rules:
        return tuple(slices)
    tainter = _Tainter(rules)
    return tuple(map(tainter.applied, slices))


class _Tainter:
    """Rules indexed by what they select, so that the cost depends only on the devices that they taint."""

    def __init__(self, rules: Sequence[DeviceTaintRule]) -> None:
        self._rules = rules
        # (driver, pool) that is selected -> device -> numbers of rules; None where a selector does not name it.
        self._by_place: dict[tuple[str | None, str | None], dict[str | None, list[int]]] = {}
        for number, rule in enumerate(rules):
            if rule.selector is not None:
                driver, pool, device = rule.selector
                self._by_place.setdefault((driver, pool), {}).setdefault(device, []).append(number)
        self._tainted = ByIdentity[Device, dict[_Numbers, Device]]()
        self._lists = ByIdentity[tuple[Device, ...], dict[tuple[_Numbers, ...], tuple[Device, ...]]]()

    def applied(self, slice_: ResourceSlice) -> ResourceSlice:
        """The slice with the taints of the rules; the same object if there are none."""
        driver, pool = slice_.driver, slice_.pool.name
        places = [(driver, pool), (driver, None), (None, pool), (None, None)]
        tables = [table for place in places if (table := self._by_place.get(place))]
        if not tables:
            return slice_
        numbers = tuple([_matching(tables, name) for name in slice_.names])
        if not any(numbers):
            return slice_
        known = self._lists.of(slice_.devices, lambda _: {})
        devices = known.get(numbers)
        if devices is None:
            devices = known[numbers] = tuple(map(self._with_taints, slice_.devices, numbers))
        return replace(slice_, devices=devices)

    def _with_taints(self, device: Device, numbers: _Numbers) -> Device:
        if not numbers:
            return device
        known = self._tainted.of(device, lambda _: {})
        tainted = known.get(numbers)
        if tainted is None:
            added = (self._rules[number].taint for number in numbers)
            tainted = known[numbers] = replace(device, taints=(*device.taints, *added))
        return tainted


def _matching(tables: Sequence[dict[str | None, list[int]]], device: str) -> _Numbers:
    """The rules that select a device, in order."""
    matching: list[int] = []
    for table in tables:
        matching.extend(table.get(device, ()))
        matching.extend(table.get(None, ()))
    return tuple(sorted(matching))
