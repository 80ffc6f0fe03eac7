"""Quick checks of ResourceSlices, for clusters with 100,000 devices.

They decide whether all types are right for the fields that nearly all devices have, and leave everything else
to ``api.fields``. Equal attribute and capacity values become one object each, which saves half of the memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.api.fields import Mismatch, mismatch, struct_mismatch
from kubectl_dra.api.quantity import Quantity, QuantityError

_SIMPLE: Final = {"string": str, "int": int, "bool": bool, "version": str}
_HANDLED: Final = frozenset(("name", "attributes", "capacity", "consumesCounters", "taints"))


class SliceChecker:
    """Checks raw slices in turn, and shares equal values among all of them (so it changes them in place)."""

    def __init__(self) -> None:
        self._attributes: dict[tuple[str, type, Any], dict[str, Any]] = {}
        # Quantity text -> the object {"value": text}.
        self._amounts: dict[str, dict[str, Any]] = {}

    def mismatch(self, raw: dict[str, Any], version: str) -> Mismatch | None:
        """The first value of a wrong type in a slice of any version; None if there is none."""
        return None if self._is_plain(raw, version) else mismatch(raw, "ResourceSlice", version)

    def _is_plain(self, raw: dict[str, Any], version: str) -> bool:
        """Whether all types are right; False means that the slow check has to look."""
        spec = raw.get("spec")
        if type(spec) is not dict or type(raw.get("metadata")) is not dict or version == "v1alpha3":
            return False
        devices = spec.get("devices")
        if devices is not None and type(devices) is not list:
            return False
        wrapped = version == "v1beta1"
        for device in devices or ():
            if type(device) is not dict or type(device.get("name")) is not str:
                return False
            if wrapped:
                device = device.get("basic")
                if type(device) is not dict:
                    return False
            if not self._is_plain_device(device):
                return False
        around = {key: spec[key] for key in spec if key != "devices"}
        return mismatch({"metadata": raw["metadata"], "spec": around}, "ResourceSlice", version) is None

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


def _plain_taints(taints: Any) -> bool:
    if taints is None:
        return True
    return type(taints) is list and all(
        type(taint) is dict and all(type(value) is str for value in taint.values()) for taint in taints
    )
