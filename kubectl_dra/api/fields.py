"""The fields of DRA kinds per API version, with their JSON types: one table for every walk over raw objects.

It decides how the API server prints an object (which empty fields stay), what a strict server calls an
unknown field, and which field has the wrong type. Fields of releases up to 1.37 are listed.

A type is written as in the API's Go types: ``T`` always printed, ``T?`` left out when empty, ``*T`` printed
when set, ``[]T`` and ``{}T`` a list and a map left out when empty. ``!`` behind a list or pointer: printed as
null instead of being left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from kubectl_dra.api.quantity import Quantity, QuantityError

FieldPath = tuple[str | int, ...]
"""Keys and list indices from the object's root."""

_SCALARS: Final = frozenset(("string", "int", "bool", "quantity", "time", "any", "object"))

_REQUEST: Final = {
    "deviceClassName": "string",
    "selectors": "[]DeviceSelector",
    "allocationMode": "string?",
    "count": "int?",
    "adminAccess": "*bool",
    "tolerations": "[]DeviceToleration",
    "capacity": "*CapacityRequirements",
    "derivedAttributes": "[]DerivedAttribute",
}
_SUBREQUEST: Final = {"name": "string"} | {key: _REQUEST[key] for key in _REQUEST if key != "adminAccess"}
_DEVICE: Final = {
    "attributes": "{}DeviceAttribute",
    "capacity": "{}DeviceCapacity",
    "consumesCounters": "[]DeviceCounterConsumption",
    "nodeName": "*string",
    "nodeSelector": "*NodeSelector",
    "allNodes": "*bool",
    "taints": "[]DeviceTaint",
    "bindsToNode": "*bool",
    "bindingConditions": "[]string",
    "bindingFailureConditions": "[]string",
    "allowMultipleAllocations": "*bool",
    "nodeAllocatableResourceMappings": "{}NodeAllocatableResourceMapping",
    "nodeAllocatableResources": "{}NodeAllocatableResource",
}
_SLICE_SPEC: Final = {
    "driver": "string",
    "pool": "ResourcePool",
    "nodeName": "*string",
    "nodeSelector": "*NodeSelector",
    "allNodes": "*bool",
    "devices": "[]Device",
    "perDeviceNodeSelection": "*bool",
    "sharedCounters": "[]CounterSet",
    "partitionTypeAttribute": "*string",
    "skipNodeOperations": "[]string",
}

# The shapes of v1, and of v1beta2, which are the same.
_STRUCTS: Final[Mapping[str, Mapping[str, str]]] = {
    "DeviceClass": {"spec": "DeviceClassSpec"},
    "DeviceClassSpec": {
        "selectors": "[]DeviceSelector",
        "config": "[]DeviceConfiguration",
        "extendedResourceName": "*string",
    },
    "DeviceSelector": {"cel": "*CELDeviceSelector"},
    "CELDeviceSelector": {"expression": "string"},
    "DeviceConfiguration": {"opaque": "*OpaqueDeviceConfiguration"},
    "OpaqueDeviceConfiguration": {"driver": "string", "parameters": "any"},
    "ResourceClaim": {"spec": "ResourceClaimSpec", "status": "*ResourceClaimStatus"},
    "ResourceClaimSpec": {"devices": "DeviceClaim"},
    "DeviceClaim": {
        "requests": "[]DeviceRequest!",
        "constraints": "[]DeviceConstraint",
        "config": "[]DeviceClaimConfiguration",
    },
    "DeviceRequest": {
        "name": "string",
        "exactly": "*ExactDeviceRequest",
        "firstAvailable": "[]DeviceSubRequest",
    },
    "ExactDeviceRequest": _REQUEST,
    "DeviceSubRequest": _SUBREQUEST,
    "CapacityRequirements": {"requests": "{}quantity"},
    "DerivedAttribute": {"name": "string", "expression": "string"},
    "DeviceToleration": {
        "key": "string?",
        "operator": "string?",
        "value": "string?",
        "effect": "string?",
        "tolerationSeconds": "*int",
    },
    "DeviceConstraint": {
        "requests": "[]string",
        "matchAttribute": "*string",
        "distinctAttribute": "*string",
    },
    "DeviceClaimConfiguration": {"requests": "[]string", "opaque": "*OpaqueDeviceConfiguration"},
    "ResourceClaimStatus": {
        "allocation": "*AllocationResult",
        "reservedFor": "[]ResourceClaimConsumerReference",
        "devices": "[]AllocatedDeviceStatus",
    },
    "AllocationResult": {
        "devices": "DeviceAllocationResult",
        "nodeSelector": "*NodeSelector",
        "allocationTimestamp": "*time",
    },
    "DeviceAllocationResult": {
        "results": "[]DeviceRequestAllocationResult",
        "config": "[]DeviceAllocationConfiguration",
    },
    "DeviceRequestAllocationResult": {
        "request": "string",
        "driver": "string",
        "pool": "string",
        "device": "string",
        "adminAccess": "*bool",
        "tolerations": "[]DeviceToleration",
        "bindingConditions": "[]string",
        "bindingFailureConditions": "[]string",
        "shareID": "*string",
        "consumedCapacity": "{}quantity",
        "skipNodeOperations": "[]string",
    },
    "DeviceAllocationConfiguration": {
        "source": "string",
        "requests": "[]string",
        "opaque": "*OpaqueDeviceConfiguration",
    },
    "ResourceClaimConsumerReference": {
        "apiGroup": "string?",
        "resource": "string",
        "name": "string",
        "uid": "string",
    },
    "AllocatedDeviceStatus": {
        "driver": "string",
        "pool": "string",
        "device": "string",
        "shareID": "*string",
        "conditions": "[]Condition!",
        "data": "*any",
        "networkData": "*NetworkDeviceData",
    },
    "Condition": {
        "type": "string",
        "status": "string",
        "observedGeneration": "int?",
        "lastTransitionTime": "time",
        "reason": "string",
        "message": "string",
    },
    "NetworkDeviceData": {"interfaceName": "string?", "ips": "[]string", "hardwareAddress": "string?"},
    "ResourceClaimTemplate": {"spec": "ResourceClaimTemplateSpec"},
    "ResourceClaimTemplateSpec": {"metadata": "ClaimMetadata", "spec": "ResourceClaimSpec"},
    "ClaimMetadata": {"labels": "{}string", "annotations": "{}string"},
    "ResourceSlice": {"spec": "ResourceSliceSpec"},
    "ResourceSliceSpec": _SLICE_SPEC,
    "ResourcePool": {"name": "string", "generation": "int", "resourceSliceCount": "int"},
    "CounterSet": {"name": "string", "counters": "{}Counter"},
    "Counter": {"value": "quantity"},
    "Device": {"name": "string"} | _DEVICE,
    "DeviceAttribute": {
        "int": "*int",
        "bool": "*bool",
        "string": "*string",
        "version": "*string",
        "ints": "[]int",
        "bools": "[]bool",
        "strings": "[]string",
        "versions": "[]string",
    },
    "DeviceCapacity": {"value": "quantity", "requestPolicy": "*CapacityRequestPolicy"},
    "CapacityRequestPolicy": {
        "default": "*quantity!",
        "validValues": "[]quantity",
        "validRange": "*CapacityRequestPolicyRange",
    },
    "CapacityRequestPolicyRange": {"min": "*quantity", "max": "*quantity", "step": "*quantity"},
    "DeviceCounterConsumption": {
        "counterSet": "string",
        "counters": "{}Counter",
        "compatibilityGroups": "[]string",
    },
    "NodeAllocatableResourceMapping": {"capacityKey": "*string", "allocationMultiplier": "*quantity"},
    "NodeAllocatableResource": {
        "mapping": "*NodeAllocatableMapping",
        "overhead": "*NodeAllocatableOverhead",
    },
    "NodeAllocatableMapping": {
        "capacityKey": "*string",
        "capacityMultiplier": "*quantity",
        "deviceMultiplier": "*quantity",
    },
    "NodeAllocatableOverhead": {"perPod": "*quantity", "perContainer": "*quantity"},
    "DeviceTaint": {"key": "string", "value": "string?", "effect": "string", "timeAdded": "*time"},
    "NodeSelector": {"nodeSelectorTerms": "[]NodeSelectorTerm!"},
    "NodeSelectorTerm": {
        "matchExpressions": "[]NodeSelectorRequirement",
        "matchFields": "[]NodeSelectorRequirement",
    },
    "NodeSelectorRequirement": {"key": "string", "operator": "string", "values": "[]string"},
    "DeviceTaintRule": {"spec": "DeviceTaintRuleSpec", "status": "*DeviceTaintRuleStatus"},
    "DeviceTaintRuleSpec": {"deviceSelector": "*DeviceTaintSelector", "taint": "DeviceTaint"},
    "DeviceTaintSelector": {"driver": "*string", "pool": "*string", "device": "*string"},
    "DeviceTaintRuleStatus": {"conditions": "[]Condition"},
}

_V1BETA1: Final[Mapping[str, Mapping[str, str]]] = {
    "DeviceRequest": {"name": "string"} | _REQUEST | {"firstAvailable": "[]DeviceSubRequest"},
    "Device": {"name": "string", "basic": "*BasicDevice"},
    "BasicDevice": _DEVICE,
    "ResourceSliceSpec": _SLICE_SPEC | {"nodeName": "string?", "allNodes": "bool?"},
}
_V1ALPHA3: Final[Mapping[str, Mapping[str, str]]] = {
    **_V1BETA1,
    "BasicDevice": _DEVICE | {"capacity": "{}quantity"},
    "DeviceTaintSelector": {
        **_STRUCTS["DeviceTaintSelector"],
        "deviceClassName": "*string",
        "selectors": "[]DeviceSelector",
    },
    "DeviceClassSpec": {**_STRUCTS["DeviceClassSpec"], "suitableNodes": "*NodeSelector"},
    "ResourceClaimSpec": {"devices": "DeviceClaim", "controller": "string?"},
    "ResourceClaimStatus": {**_STRUCTS["ResourceClaimStatus"], "deallocationRequested": "bool?"},
    "AllocationResult": {**_STRUCTS["AllocationResult"], "controller": "string?"},
}
_OTHER_VERSIONS: Final = {"v1beta1": _V1BETA1, "v1alpha3": _V1ALPHA3}

# Of core/v1 only what is read here: these are no base for calling a field unknown.
_CORE: Final[Mapping[str, Mapping[str, str]]] = {
    "Pod": {"spec": "PodSpec", "status": "PodStatus"},
    "PodSpec": {
        "nodeName": "string",
        "schedulerName": "string",
        "priority": "*int",
        "schedulingGates": "[]Named",
        "schedulingGroup": "*object",
        "resourceClaims": "[]PodResourceClaim",
        "containers": "[]Container",
        "initContainers": "[]Container",
        "nodeSelector": "{}string",
        "affinity": "*object",
        "tolerations": "[]object",
        "topologySpreadConstraints": "[]object",
    },
    "Named": {"name": "string"},
    "PodResourceClaim": {
        "name": "string",
        "resourceClaimName": "*string",
        "resourceClaimTemplateName": "*string",
        "source": "*object",
    },
    "Container": {"name": "string", "resources": "ContainerResources", "restartPolicy": "*string"},
    "ContainerResources": {"requests": "{}quantity", "limits": "{}quantity", "claims": "[]ContainerClaim"},
    "ContainerClaim": {"name": "string", "request": "string"},
    "PodStatus": {
        "phase": "string",
        "conditions": "[]PodCondition",
        "resourceClaimStatuses": "[]PodClaimStatus",
        "extendedResourceClaimStatus": "*object",
    },
    "PodCondition": {
        "type": "string",
        "status": "string",
        "reason": "string",
        "message": "string",
        "lastTransitionTime": "*time",
    },
    "PodClaimStatus": {"name": "string", "resourceClaimName": "*string"},
    "Node": {"spec": "NodeSpec", "status": "NodeStatus"},
    "NodeSpec": {"unschedulable": "bool", "taints": "[]NodeTaint"},
    "NodeTaint": {"key": "string", "value": "string", "effect": "string"},
    "NodeStatus": {"allocatable": "{}quantity", "conditions": "[]PodCondition", "nodeInfo": "*object"},
}

_META: Final[Mapping[str, Mapping[str, str]]] = {
    "ObjectMeta": {
        "name": "string",
        "namespace": "string",
        "uid": "string",
        "generateName": "string",
        "resourceVersion": "string",
        "selfLink": "string",
        "generation": "int",
        "creationTimestamp": "*time",
        "deletionTimestamp": "*time",
        "deletionGracePeriodSeconds": "*int",
        "labels": "{}string",
        "annotations": "{}string",
        "finalizers": "[]string",
        "ownerReferences": "[]OwnerReference",
        "managedFields": "[]object",
    },
    "OwnerReference": {
        "apiVersion": "string",
        "kind": "string",
        "name": "string",
        "uid": "string",
        "controller": "*bool",
        "blockOwnerDeletion": "*bool",
    },
}

KINDS: Final = ("DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
"""The kinds of resource.k8s.io that every function here knows."""


class Field(NamedTuple):
    """A field's type: ``type`` is a scalar or a struct's name, ``container`` is "", "list" or "map"."""

    type: str
    container: str
    pointer: bool
    omit_empty: bool
    scalar: bool


class Mismatch(NamedTuple):
    """A value of the wrong type: where, what the API wants there, and what is there."""

    path: FieldPath
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{path_text(self.path)} must be {self.expected}, not {self.found}"


@cache
def fields(struct: str, version: str = "v1") -> Mapping[str, Field]:
    """The fields of a struct of the API in one version. Raises KeyError for an unknown struct."""
    table = _OTHER_VERSIONS.get(version, {}).get(struct) or _STRUCTS.get(struct)
    table = table or _CORE.get(struct) or _META[struct]
    return {name: _field(text) for name, text in table.items()}


def path_text(path: FieldPath) -> str:
    """A path as Kubernetes writes it: ``spec.devices[0].capacity[example.com/memory].value``."""
    out: list[str] = []
    for part in path:
        if isinstance(part, int) or not part or not part.replace("_", "a").replace("-", "a").isalnum():
            out.append(f"[{part}]")
        else:
            out.append(f".{part}" if out else part)
    return "".join(out)


def mismatch(raw: Any, kind: str, version: str = "v1") -> Mismatch | None:
    """The first value of a wrong type in an object of one of ``KINDS``, a Pod or a Node; else None.

    Null is allowed everywhere, as the API server allows it. Quantities must parse.
    """
    if not isinstance(raw, dict):
        return Mismatch((), "an object", _type_name(raw))
    found = _struct_mismatch(raw.get("metadata"), "ObjectMeta", "v1", ("metadata",))
    return found or _struct_mismatch(raw, kind, version, ())


def struct_mismatch(raw: Any, struct: str, version: str = "v1", path: FieldPath = ()) -> Mismatch | None:
    """As ``mismatch``, for one struct inside an object; ``path`` is where it is."""
    return _struct_mismatch(raw, struct, version, path)


def unknown_fields(raw: Mapping[str, Any], kind: str, version: str = "v1") -> Iterator[FieldPath]:
    """The fields outside ``metadata`` that the version does not have, in the object's order.

    Opaque parameters may hold anything. Values of wrong types are skipped.
    """
    table = {**fields(kind, version), "apiVersion": _STRING, "kind": _STRING, "metadata": _ANY}
    for name, value in raw.items():
        if name in table:
            yield from _unknown_below(value, table[name], version, (name,))
        else:
            yield (name,)


def canonical(raw: Mapping[str, Any], version: str = "v1") -> dict[str, Any]:
    """The object as the API server prints it back: empty fields left out, quantities and times normalised.

    ``metadata`` stays as it is, an empty ``status`` is left out, unknown fields are kept. The object must
    have the right types (see ``mismatch``) and one of ``KINDS``. The input is not changed.
    """
    head = {key: raw[key] for key in ("apiVersion", "kind", "metadata") if key in raw}
    body = _printed_struct({key: raw[key] for key in raw if key not in head}, raw["kind"], version)
    if not body.get("status"):
        body.pop("status", None)
    return {**head, **body}


def canonical_time(text: str) -> str:
    """An RFC 3339 time in UTC with whole seconds, as the API prints it; other text is returned unchanged."""
    if len(text) == 20 and text[19] == "Z":
        return text
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    if moment.tzinfo is None:
        return text
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _field(text: str) -> Field:
    always, text = text.endswith("!"), text.removesuffix("!")
    container = "list" if text.startswith("[]") else "map" if text.startswith("{}") else ""
    pointer = text.startswith("*")
    omit_empty = not always and (bool(container) or pointer or text.endswith("?"))
    name = text.lstrip("[]{}*").removesuffix("?")
    return Field(name, container, pointer, omit_empty, name in _SCALARS)


_STRING: Final = _field("string")
_ANY: Final = _field("any")


def _struct_mismatch(raw: Any, struct: str, version: str, path: FieldPath) -> Mismatch | None:
    if raw is None:
        return None
    if not isinstance(raw, dict):
        return Mismatch(path, "an object", _type_name(raw))
    table = fields(struct, version)
    for name, value in raw.items():
        field = table.get(name)
        if field is None or value is None:
            continue
        found = _value_mismatch(value, field, version, (*path, name))
        if found is not None:
            return found
    return None


def _value_mismatch(value: Any, field: Field, version: str, path: FieldPath) -> Mismatch | None:
    items: Iterator[tuple[str | int, Any]]
    if field.container == "list":
        if not isinstance(value, list):
            return Mismatch(path, "a list", _type_name(value))
        items = iter(enumerate(value))
    elif field.container == "map":
        if not isinstance(value, dict):
            return Mismatch(path, "an object", _type_name(value))
        items = iter(value.items())
    else:
        return _item_mismatch(value, field, version, path)
    for key, item in items:
        found = _item_mismatch(item, field, version, (*path, key))
        if found is not None:
            return found
    return None


def _item_mismatch(value: Any, field: Field, version: str, path: FieldPath) -> Mismatch | None:
    if not field.scalar:
        return _struct_mismatch(value, field.type, version, path)
    if value is None:
        return None
    wanted = _wanted(value, field.type)
    return None if wanted is None else Mismatch(path, wanted, _type_name(value))


def _wanted(value: Any, kind: str) -> str | None:
    """What the type wants instead of the value, or None when the value is fine."""
    if kind in ("string", "time"):
        return None if isinstance(value, str) else "a string"
    if kind == "bool":
        return None if isinstance(value, bool) else "true or false"
    if kind == "int":
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return None if whole and not isinstance(value, bool) else "a whole number"
    if kind == "object":
        return None if isinstance(value, dict) else "an object"
    if kind == "quantity":
        try:
            Quantity.from_json(value)
        except QuantityError:
            return "a quantity"
    return None


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 40 else f'"{value[:37]}..."'
    if isinstance(value, int | float):
        return f"the number {value}"
    return "a list" if isinstance(value, list) else "an object"


def _unknown_below(value: Any, field: Field, version: str, path: FieldPath) -> Iterator[FieldPath]:
    if field.scalar:
        return
    if field.container == "list":
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _unknown_in(item, field.type, version, (*path, index))
    elif field.container == "map":
        for key, item in value.items() if isinstance(value, dict) else ():
            yield from _unknown_in(item, field.type, version, (*path, key))
    else:
        yield from _unknown_in(value, field.type, version, path)


def _unknown_in(raw: Any, struct: str, version: str, path: FieldPath) -> Iterator[FieldPath]:
    if not isinstance(raw, dict):
        return
    table = fields(struct, version)
    known_metadata = struct == "ClaimMetadata"
    for name, value in raw.items():
        field = table.get(name)
        if field is not None:
            yield from _unknown_below(value, field, version, (*path, name))
        elif not (known_metadata and name in _OBJECT_META):
            yield (*path, name)


_OBJECT_META: Final = frozenset(_META["ObjectMeta"])


def _printed_struct(raw: Mapping[str, Any], struct: str, version: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    table = fields(struct, version)
    for name, field in table.items():
        value = raw.get(name)
        if field.container:
            printed = _printed_items(value, field, version)
            if printed is not None or not field.omit_empty:
                out[name] = printed
        elif value is None:
            if not field.omit_empty:
                out[name] = None if field.pointer else _zero(field, version)
        elif field.pointer or not field.omit_empty or value not in ("", 0, False):
            out[name] = _printed(value, field, version)
    for name in raw:
        if name not in table:
            out[name] = raw[name]
    return out


def _printed_items(value: Any, field: Field, version: str) -> list[Any] | dict[str, Any] | None:
    if not value:
        return None
    if field.container == "list":
        return [_zero(field, version) if v is None else _printed(v, field, version) for v in value]
    # The server prints maps with sorted keys.
    return {
        key: _zero(field, version) if value[key] is None else _printed(value[key], field, version)
        for key in sorted(value)
    }


def _printed(value: Any, field: Field, version: str) -> Any:
    if not field.scalar:
        return _printed_struct(value, field.type, version)
    if field.type == "quantity":
        return str(Quantity.from_json(value))
    if field.type == "time":
        return canonical_time(value)
    if field.type == "int":
        return int(value)
    return value


def _zero(field: Field, version: str) -> Any:
    if not field.scalar:
        return _printed_struct({}, field.type, version)
    return {"string": "", "int": 0, "bool": False, "quantity": "0"}.get(field.type)
