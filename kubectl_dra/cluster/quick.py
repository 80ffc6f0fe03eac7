"""Raw objects to typed ones for clusters with 100,000 devices: what is alike is checked, read and kept once.

The checks here decide whether all types are right for the fields that nearly all objects have, and leave
everything else to ``api.decoding``. Equal attribute and capacity values, equal devices, equal lists of devices and
equal claim specs become one object each. Objects that come in may be changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_dra.api.claims import Allocation, Consumer, DeviceResult, ResourceClaim, spec_fields
from kubectl_dra.api.conversion import reshaped
from kubectl_dra.api.decoding import Mismatch, mismatch, struct_mismatch
from kubectl_dra.api.meta import EMPTY, ObjectMeta
from kubectl_dra.api.nodes import Node, NodeSelector, NodeTaint
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.slices import Device, DeviceID, Individual, ResourceSlice
from kubectl_dra.cluster.individual import give_back, individual_names, take_individual

_SIMPLE: Final = {"string": str, "int": int, "bool": bool, "version": str}
_HANDLED: Final = frozenset(("name", "attributes", "capacity", "consumesCounters", "taints"))
_SPEC: Final = frozenset(("driver", "nodeName", "pool", "devices"))
_POOL: Final = {"name": str, "generation": int, "resourceSliceCount": int}
_RESULT: Final = frozenset(("request", "driver", "pool", "device"))
_STATUS: Final = frozenset(("allocation", "reservedFor"))
_ALLOCATION: Final = frozenset(("devices", "nodeSelector"))
_NOT_TEXT: Final = frozenset(
    (
        "generation",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "managedFields",
    )
)
_SAME: Final = ("v1", "v1beta2")
"""Versions with the same shapes."""

SAMPLE: Final = 32
"""Slices of a driver from which is learned which attributes are a device's own."""

_KEPT: Final = 20_000
"""How many different things of one kind are remembered, to find equal ones."""


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
        self._lists: dict[tuple[str, bytes], tuple[Device, ...]] = {}
        self._samples: dict[str, list[Sequence[Mapping[str, Any]]]] = {}
        self._individual: dict[str, tuple[str, ...]] = {}
        self._specs: dict[tuple[str, bytes], dict[str, Any]] = {}
        self._allocatable: dict[tuple[Any, ...], Mapping[str, Any]] = {}

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
        if spec.keys() - _SPEC or not _plain_meta(raw.get("metadata")):
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
        key = (driver, _dumped(raw))
        known = self._lists.get(key)
        if known is None:
            if individual is not None:
                give_back(raw, individual)
            known = self._new_devices(driver, raw)
            if known is None:
                return None
            if key[1] and len(self._lists) < _KEPT:
                self._lists[key] = known
        return known, individual

    def _new_devices(self, driver: str, raw: list[Any]) -> tuple[Device, ...] | None:
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

    def _is_plain_device(self, device: Mapping[str, Any]) -> bool:
        attributes, capacity = device.get("attributes"), device.get("capacity")
        if attributes is not None and not self._share_attributes(attributes):
            return False
        if capacity is not None and not self._share_amounts(capacity):
            return False
        if device.keys() <= _HANDLED:
            return self._plain_counters(device.get("consumesCounters")) and _plain_taints(device.get("taints"))
        rest = {key: device[key] for key in device if key not in ("name", "attributes", "capacity")}
        return struct_mismatch(rest, "Device") is None

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

    def _share_amounts(self, amounts: Any) -> bool:
        if type(amounts) is not dict:
            return False
        shared = self._amounts
        for name, entry in amounts.items():
            if type(entry) is not dict or len(entry) != 1:
                return False
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
        status, spec = raw.get("status"), raw.get("spec", EMPTY)
        if (
            type(status) is not dict
            or not _plain_meta(raw.get("metadata"))
            or not isinstance(spec, dict)
            or not _plain_taints(spec.get("taints"))
            or type(spec.get("unschedulable", False)) is not bool
            or type(status.get("nodeInfo", EMPTY)) is not dict
            or type(status.get("conditions", [])) is not list
        ):
            return self._slow_node(raw)
        ready: bool | None = None
        for condition in status.get("conditions", ()):
            if type(condition) is not dict or not all(type(value) is str for value in condition.values()):
                return self._slow_node(raw)
            if condition.get("type") == "Ready":
                ready = condition.get("status") == "True"
        allocatable = self._shared_allocatable(status.get("allocatable", EMPTY))
        if allocatable is None:
            return self._slow_node(raw)
        meta, texts = raw["metadata"], self._texts
        labels: dict[str, str] = meta.get("labels") or {}
        for key, value in labels.items():
            labels[key] = texts.setdefault(value, value)
        taints = spec.get("taints") or ()
        return Node(
            name=self._text(meta.get("name") or ""),
            labels=labels,
            allocatable=allocatable,
            unschedulable=bool(spec.get("unschedulable")),
            ready=ready,
            taints=tuple(
                NodeTaint(taint.get("key") or "", taint.get("value") or "", taint.get("effect") or "")
                for taint in taints
            ),
        )

    def _slow_node(self, raw: dict[str, Any]) -> Node | Mismatch:
        return mismatch(raw, "Node", "v1") or Node.from_json(raw)

    def _shared_allocatable(self, amounts: Any) -> Mapping[str, Any] | None:
        """Equal amounts as one object; None if the slow check has to look."""
        if not isinstance(amounts, dict):
            return None
        key = tuple(amounts.items())
        try:
            known = self._allocatable.get(key)
        except TypeError:
            return None
        if known is None:
            if not all(type(value) is str for value in amounts.values()):
                return None
            if struct_mismatch({"allocatable": amounts}, "NodeStatus") is not None:
                return None
            known = amounts
            if len(self._allocatable) < _KEPT:
                self._allocatable[key] = known
        return known

    def claim(self, raw: dict[str, Any], version: str) -> ResourceClaim | Mismatch:
        """A claim of any version, or its first value of a wrong type."""
        found = self._quick_claim(raw, version) if version in _SAME else None
        if found is not None:
            return found
        wrong = mismatch(raw, "ResourceClaim", version)
        return ResourceClaim.from_json(reshaped(raw)) if wrong is None else wrong

    def _quick_claim(self, raw: dict[str, Any], version: str) -> ResourceClaim | None:
        """A claim without anything rare in its status; None if the slow check has to look."""
        status = raw.get("status", EMPTY)
        if not _plain_meta(raw.get("metadata")) or type(raw.get("spec")) is not dict or not isinstance(status, dict):
            return None
        if status.keys() - _STATUS:
            return None
        allocation = None
        if status.get("allocation") is not None:
            allocation = self._quick_allocation(status["allocation"])
            if allocation is None:
                return None
        fields = self._shared_spec(raw["spec"], version)
        consumers = status.get("reservedFor", ())
        if fields is None or not _all_text(consumers):
            return None
        return ResourceClaim(
            metadata=ObjectMeta.from_json(raw["metadata"]),
            allocation=allocation,
            reserved_for=tuple(Consumer.from_json(entry) for entry in consumers),
            **fields,
        )

    def _quick_allocation(self, raw: Any) -> Allocation | None:
        if type(raw) is not dict or raw.keys() - _ALLOCATION:
            return None
        devices, selector = raw.get("devices"), raw.get("nodeSelector")
        if type(devices) is not dict or devices.keys() != {"results"} or not _all_text(devices["results"]):
            return None
        if selector is not None and struct_mismatch(selector, "NodeSelector") is not None:
            return None
        texts, results = self._texts, []
        for result in devices["results"]:
            if result.keys() != _RESULT:
                return None
            driver, pool, device, request = result["driver"], result["pool"], result["device"], result["request"]
            identity = DeviceID(
                texts.setdefault(driver, driver), texts.setdefault(pool, pool), texts.setdefault(device, device)
            )
            results.append(DeviceResult(texts.setdefault(request, request), identity, consumed_capacity=EMPTY))
        return Allocation(tuple(results), None if selector is None else NodeSelector.from_json(selector))

    def _shared_spec(self, spec: dict[str, Any], version: str) -> dict[str, Any] | None:
        key = (version, _dumped(spec))
        known = self._specs.get(key)
        if known is None:
            if struct_mismatch(spec, "ResourceClaimSpec", version) is not None:
                return None
            known = spec_fields(spec)
            if key[1] and len(self._specs) < _KEPT:
                self._specs[key] = known
        return known


def _dumped(value: Any) -> bytes:
    """A text that only equal values have; empty where there is none."""
    from orjson import dumps

    try:
        return dumps(value)
    except TypeError:
        return b""


def _plain_meta(meta: Any) -> bool:
    """Whether the types of ``metadata`` are surely right."""
    if type(meta) is not dict:
        return False
    for key, value in meta.items():
        kind = type(value)
        if kind is str and key not in _NOT_TEXT:
            continue
        if kind is dict and key in ("labels", "annotations") and all(type(text) is str for text in value.values()):
            continue
        if kind is not int or key != "generation":
            return struct_mismatch(meta, "ObjectMeta") is None
    return True


def _all_text(entries: Any) -> bool:
    """Whether it is a list of objects that hold nothing but text."""
    return isinstance(entries, list | tuple) and all(
        type(entry) is dict and all(type(value) is str for value in entry.values()) for entry in entries
    )


def _plain_taints(taints: Any) -> bool:
    return taints is None or _all_text(taints)
