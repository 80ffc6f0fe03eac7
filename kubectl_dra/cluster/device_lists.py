"""Decodes lists of devices from JSON bytes. Equal devices, attributes and capacities become one object each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, json

from kubectl_dra.api.codec import decoded, struct_mismatch
from kubectl_dra.api.meta import Wire
from kubectl_dra.api.quantity import is_plain
from kubectl_dra.api.shared_devices import Extractor, PerDeviceTexts, extractors
from kubectl_dra.api.slices import Device
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.cluster.duplicates import REMEMBERED, Interner, Unusual

SAMPLE: Final = 32
"""Slices of a driver from which we learn what is individual to a device."""
SEARCHED: Final = 5_000
"""After so many devices, equal ones are looked for only if one in twenty was there before."""
_LISTS: Final = 2_000
"""Number of different lists of devices that are remembered to find equal ones."""


class _Taint(Wire, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str = ""


class _Device(Wire, frozen=True, forbid_unknown_fields=True):
    """A device of the usual shape; ``Device.from_json`` reads any other."""

    name: str = ""
    attributes: Raw = Raw(b"{}")
    capacity: Raw = Raw(b"{}")
    taints: tuple[_Taint, ...] = ()


_Tables = dict[str, dict[str, str]]
# Attributes that are all texts or versions, and capacity that is nothing but amounts: what nearly all devices have.
_USUAL: Final[Mapping[str, msgspec.json.Decoder[Any]]] = {
    "attributes": json.Decoder(dict[str, dict[Literal["string", "version"], str]]),
    "capacity": json.Decoder(dict[str, dict[Literal["value"], str]]),
}


class DeviceLists:
    """Decoded lists of devices. Lists that are equal except for individual texts are one object."""

    def __init__(self, *, compact: bool) -> None:
        self._compact = compact
        # Each with how many texts were cut out for each column, if all of them were.
        self._lists: dict[tuple[str, bytes], tuple[tuple[Device, ...], Sequence[int]]] = {}
        self._known: dict[tuple[str, bytes], Device] = {}
        # How many devices were looked for among the known ones, and how many of them were there.
        self._looked = self._met = 0
        self._tables: dict[bytes, Mapping[str, Mapping[str, Any]]] = {}
        self._values = Interner()
        self._texts: dict[tuple[str, str], dict[str, str]] = {}
        self._samples: dict[str, list[Sequence[Device]]] = {}
        # What takes a driver's individual texts out of the bytes of a list.
        self._extractors: dict[str, tuple[Extractor, ...]] = {}
        self._device = json.Decoder(_Device)
        self._each = json.Decoder(list[Raw])

    def read(self, driver: str, data: bytes) -> tuple[tuple[Device, ...], PerDeviceTexts | None]:
        """The devices of a list, and their individual texts. Raises ValueError."""
        cuts = self._extractors.get(driver)
        if not cuts:
            devices, _ = self._read(driver, data, ())
            if self._compact and cuts is None:
                self._sample(driver, devices)
            return devices, None
        rest, values = data, []
        for cut in cuts:
            rest, own = cut.taken(rest)
            values.append(own)
        devices, counts = self._read(driver, rest, cuts)
        if not counts or not all(map(Extractor.fits, cuts, values, counts)):
            return self._read(driver, data, cuts)[0], None
        return devices, PerDeviceTexts(
            tuple(cut.column for cut in cuts), tuple([b"\0".join([*own, b""]).decode() for own in values])
        )

    def _read(self, driver: str, data: bytes, cuts: Sequence[Extractor]) -> tuple[tuple[Device, ...], Sequence[int]]:
        key = (driver, data)
        devices_read = self._lists.get(key)
        if devices_read is None:
            devices = tuple(self._one(driver, bytes(memoryview(raw))) for raw in self._each.decode(data))
            whole = all(cut.stands_in(device) for cut in cuts for device in devices)
            devices_read = devices, [cut.count(devices) for cut in cuts] if whole else ()
            if len(self._lists) < _LISTS:
                self._lists[key] = devices_read
        return devices_read

    def _one(self, driver: str, data: bytes) -> Device:
        key, look = (driver, data), self._looked < SEARCHED or self._met * 20 > self._looked
        device = self._known.get(key) if look else None
        self._looked += 1
        if device is not None:
            self._met += 1
        else:
            try:
                raw = self._device.decode(data)
            except msgspec.ValidationError:
                device = self._rare(driver, json.decode(data))
            else:
                device = Device(
                    driver,
                    intern(raw.name),
                    self._table(bytes(memoryview(raw.attributes)), "attributes"),
                    self._table(bytes(memoryview(raw.capacity)), "capacity"),
                    taints=tuple(
                        [DeviceTaint(taint.key, taint.value, taint.effect, taint.time_added) for taint in raw.taints]
                    ),
                )
            if look and len(self._known) < REMEMBERED:
                self._known[key] = device
        return device

    def _rare(self, driver: str, raw: Any) -> Device:
        """A device with counters, taints and so on."""
        if not isinstance(raw, dict) or raw.get("name", "") is None or struct_mismatch(raw, "Device") is not None:
            raise Unusual
        raw = decoded(raw, "Device")
        for name in ("attributes", "capacity"):
            if raw.get(name):
                raw[name] = self._table(json.encode(raw[name]), name)
        return Device.from_json(driver, raw)

    def _table(self, data: bytes, name: str) -> Mapping[str, Mapping[str, Any]]:
        """Attributes or capacity; equal tables and equal values are shared."""
        known = self._tables.get(data)
        if known is None:
            known = self._usual(data, name) or self._any(data, name)
            if len(self._tables) < REMEMBERED:
                self._tables[data] = known
        return known

    def _usual(self, data: bytes, name: str) -> _Tables:
        """A table of texts; empty if it is not one."""
        try:
            table: _Tables = _USUAL[name].decode(data)
        except msgspec.ValidationError:
            return {}
        shared = self._texts
        if len(shared) > REMEMBERED:
            return table if all(map(_is_usual, table.values())) else {}
        for key, value in table.items():
            if not _is_usual(value):
                return {}
            ((kind, text),) = value.items()
            table[key] = shared.setdefault((kind, text), value)
        return table

    def _any(self, data: bytes, name: str) -> Mapping[str, Mapping[str, Any]]:
        raw = json.decode(data)
        if struct_mismatch({name: raw}, "Device") is not None or raw is None:
            raise Unusual
        return {
            key: self._values.first(json.encode(value), value)
            for key, value in decoded({name: raw}, "Device")[name].items()
        }

    def _sample(self, driver: str, devices: Sequence[Device]) -> None:
        samples = self._samples.setdefault(driver, [])
        samples.append(devices)
        if len(samples) >= SAMPLE:
            self._extractors[driver] = tuple(extractors(samples))
            del self._samples[driver]
            self._lists.clear()


def _is_usual(value: Mapping[str, str]) -> bool:
    """Whether an attribute has one value, or a capacity an amount that certainly is one."""
    if len(value) != 1:
        return False
    amount = value.get("value")
    return amount is None or is_plain(amount)
