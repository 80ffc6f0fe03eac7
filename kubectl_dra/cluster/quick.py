"""Raw objects to typed ones for clusters with 100,000 devices: what is alike is checked, read and kept once.

The checks here decide whether all types are right for the fields that nearly all objects have, and leave
everything else to ``api.decoding``. Equal attribute and capacity values, equal devices, equal lists of devices and
equal claim specs become one object each. Objects that come in may be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.conversion import reshaped
from kubectl_dra.api.decoding import Mismatch, mismatch, struct_mismatch
from kubectl_dra.api.meta import EMPTY
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.slices import Device, Individual, ResourceSlice
from kubectl_dra.cluster.individual import give_back, individual_names, stand_ins_of, take_individual
from kubectl_dra.cluster.plain import dumped, plain_meta, plain_taints
from kubectl_dra.cluster.quick_claims import ClaimReader

_SIMPLE: Final = {"string": str, "int": int, "bool": bool, "version": str}
_HANDLED: Final = frozenset(
    ("name", "attributes", "capacity", "consumesCounters", "taints", "allowMultipleAllocations")
)
_SPEC: Final = frozenset(("driver", "nodeName", "pool", "devices"))
_POOL: Final = {"name": str, "generation": int, "resourceSliceCount": int}
_SAME: Final = ("v1", "v1beta2")
"""Versions with the same shapes."""

SAMPLE: Final = 32
"""Slices of a driver from which is learned which attributes are a device's own."""

_KEPT: Final = 20_000
"""How many different things of one kind are remembered, to find equal ones."""

_TRIED: Final = 200
"""So many lists of devices are compared as a whole in any case, and more while a third of them is like another."""

_TRIED_DEVICES: Final = 2_000
"""The same for single devices of a driver."""


class QuickReader:
    """Reads raw ResourceSlices, ResourceClaims and Nodes in turn; equal parts are shared among all of them.

    With ``compact``, attributes that every device has its own text of are kept beside devices that are otherwise
    alike (see ``api.slices.Individual``), so that these can be shared as well.
    """

    def __init__(self, *, compact: bool = False) -> None:
        self._compact = compact
        self._attributes: dict[tuple[str, type, Any], dict[str, Any]] = {}
        # Quantity text -> the object {"value": text}.
        self._amounts: dict[str, dict[str, Any]] = {}
        self._texts: dict[str, str] = {}
        self._claims = ClaimReader(self._texts)
        self._lists: dict[str, dict[bytes, tuple[Device, ...]]] = {}
        # How many lists of a driver were found to be like an earlier one.
        self._repeated: dict[str, int] = {}
        self._devices: dict[str, dict[bytes, Device]] = {}
        self._repeated_devices: dict[str, int] = {}
        # What stands in for individual attributes in devices that are kept.
        self._stand_ins: dict[str, dict[str, dict[str, Any]]] = {}
        # Names and the identities of their values, which live on here -> the table of attributes or capacity.
        self._tables: dict[tuple[object, ...], dict[str, Any]] = {}
        self._policies: dict[bytes, dict[str, Any]] = {}
        self._samples: dict[str, list[Sequence[Mapping[str, Any]]]] = {}
        self._individual: dict[str, tuple[str, ...]] = {}

    def slice(self, raw: dict[str, Any], version: str) -> ResourceSlice | Mismatch:
        """A slice of any version, or its first value of a wrong type."""
        spec = raw.get("spec")
        if type(spec) is not dict or version not in _SAME:
            wrong = self._slow_mismatch(raw, version)
            if wrong is not None:
                return wrong
            raw = reshaped(raw)
            spec = raw.get("spec") or EMPTY
        elif not self._plain_around(raw, spec):
            around = {**spec, "devices": []}
            wrong = mismatch({"metadata": raw.get("metadata"), "spec": around}, "ResourceSlice", version)
            if wrong is not None:
                return wrong
        devices = spec.get("devices")
        read = None
        if type(devices) is list:
            read = self._read_devices(self._text(spec.get("driver") or ""), devices)
        if read is not None:
            return ResourceSlice.from_json(raw, *read)
        wrong = mismatch(raw, "ResourceSlice", version) if version in _SAME else None
        return ResourceSlice.from_json(raw) if wrong is None else wrong

    def _slow_mismatch(self, raw: dict[str, Any], version: str) -> Mismatch | None:
        return None if self._is_plain_wrapped(raw, version) else mismatch(raw, "ResourceSlice", version)

    def _is_plain_wrapped(self, raw: dict[str, Any], version: str) -> bool:
        """Whether all types of a v1beta1 slice are right; False means that the slow check has to look."""
        spec = raw.get("spec")
        if type(spec) is not dict or version != "v1beta1":
            return False
        devices = spec.get("devices")
        if type(devices) is not list:
            return False
        for device in devices:
            if type(device) is not dict or type(device.get("name")) is not str:
                return False
            basic = device.get("basic")
            if type(basic) is not dict or not self._is_plain_device(basic):
                return False
        around = {**spec, "devices": []}
        return mismatch({"metadata": raw.get("metadata"), "spec": around}, "ResourceSlice", version) is None

    def _plain_around(self, raw: dict[str, Any], spec: dict[str, Any]) -> bool:
        """Whether the types of everything but the devices are right, and names are shared."""
        if spec.keys() - _SPEC or not plain_meta(raw.get("metadata")):
            return False
        pool, node, texts = spec.get("pool"), spec.get("nodeName"), self._texts
        if type(pool) is not dict or type(node) is not str or type(spec.get("driver")) is not str:
            return False
        for key, value in pool.items():
            if type(value) is not _POOL.get(key):
                return False
        spec["nodeName"] = texts.setdefault(node, node)
        name = pool.get("name")
        if name is not None:
            pool["name"] = texts.setdefault(name, name)
        return True

    def _text(self, text: Any) -> Any:
        return self._texts.setdefault(text, text) if type(text) is str else text

    def _read_devices(self, driver: str, raw: list[Any]) -> tuple[tuple[Device, ...], Individual | None] | None:
        """Devices of a slice in their v1 shape, with what is individual of them; None if the slow check has to look."""
        names = self._individual.get(driver)
        individual = take_individual(raw, names) if names else None
        if names is None or (names and individual is None):
            found = self._new_devices(driver, raw)
            if found is None:
                return None
            if self._compact and names is None:
                self._sample(driver, found)
            return found, None
        lists = self._lists.setdefault(driver, {})
        whole = len(lists) < max(_TRIED, 2 * self._repeated.get(driver, 0))
        key = dumped(raw) if whole else b""
        known = lists.get(key)
        if known is not None:
            self._repeated[driver] = self._repeated.get(driver, 0) + 1
            return known, individual
        known = self._shared_devices(driver, raw, individual)
        if known is None:
            return None
        if key and len(lists) < _KEPT:
            lists[key] = known
        return known, individual

    def _shared_devices(self, driver: str, raw: list[Any], individual: Individual | None) -> tuple[Device, ...] | None:
        """Devices of a list that is not like any before, of which single devices may well be."""
        devices = self._devices.setdefault(driver, {})
        stand_ins = None if individual is None else self._stand_ins.setdefault(driver, stand_ins_of(individual))
        out: list[Device] = []
        for device in raw:
            single = len(devices) < max(_TRIED_DEVICES, 2 * self._repeated_devices.get(driver, 0))
            key = dumped(device) if single else b""
            known = devices.get(key)
            if known is not None:
                self._repeated_devices[driver] = self._repeated_devices.get(driver, 0) + 1
            else:
                if stand_ins is not None:
                    device["attributes"].update(stand_ins)
                new = self._new_devices(driver, (device,))
                if new is None:
                    if individual is not None:
                        give_back(raw, individual)
                    return None
                (known,) = new
                if key and len(devices) < _KEPT:
                    devices[key] = known
            out.append(known)
        return tuple(out)

    def _new_devices(self, driver: str, raw: Sequence[Any]) -> tuple[Device, ...] | None:
        out: list[Device] = []
        for device in raw:
            if type(device) is not dict or type(device.get("name")) is not str or not self._is_plain_device(device):
                return None
            name = device["name"]
            device["name"] = self._texts.setdefault(name, name)
            out.append(Device.from_json(driver, device))
        return tuple(out)

    def _sample(self, driver: str, devices: Sequence[Device]) -> None:
        samples = self._samples.setdefault(driver, [])
        samples.append([device.attributes for device in devices])
        if len(samples) >= SAMPLE:
            self._individual[driver] = individual_names(samples)
            del self._samples[driver]

    def _is_plain_device(self, device: dict[str, Any]) -> bool:
        attributes, capacity = device.get("attributes"), device.get("capacity")
        if attributes is not None and not self._share_attributes(attributes):
            return False
        if capacity is not None and not self._share_amounts(capacity, self._with_policy):
            return False
        if attributes is not None:
            device["attributes"] = self._same(attributes)
        if capacity is not None:
            device["capacity"] = self._same(capacity)
        if device.keys() <= _HANDLED and type(device.get("allowMultipleAllocations", False)) is bool:
            return self._plain_counters(device.get("consumesCounters")) and plain_taints(device.get("taints"))
        rest = {key: device[key] for key in device if key not in ("name", "attributes", "capacity")}
        return struct_mismatch(rest, "Device") is None

    def _same(self, table: dict[str, Any]) -> dict[str, Any]:
        """The first table with the same names and shared values."""
        key = (*table, *map(id, table.values()))
        known = self._tables.get(key)
        if known is None:
            known = table
            if len(self._tables) < _KEPT:
                self._tables[key] = known
        return known

    def _share_attributes(self, attributes: Any) -> bool:
        if type(attributes) is not dict:
            return False
        shared = self._attributes
        for name, value in attributes.items():
            if type(value) is not dict or len(value) != 1:
                return False
            for kind, content in value.items():
                if type(content) is not _SIMPLE.get(kind):
                    return False
                # 1 and True are equal, and must stay what they are.
                attributes[name] = shared.setdefault((kind, type(content), content), value)
        return True

    def _with_policy(self, entry: Any) -> dict[str, Any] | None:
        """A capacity of more than an amount, shared; None if the slow check has to look."""
        key = dumped(entry)
        known = self._policies.get(key)
        if known is None:
            if not key or type(entry) is not dict or struct_mismatch({"capacity": {"": entry}}, "Device") is not None:
                return None
            known = entry
            if len(self._policies) < _KEPT:
                self._policies[key] = known
        return known

    def _share_amounts(self, amounts: Any, of_more: Callable[[Any], dict[str, Any] | None] | None = None) -> bool:
        """Whether all amounts are right, which are shared then; ``of_more`` shares entries of more than an amount."""
        if type(amounts) is not dict:
            return False
        shared = self._amounts
        for name, entry in amounts.items():
            if type(entry) is not dict or len(entry) != 1:
                more = None if of_more is None else of_more(entry)
                if more is None:
                    return False
                amounts[name] = more
                continue
            value = entry.get("value")
            if type(value) is not str:
                return False
            known = shared.get(value)
            if known is None:
                try:
                    Quantity.from_json(value)
                except QuantityError:
                    return False
                known = shared[value] = entry
            amounts[name] = known
        return True

    def _plain_counters(self, consumed: Any) -> bool:
        if consumed is None:
            return True
        return type(consumed) is list and all(
            type(entry) is dict
            and entry.keys() == {"counterSet", "counters"}
            and type(entry["counterSet"]) is str
            and self._share_amounts(entry["counters"])
            for entry in consumed
        )

    def node(self, raw: dict[str, Any]) -> Node | Mismatch:
        """A node, or its first value of a wrong type."""
        return mismatch(raw, "Node", "v1") or Node.from_json(raw)

    def claim(self, raw: dict[str, Any], version: str) -> ResourceClaim | Mismatch:
        """A claim of any version, or its first value of a wrong type."""
        return self._claims.claim(raw, version)
