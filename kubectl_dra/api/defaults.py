"""What the API server fills in and drops when an object is created, in any served version.

Defaults: SetDefaults functions of resource.k8s.io. Dropping: fields of features that are off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubectl_dra.api.versions import GROUP

EXACT_COUNT = "ExactCount"


def defaulted(raw: Mapping[str, Any], now: str | None = None) -> dict[str, Any]:
    """A copy of the object with the API server's defaults; the input is not changed.

    Works on the object's own version, because a v1beta1 request without a class gets no defaults while
    the same request in v1 does. ``now`` (RFC 3339) is what missing ``timeAdded`` of taints become; without
    it they stay missing. Objects of other groups and kinds are returned as they are.
    """
    group, _, version = str(raw.get("apiVersion")).partition("/")
    if group != GROUP or not raw.get("spec"):
        return dict(raw)
    flat = version in ("v1beta1", "v1alpha3")
    spec = raw["spec"]
    kind = raw.get("kind")
    if kind == "ResourceClaim":
        spec = _claim(spec, flat)
    elif kind == "ResourceClaimTemplate":
        spec = {**spec, "spec": _claim(spec["spec"], flat)} if spec.get("spec") else spec
    elif kind == "ResourceSlice":
        spec = _slice(spec, flat, now)
    elif kind == "DeviceTaintRule" and spec.get("taint"):
        spec = {**spec, "taint": _taint(spec["taint"], now)}
    return {**raw, "spec": spec}


def without_disabled(raw: Mapping[str, Any], features: Iterable[str]) -> dict[str, Any]:
    """A copy of a new v1 object without the fields whose feature gates are not in ``features``.

    The server drops them silently before validation unless the stored object already used them.
    """
    on = frozenset(features)
    kind, spec = raw.get("kind"), raw.get("spec")
    if not spec:
        return dict(raw)
    if kind == "ResourceClaim":
        spec = _claim_without(spec, on)
    elif kind == "ResourceClaimTemplate" and spec.get("spec"):
        spec = {**spec, "spec": _claim_without(spec["spec"], on)}
    elif kind == "ResourceSlice":
        spec = _slice_without(spec, on)
    elif kind == "DeviceClass" and "DRAExtendedResource" not in on:
        spec = _without(spec, ("extendedResourceName",))
    return {**raw, "spec": spec}


def _claim(spec: Mapping[str, Any], flat: bool) -> dict[str, Any]:
    return _with_requests(spec, lambda request: _request(request, flat))


def _with_requests(spec: Mapping[str, Any], change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    devices = spec.get("devices")
    if not devices or not devices.get("requests"):
        return dict(spec)
    return {
        **spec,
        "devices": {**devices, "requests": [change(entry or {}) for entry in devices["requests"]]},
    }


def _request(raw: Mapping[str, Any], flat: bool) -> dict[str, Any]:
    out = dict(raw)
    if not flat:
        if out.get("exactly") is not None:
            out["exactly"] = _counted(out["exactly"])
    elif out.get("deviceClassName"):
        out = _counted(out)
    elif out.get("tolerations"):
        out["tolerations"] = _tolerations(out["tolerations"])
    if out.get("firstAvailable"):
        out["firstAvailable"] = [_counted(entry or {}) for entry in out["firstAvailable"]]
    return out


def _counted(raw: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(raw)
    if not out.get("allocationMode"):
        out["allocationMode"] = EXACT_COUNT
    if out["allocationMode"] == EXACT_COUNT and not out.get("count"):
        out["count"] = 1
    if out.get("tolerations"):
        out["tolerations"] = _tolerations(out["tolerations"])
    return out


def _tolerations(raw: Iterable[Mapping[str, Any] | None]) -> list[dict[str, Any]]:
    return [{**(entry or {}), "operator": (entry or {}).get("operator") or "Equal"} for entry in raw]


def _taint(raw: Mapping[str, Any], now: str | None) -> dict[str, Any]:
    return {**raw, "timeAdded": now} if now and not raw.get("timeAdded") else dict(raw)


def _slice(spec: Mapping[str, Any], flat: bool, now: str | None) -> dict[str, Any]:
    if not spec.get("devices"):
        return dict(spec)
    devices = []
    for device in spec["devices"]:
        if not flat:
            devices.append(_device(device or {}, now))
        else:
            basic = (device or {}).get("basic")
            devices.append({**(device or {}), "basic": _device(basic, now)} if basic else dict(device or {}))
    return {**spec, "devices": devices}


def _device(raw: Mapping[str, Any], now: str | None) -> dict[str, Any]:
    out = dict(raw)
    if now and out.get("taints"):
        out["taints"] = [_taint(taint or {}, now) for taint in out["taints"]]
    mappings = out.get("nodeAllocatableResourceMappings")
    if mappings:
        out["nodeAllocatableResourceMappings"] = {
            name: {**(entry or {}), "allocationMultiplier": (entry or {}).get("allocationMultiplier") or "1"}
            for name, entry in mappings.items()
        }
    return out


def _without(raw: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    gone = frozenset(names)
    return {key: value for key, value in raw.items() if key not in gone}


# Gate -> fields that go when it is off.
_REQUEST_FIELDS = {
    "DRAAdminAccess": ("adminAccess",),
    "DRADeviceTaints": ("tolerations",),
    "DRAConsumableCapacity": ("capacity",),
    "DRADerivedAttributes": ("derivedAttributes",),
}
_SLICE_FIELDS = {
    "DRAPartitionableDevices": ("sharedCounters", "perDeviceNodeSelection"),
    "DRAPartitionableDevicesType": ("partitionTypeAttribute",),
    "DRAOptionalNodeOperations": ("skipNodeOperations",),
}
_DEVICE_FIELDS = {
    "DRAPartitionableDevices": ("consumesCounters", "nodeName", "nodeSelector", "allNodes"),
    "DRADeviceTaints": ("taints",),
    "DRAConsumableCapacity": ("allowMultipleAllocations",),
    "DRADeviceBindingConditions": ("bindsToNode", "bindingConditions", "bindingFailureConditions"),
    "DRAResourceClaimDeviceStatus": ("bindsToNode", "bindingConditions", "bindingFailureConditions"),
    "DRANodeAllocatableResources": ("nodeAllocatableResourceMappings", "nodeAllocatableResources"),
}


def _off(table: Mapping[str, tuple[str, ...]], on: frozenset[str]) -> list[str]:
    return [name for gate, names in table.items() if gate not in on for name in names]


def _claim_without(spec: Mapping[str, Any], on: frozenset[str]) -> dict[str, Any]:
    gone = _off(_REQUEST_FIELDS, on)

    def change(request: Mapping[str, Any]) -> dict[str, Any]:
        out = dict(request)
        if "DRAPrioritizedList" not in on:
            out.pop("firstAvailable", None)
        if out.get("exactly") is not None:
            out["exactly"] = _without(out["exactly"], gone)
        if out.get("firstAvailable"):
            out["firstAvailable"] = [_without(entry or {}, gone) for entry in out["firstAvailable"]]
        return out

    out = _with_requests(spec, change)
    constraints = (out.get("devices") or {}).get("constraints")
    if constraints and "DRAConsumableCapacity" not in on:
        reduced = [_without(entry or {}, ("distinctAttribute",)) for entry in constraints]
        out["devices"] = {**out["devices"], "constraints": reduced}
    return out


def _slice_without(spec: Mapping[str, Any], on: frozenset[str]) -> dict[str, Any]:
    out = _without(spec, _off(_SLICE_FIELDS, on))
    gone = _off(_DEVICE_FIELDS, on)
    if out.get("devices"):
        out["devices"] = [_device_without(device or {}, gone, on) for device in out["devices"]]
    return out


def _device_without(device: Mapping[str, Any], gone: Iterable[str], on: frozenset[str]) -> dict[str, Any]:
    out = _without(device, gone)
    if "DRAConsumableCapacity" not in on and out.get("capacity"):
        out["capacity"] = {name: _without(entry or {}, ("requestPolicy",)) for name, entry in out["capacity"].items()}
    if "DRAListTypeAttributes" not in on and out.get("attributes"):
        out["attributes"] = {
            name: _without(entry or {}, ("ints", "bools", "strings", "versions"))
            for name, entry in out["attributes"].items()
        }
    if "DRADeviceCompatibilityGroups" not in on and out.get("consumesCounters"):
        out["consumesCounters"] = [_without(entry or {}, ("compatibilityGroups",)) for entry in out["consumesCounters"]]
    return out
