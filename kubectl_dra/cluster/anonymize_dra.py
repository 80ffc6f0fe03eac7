"""Replaces names in objects of resource.k8s.io."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.cluster.anonymize_parts import LEFT_OUT, Changes, Json, Parts

_OPERATIONS: Final = frozenset(("NodePrepareResources", "NodeUnprepareResources", "*"))


class DraParts(Parts):
    """Slices, classes, claims, templates and rules."""

    def slice(self, spec: Mapping[str, Any]) -> Json:
        """The spec of a ResourceSlice."""
        kept = ("allNodes", "perDeviceNodeSelection")
        pool: Changes = {"name": lambda name: self._new.names.of("pool", name or "")}
        changes: Changes = {
            "driver": self._new.driver,
            "pool": lambda raw: self._fields(raw, pool, ("generation", "resourceSliceCount")),
            "nodeName": lambda name: self._new.names.of("node", name),
            "nodeSelector": self._node_selector,
            "sharedCounters": self._each(self._counters),
            "devices": self._each(self._device),
            "skipNodeOperations": self._each(self._operation),
            "partitionTypeAttribute": self._new.qualified,
        }
        return self._fields(spec, changes, kept)

    def _operation(self, name: str) -> str:
        return name if name in _OPERATIONS else self._new.plain("operation", name)

    def _device(self, raw: Mapping[str, Any]) -> Json:
        if "basic" in raw:
            return {"name": self._new.names.embedded(raw.get("name") or ""), "basic": self._device(raw["basic"] or {})}
        kept = ("allNodes", "bindsToNode", "allowMultipleAllocations")
        changes: Changes = {
            "name": self._new.names.embedded,
            "attributes": lambda entries: {
                self._new.qualified(name): self._new.attribute(name, entry) for name, entry in entries.items()
            },
            "nodeName": lambda name: self._new.names.of("node", name),
            "nodeSelector": self._node_selector,
            "taints": self._each(self._taint),
            "consumesCounters": self._each(self._counters),
            "capacity": self._named(self._kept),
            "bindingConditions": self._each(lambda name: self._new.plain("condition", name)),
            "bindingFailureConditions": self._each(lambda name: self._new.plain("condition", name)),
            "nodeAllocatableResources": self._of_node,
            "nodeAllocatableResourceMappings": self._of_node,
        }
        return self._fields(raw, changes, kept)

    def _of_node(self, raw: Mapping[str, Any]) -> Json:
        """What a device takes of its node's own resources, as 1.36 and 1.37 say it."""
        amounts = ("capacityMultiplier", "deviceMultiplier", "allocationMultiplier", "perPod", "perContainer")
        changes: Changes = {"capacityKey": self._new.qualified}
        changes |= {part: lambda inner: self._fields(inner, changes, amounts) for part in ("mapping", "overhead")}
        return {self._new.resource(name): self._fields(entry, changes, amounts) for name, entry in raw.items()}

    def _counters(self, raw: Mapping[str, Any]) -> Json:
        """A set of counters, or what a device consumes of one."""
        changes: Changes = {
            "name": self._new.names.embedded,
            "counterSet": self._new.names.embedded,
            "counters": self._named(self._kept),
            "compatibilityGroups": self._each(lambda name: self._new.plain("group", name)),
        }
        return self._fields(raw, changes, ())

    def rule(self, spec: Mapping[str, Any]) -> Json:
        """The spec of a DeviceTaintRule."""
        selector: Changes = {
            "driver": self._new.driver,
            "pool": lambda name: self._new.names.of("pool", name),
            "device": self._new.names.embedded,
            "deviceClassName": self._new.device_class,
            "selectors": self._each(self._selector),
        }
        changes: Changes = {
            "deviceSelector": lambda raw: self._fields(raw, selector, ()),
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
            "constraints": self._each(self._constraint),
            "config": self._each(self._config),
        }
        return self._fields(spec, {"devices": lambda devices: self._fields(devices, inner, ())}, ())

    def _constraint(self, raw: Mapping[str, Any]) -> Json:
        changes: Changes = {
            "requests": self._each(self._new.request),
            "matchAttribute": self._new.qualified,
            "distinctAttribute": self._new.qualified,
        }
        return self._fields(raw, changes, ())

    def _request(self, raw: Mapping[str, Any]) -> Json:
        derived: Changes = {"name": self._new.qualified, "expression": self._new.expression}
        changes: Changes = {
            "deviceClassName": self._new.device_class,
            "selectors": self._each(self._selector),
            "tolerations": self._each(self._taint),
            "exactly": self._request,
            "firstAvailable": self._each(self._request),
            "name": self._new.request,
            "capacity": lambda raw: self._fields(raw, {"requests": self._named(self._kept)}, ()),
            "derivedAttributes": self._each(lambda raw: self._fields(raw, derived, ())),
        }
        return self._fields(raw, changes, ("allocationMode", "count", "adminAccess"))

    def _selector(self, raw: Any) -> Any:
        cel = raw.get("cel") if isinstance(raw, Mapping) else None
        if not isinstance(cel, Mapping) or not isinstance(cel.get("expression"), str):
            return raw
        return {"cel": {"expression": self._new.expression(cel["expression"])}}

    def _config(self, raw: Mapping[str, Any]) -> Json:
        """Configuration for a driver: which requests it is for, without its content."""

        def opaque(entry: Mapping[str, Any]) -> Json:
            return {"driver": self._new.driver(entry.get("driver") or ""), "parameters": {LEFT_OUT: True}}

        return self._fields(raw, {"opaque": opaque, "requests": self._each(self._new.request)}, ("source",))

    def _allocation(self, raw: Mapping[str, Any]) -> Json:
        inner: Changes = {"results": self._each(self._result), "config": self._each(self._config)}
        changes: Changes = {
            "nodeSelector": self._node_selector,
            "devices": lambda devices: self._fields(devices, inner, ()),
        }
        return self._fields(raw, changes, ("allocationTimestamp",))

    def _result(self, raw: Mapping[str, Any]) -> Json:
        changes: Changes = {
            "request": self._new.request,
            "driver": self._new.driver,
            "consumedCapacity": self._named(self._kept),
            "bindingConditions": self._each(lambda name: self._new.plain("condition", name)),
            "bindingFailureConditions": self._each(lambda name: self._new.plain("condition", name)),
            "pool": lambda name: self._new.names.of("pool", name),
            "device": self._new.names.embedded,
            "shareID": self._new.names.scrambled,
            "skipNodeOperations": self._each(self._operation),
            "tolerations": self._each(self._taint),
            "conditions": self._each(self._condition),
        }
        return self._fields(raw, changes, ("adminAccess",))

    def _consumer(self, raw: Mapping[str, Any]) -> Json:
        category = {"pods": "pod", "podgroups": "podgroup"}.get(raw.get("resource") or "", "owner")
        changes: Changes = {"name": lambda name: self._new.names.of(category, name), "uid": self._new.names.scrambled}
        return self._fields(raw, changes, ("resource", "apiGroup"))
