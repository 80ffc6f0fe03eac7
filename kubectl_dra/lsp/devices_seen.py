"""What the devices of a snapshot publish, counted: drivers, attributes, capacities and their values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.cluster.snapshot import Snapshot


class PublishedValues(NamedTuple):
    """An attribute or capacity: its type, how many devices have it, and how many have each value."""

    type: str
    devices: int
    values: Mapping[str, int]


class DevicesSeen(NamedTuple):
    """``drivers`` counts their devices. ``attributes`` and ``capacity`` are by domain and name."""

    drivers: Mapping[str, int]
    attributes: Mapping[tuple[str, str], PublishedValues]
    capacity: Mapping[tuple[str, str], PublishedValues]
    classes: tuple[str, ...]


NOTHING: Final = DevicesSeen({}, {}, {}, ())
_CAPACITY: Final = frozenset(("value", "requestPolicy"))


def devices_seen(snapshot: Snapshot) -> DevicesSeen:
    """Count what the devices of the snapshot publish."""
    drivers: Counter[str] = Counter()
    attributes: dict[tuple[str, str], list[tuple[str, str]]] = {}
    capacity: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for slice in snapshot.slices:
        for device in slice.devices:
            drivers[device.driver] += 1
            for found, kept in ((device.attributes, attributes), (device.capacity, capacity)):
                for written, value in found.items():
                    domain, _, name = written.rpartition("/")
                    kept.setdefault((domain or device.driver, name), []).extend(_texts(value))
    return DevicesSeen(drivers, _counted(attributes), _counted(capacity), tuple(snapshot.classes))


def _texts(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The types and texts of a value: one, or those of a list."""
    for type, found in value.items():
        if type in _CAPACITY:
            if type == "value":
                yield "quantity", str(found)
            continue
        for each in found if isinstance(found, list | tuple) else (found,):
            yield type, str(each).lower() if isinstance(each, bool) else str(each)


def _counted(found: Mapping[tuple[str, str], list[tuple[str, str]]]) -> dict[tuple[str, str], PublishedValues]:
    return {
        name: PublishedValues(values[0][0], len(values), Counter(text for _, text in values))
        for name, values in found.items()
        if values
    }
