"""Replaces names in objects of resource.k8s.io."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_dra.cluster.anonymize_parts import LEFT_OUT, Changes, Json, Parts


class DraParts(Parts):
    """Slices, classes, claims, templates and rules."""

    def slice(self, spec: Mapping[str, Any]) -> Json:
        """The spec of a ResourceSlice."""
        kept = ("driver", "allNodes", "perDeviceNodeSelection")
        changes: Changes = {
            "pool": lambda pool: {**pool, "name": self._new.names.of("pool", pool.get("name") or "")},
            "nodeName": lambda name: self._new.names.of("node", name),
            "nodeSelector": self._node_selector,
            "sharedCounters": self._each(
                lambda entry: {**entry, "name": self._new.names.embedded(entry.get("name") or "")}
            ),
            "devices": self._each(self._device),
        }
        return self._fields(spec, changes, kept)

    def _device(self, raw: Mapping[str, Any]) -> Json:
        if "basic" in raw:
            return {"name": self._new.names.embedded(raw.get("name") or ""), "basic": self._device(raw["basic"] or {})}
        kept = (
            "capacity",
            "allNodes",
            "bindsToNode",
            "bindingConditions",
            "bindingFailureConditions",
            "allowMultipleAllocations",
        )
        changes: Changes = {
            "name": self._new.names.embedded,
            "attributes": lambda entries: {name: self._new.attribute(name, entry) for name, entry in entries.items()},
            "nodeName": lambda name: self._new.names.of("node", name),
            "nodeSelector": self._node_selector,
            "taints": self._each(self._taint),
            "consumesCounters": self._each(
                lambda entry: {**entry, "counterSet": self._new.names.embedded(entry.get("counterSet") or "")}
            ),
        }
        return self._fields(raw, changes, kept)

    def rule(self, spec: Mapping[str, Any]) -> Json:
        """The spec of a DeviceTaintRule."""
        selector: Changes = {
            "pool": lambda name: self._new.names.of("pool", name),
            "device": self._new.names.embedded,
            "deviceClassName": self._new.device_class,
            "selectors": self._each(self._selector),
        }
        changes: Changes = {
            "deviceSelector": lambda raw: self._fields(raw, selector, ("driver",)),
            "taint": self._taint,
        }
        return self._fields(spec, changes, ())

    def class_spec(self, spec: Mapping[str, Any]) -> Json:
        """The spec of a DeviceClass."""
        changes: Changes = {
            "selectors": self._each(self._selector),
            "config": self._each(self._config),
            "extendedResourceName": self._new.resource,
            "suitableNodes": self._node_selector,
        }
        return self._fields(spec, changes, ())

    def claim(self, raw: Mapping[str, Any]) -> Json:
        """Spec and status of a ResourceClaim."""
        status = raw.get("status") or {}
        out: Json = {"spec": self.claim_spec(raw.get("spec") or {})}
        kept: Json = {}
        if status.get("allocation"):
            kept["allocation"] = self._allocation(status["allocation"])
        if status.get("reservedFor"):
            kept["reservedFor"] = [self._consumer(entry) for entry in status["reservedFor"]]
        if status.get("devices"):
            kept["devices"] = [
                self._result({key: entry[key] for key in entry if key not in ("data", "networkData")})
                for entry in status["devices"]
            ]
        return {**out, "status": kept} if kept else out

    def claim_spec(self, spec: Mapping[str, Any]) -> Json:
        """The spec of a claim, or the inner one of a template."""
        inner: Changes = {
            "requests": self._each(self._request),
            "constraints": lambda entries: entries,
            "config": self._each(self._config),
        }
        return self._fields(spec, {"devices": lambda devices: self._fields(devices, inner, ())}, ())

    def _request(self, raw: Mapping[str, Any]) -> Json:
        changes: Changes = {
            "deviceClassName": self._new.device_class,
            "selectors": self._each(self._selector),
            "tolerations": self._each(self._taint),
            "exactly": self._request,
            "firstAvailable": self._each(self._request),
        }
        return self._fields(raw, changes, ("name", "allocationMode", "count", "adminAccess", "capacity"))

    def _selector(self, raw: Any) -> Any:
        cel = raw.get("cel") if isinstance(raw, Mapping) else None
        if not isinstance(cel, Mapping) or not isinstance(cel.get("expression"), str):
            return raw
        return {"cel": {"expression": self._new.expression(cel["expression"])}}

    def _config(self, raw: Mapping[str, Any]) -> Json:
        """Configuration for a driver: which requests it is for, without its content."""

        def opaque(entry: Mapping[str, Any]) -> Json:
            return {"driver": entry.get("driver") or "", "parameters": {LEFT_OUT: True}}

        return self._fields(raw, {"opaque": opaque}, ("requests", "source"))

    def _allocation(self, raw: Mapping[str, Any]) -> Json:
        inner: Changes = {"results": self._each(self._result), "config": self._each(self._config)}
        changes: Changes = {
            "nodeSelector": self._node_selector,
            "devices": lambda devices: self._fields(devices, inner, ()),
        }
        return self._fields(raw, changes, ("allocationTimestamp",))

    def _result(self, raw: Mapping[str, Any]) -> Json:
        kept = ("request", "driver", "adminAccess", "consumedCapacity", "bindingConditions", "bindingFailureConditions")
        changes: Changes = {
            "pool": lambda name: self._new.names.of("pool", name),
            "device": self._new.names.embedded,
            "shareID": self._new.names.scrambled,
            "tolerations": self._each(self._taint),
            "conditions": self._each(self._condition),
        }
        return self._fields(raw, changes, kept)

    def _consumer(self, raw: Mapping[str, Any]) -> Json:
        category = {"pods": "pod", "podgroups": "podgroup"}.get(raw.get("resource") or "", "owner")
        changes: Changes = {"name": lambda name: self._new.names.of(category, name), "uid": self._new.names.scrambled}
        return self._fields(raw, changes, ("resource", "apiGroup"))
