"""The fields of the API: one table for every walk over raw objects.

Of DRA kinds, up to 1.37, it determines how the API server prints an object and which values have the wrong type
(``api.codec``), what the server fills in and drops (``api.conversion``), which releases have a field, which feature
gates it needs and how much it may hold (``admission.server``). Of these and all other kinds it says what a snapshot
and an anonymized copy keep. ``api.schema`` explains how a row is written; ``api.core_fields`` has those of other kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from kubectl_dra.api.limits import (
    MAX_ATTRIBUTE_VALUE,
    MAX_BINDING_CONDITIONS,
    MAX_CONFIGS,
    MAX_CONSUMERS,
    MAX_COUNTERS,
    MAX_DRIVER,
    MAX_EXPRESSION_BYTES,
    MAX_POOL,
    MAX_REQUESTS,
    MAX_RESULTS,
    MAX_SELECTORS,
)
from kubectl_dra.api.releases import UNTOLD, Release
from kubectl_dra.api.schema import Field, FieldPath, items, row

CREATION: Final = "creation"
"""The default that represents the time at which the object is created."""

_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_SKIPPED: Final = row(
    "[]string operation",
    "DRAOptionalNodeOperations",
    since=37,
    values=("*", "NodePrepareResources", "NodeUnprepareResources"),
    check="skip-node-operations set",
)

_Struct = Mapping[str, str | Field]

_BINDING: Final = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
_CAPACITY: Final = "DRAConsumableCapacity"
_LISTS: Final = "DRAListTypeAttributes"
_NODE_RESOURCES: Final = "DRANodeAllocatableResources"
_PARTITIONS: Final = "DRAPartitionableDevices"
_TAINTS: Final = "DRADeviceTaints"

_DRIVER: Final = row("string driver", most=MAX_DRIVER)
_POOL: Final = row("string pool", most=MAX_POOL)
_SELECTORS: Final = row("[]DeviceSelector", most=MAX_SELECTORS)
_OF_REQUESTS: Final = row("[]string request", most=MAX_REQUESTS)

_REQUEST: Final[_Struct] = {
    "deviceClassName": "string class",
    "selectors": _SELECTORS,
    "allocationMode": row("string? keep", default="ExactCount", values=("All", "ExactCount")),
    "count": row("int?", default=1),
    "adminAccess": row("*bool", "DRAAdminAccess"),
    "tolerations": row("[]DeviceToleration", _TAINTS, since=33),
    "capacity": row("*CapacityRequirements", _CAPACITY, since=34),
    "derivedAttributes": row("[]DerivedAttribute", "DRADerivedAttributes", since=37, most=32),
}
_SUBREQUEST: Final[_Struct] = {
    "name": "string request",
    **{key: field for key, field in _REQUEST.items() if key != "adminAccess"},
}
_DEVICE: Final[_Struct] = {
    "attributes": "{}DeviceAttribute",
    "capacity": "{}DeviceCapacity",
    # Up to 1.34 the limits on counters were on those of all sets together, which is not modelled.
    "consumesCounters": row("[]DeviceCounterConsumption", _PARTITIONS, since=33, most={35: 2}),
    "nodeName": row("*string node", _PARTITIONS, since=33),
    "nodeSelector": row("*NodeSelector", _PARTITIONS, since=33),
    "allNodes": row("*bool", _PARTITIONS, since=33),
    "taints": row("[]DeviceTaint", _TAINTS, since=33, most={33: 4, 35: 16}),
    "bindsToNode": row("*bool", *_BINDING, since=34),
    "bindingConditions": row("[]string condition", *_BINDING, since=34, most=MAX_BINDING_CONDITIONS),
    "bindingFailureConditions": row("[]string condition", *_BINDING, since=34, most=MAX_BINDING_CONDITIONS),
    "allowMultipleAllocations": row("*bool", _CAPACITY, since=34),
    "nodeAllocatableResourceMappings": row(
        "{}NodeAllocatableResourceMapping resource", _NODE_RESOURCES, since=36, until=36, read=False
    ),
    "nodeAllocatableResources": row("{}NodeAllocatableResource resource", _NODE_RESOURCES, since=37),
}
_SLICE_SPEC: Final[_Struct] = {
    "driver": _DRIVER,
    "pool": "ResourcePool",
    "nodeName": "*string node",
    "nodeSelector": "*NodeSelector",
    "allNodes": "*bool",
    # 64 where a device has taints, consumes counters or has a list as attribute: see ``admission.server.slices``.
    "devices": row("[]Device", most=128),
    "perDeviceNodeSelection": row("*bool", _PARTITIONS, since=33),
    "sharedCounters": row("[]CounterSet", _PARTITIONS, since=33, most={35: 8}),
    "partitionTypeAttribute": row("*string qualified", "DRAPartitionableDevicesType", since=37),
    "skipNodeOperations": _SKIPPED,
}

# The shapes of v1, and of v1beta2, which are the same.
_STRUCTS: Final[Mapping[str, _Struct]] = {
    "DeviceClass": {"spec": "DeviceClassSpec"},
    "DeviceClassSpec": {
        "selectors": _SELECTORS,
        "config": row("[]DeviceConfiguration", most=MAX_CONFIGS),
        "extendedResourceName": row("*string resource", "DRAExtendedResource", since=34),
    },
    "DeviceSelector": {"cel": "*CELDeviceSelector"},
    "CELDeviceSelector": {"expression": row("string cel", most=MAX_EXPRESSION_BYTES)},
    "DeviceConfiguration": {"opaque": "*OpaqueDeviceConfiguration"},
    "OpaqueDeviceConfiguration": {"driver": _DRIVER, "parameters": row("any parameters", most=10 * 1024)},
    "ResourceClaim": {"spec": "ResourceClaimSpec", "status": "*ResourceClaimStatus"},
    "ResourceClaimSpec": {"devices": "DeviceClaim"},
    "DeviceClaim": {
        "requests": row("[]DeviceRequest!", most=MAX_REQUESTS),
        "constraints": row("[]DeviceConstraint", most=32),
        "config": row("[]DeviceClaimConfiguration", most=MAX_CONFIGS),
    },
    "DeviceRequest": {
        "name": "string request",
        "exactly": "*ExactDeviceRequest",
        "firstAvailable": row("[]DeviceSubRequest", "DRAPrioritizedList", since=33, most=8),
    },
    "ExactDeviceRequest": _REQUEST,
    "DeviceSubRequest": _SUBREQUEST,
    "CapacityRequirements": {"requests": "{}quantity"},
    "DerivedAttribute": {"name": "string qualified", "expression": "string cel"},
    "DeviceToleration": {
        "key": "string? key",
        "operator": row("string? keep", default="Equal", values=("Equal", "Exists")),
        "value": "string? value",
        "effect": row("string? keep", values=_EFFECTS),
        "tolerationSeconds": "*int",
    },
    "DeviceConstraint": {
        "requests": _OF_REQUESTS,
        "matchAttribute": "*string qualified",
        "distinctAttribute": row("*string qualified", _CAPACITY, since=34, dropped_since=35),
    },
    "DeviceClaimConfiguration": {"requests": _OF_REQUESTS, "opaque": "*OpaqueDeviceConfiguration"},
    "ResourceClaimStatus": {
        "allocation": "*AllocationResult",
        "reservedFor": row("[]ResourceClaimConsumerReference", most=MAX_CONSUMERS),
        "devices": row("[]AllocatedDeviceStatus", "DRAResourceClaimDeviceStatus", since=32),
    },
    "AllocationResult": {
        "devices": "DeviceAllocationResult",
        "nodeSelector": "*NodeSelector",
        "allocationTimestamp": row("*time", since=34),
    },
    "DeviceAllocationResult": {
        "results": row("[]DeviceRequestAllocationResult", most=MAX_RESULTS),
        "config": "[]DeviceAllocationConfiguration",
    },
    "DeviceRequestAllocationResult": {
        "request": "string request",
        "driver": "string driver",
        "pool": "string pool",
        "device": "string device",
        "adminAccess": row("*bool", "DRAAdminAccess", since=32),
        "tolerations": row("[]DeviceToleration", since=33),
        "bindingConditions": row("[]string condition", _BINDING[0], since=34),
        "bindingFailureConditions": row("[]string condition", _BINDING[0], since=34),
        "shareID": row("*string scrambled", _CAPACITY, since=34),
        "consumedCapacity": row("{}quantity", _CAPACITY, since=34),
        "skipNodeOperations": _SKIPPED,
    },
    "DeviceAllocationConfiguration": {
        "source": "string keep",
        "requests": "[]string request",
        "opaque": "*OpaqueDeviceConfiguration",
    },
    "ResourceClaimConsumerReference": {
        "apiGroup": "string? keep",
        "resource": "string keep",
        "name": "string consumer",
        "uid": "string scrambled",
    },
    "AllocatedDeviceStatus": {
        "driver": "string driver",
        "pool": "string pool",
        "device": "string device",
        "shareID": row("*string scrambled", _CAPACITY, since=34),
        "conditions": "[]Condition!",
        "data": "*any drop",
        "networkData": "*NetworkDeviceData drop",
    },
    "Condition": {
        "type": "string condition",
        "status": "string keep",
        "observedGeneration": "int?",
        "lastTransitionTime": "time",
        "reason": "string reason",
        "message": "string message",
    },
    "NetworkDeviceData": {"interfaceName": "string?", "ips": "[]string", "hardwareAddress": "string?"},
    "ResourceClaimTemplate": {"spec": "ResourceClaimTemplateSpec"},
    "ResourceClaimTemplateSpec": {"metadata": "ClaimMetadata drop", "spec": "ResourceClaimSpec"},
    "ClaimMetadata": {"labels": "{}string", "annotations": "{}string"},
    "ResourceSlice": {"spec": "ResourceSliceSpec"},
    "ResourceSliceSpec": _SLICE_SPEC,
    "ResourcePool": {"name": _POOL, "generation": "int", "resourceSliceCount": "int"},
    "CounterSet": {"name": "string embedded", "counters": row("{}Counter", most=MAX_COUNTERS)},
    "Counter": {"value": "quantity"},
    "Device": {"name": "string device", **_DEVICE},
    "DeviceAttribute": {
        "int": "*int",
        "bool": "*bool",
        "string": row("*string", most=MAX_ATTRIBUTE_VALUE),
        "version": row("*string", most=MAX_ATTRIBUTE_VALUE),
        "ints": row("[]int", _LISTS, since=36),
        "bools": row("[]bool", _LISTS, since=36),
        "strings": row("[]string", _LISTS, since=36),
        "versions": row("[]string", _LISTS, since=36),
    },
    "DeviceCapacity": {"value": "quantity", "requestPolicy": row("*CapacityRequestPolicy", _CAPACITY, since=34)},
    "CapacityRequestPolicy": {
        "default": "*quantity!",
        "validValues": row("[]quantity", most=10),
        "validRange": "*CapacityRequestPolicyRange",
    },
    "CapacityRequestPolicyRange": {"min": "*quantity", "max": "*quantity", "step": "*quantity"},
    "DeviceCounterConsumption": {
        "counterSet": "string embedded",
        "counters": row("{}Counter", most=MAX_COUNTERS),
        "compatibilityGroups": row(
            "[]string group", "DRADeviceCompatibilityGroups", since=37, most=2, check="compatibility-groups label set"
        ),
    },
    "NodeAllocatableResourceMapping": {
        "capacityKey": "*string qualified",
        "allocationMultiplier": row("*quantity", default="1"),
    },
    "NodeAllocatableResource": {
        "mapping": "*NodeAllocatableMapping",
        "overhead": "*NodeAllocatableOverhead",
    },
    "NodeAllocatableMapping": {
        "capacityKey": "*string qualified",
        "capacityMultiplier": "*quantity",
        "deviceMultiplier": "*quantity",
    },
    "NodeAllocatableOverhead": {"perPod": "*quantity", "perContainer": "*quantity"},
    "DeviceTaint": {
        "key": "string key",
        "value": "string? value",
        "effect": row("string keep", values=_EFFECTS),
        "timeAdded": row("*time", default=CREATION),
    },
    "NodeSelector": {"nodeSelectorTerms": "[]NodeSelectorTerm!"},
    "NodeSelectorTerm": {
        "matchExpressions": "[]NodeSelectorRequirement",
        "matchFields": "[]NodeFieldRequirement",
    },
    "NodeSelectorRequirement": {"key": "string key", "operator": "string keep", "values": "[]string value"},
    "NodeFieldRequirement": {"key": "string keep", "operator": "string keep", "values": "[]string node"},
    "DeviceTaintRule": {"spec": "DeviceTaintRuleSpec", "status": row("*DeviceTaintRuleStatus drop", since=35)},
    "DeviceTaintRuleSpec": {"deviceSelector": "*DeviceTaintSelector", "taint": "DeviceTaint"},
    "DeviceTaintSelector": {
        "driver": row("*string driver", most=MAX_DRIVER),
        "pool": row("*string pool", most=MAX_POOL),
        "device": "*string device",
    },
    "DeviceTaintRuleStatus": {"conditions": "[]Condition"},
}

_V1BETA1: Final[Mapping[str, _Struct]] = {
    "DeviceRequest": {
        "name": "string request",
        **_REQUEST,
        "firstAvailable": _STRUCTS["DeviceRequest"]["firstAvailable"],
    },
    "Device": {"name": "string device", "basic": "*BasicDevice"},
    "BasicDevice": _DEVICE,
    "ResourceSliceSpec": {**_SLICE_SPEC, "nodeName": "string? node", "allNodes": "bool?"},
}
_V1ALPHA3: Final[Mapping[str, _Struct]] = {
    **_V1BETA1,
    "BasicDevice": {**_DEVICE, "capacity": "{}quantity"},
    "DeviceTaintSelector": {
        **_STRUCTS["DeviceTaintSelector"],
        "deviceClassName": row("*string class", since=33, until=34),
        "selectors": row("[]DeviceSelector", since=33, until=34),
    },
    "DeviceClassSpec": {**_STRUCTS["DeviceClassSpec"], "suitableNodes": row("*NodeSelector", until=31)},
    "ResourceClaimSpec": {"devices": "DeviceClaim", "controller": row("string?", until=31)},
    "ResourceClaimStatus": {
        **_STRUCTS["ResourceClaimStatus"],
        "deallocationRequested": row("bool?", until=31),
    },
    "AllocationResult": {**_STRUCTS["AllocationResult"], "controller": row("string?", until=31)},
}
_OTHER_VERSIONS: Final = {"v1beta1": _V1BETA1, "v1alpha3": _V1ALPHA3}

_META: Final[Mapping[str, _Struct]] = {
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
        "managedFields": "[]ManagedFieldsEntry",
    },
    "ManagedFieldsEntry": {
        "manager": "string?",
        "operation": "string?",
        "apiVersion": "string?",
        "time": "*time",
        "fieldsType": "string?",
        "fieldsV1": "*any",
        "subresource": "string?",
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


@cache
def fields(struct: str, version: str = "v1") -> Mapping[str, Field]:
    """The fields of a struct of the API in one version. Raises KeyError for an unknown struct."""
    table = _OTHER_VERSIONS.get(version, {}).get(struct) or _STRUCTS.get(struct) or _META.get(struct)
    if table is None:
        from kubectl_dra.api.core_fields import core_rows

        return core_rows(struct)
    return {name: row(field) if isinstance(field, str) else field for name, field in table.items()}


def fields_at(kind: str, version: str, path: Sequence[str | int]) -> Mapping[str, Field]:
    """The fields of the struct at a path, with or without the indices of lists, below an object; empty if unknown."""
    return _fields_or_none(struct_at(kind, version, path), version)


def struct_at(kind: str, version: str, path: Sequence[str | int]) -> str:
    """The name of the struct at such a path; empty for what is none, or unknown."""
    struct, in_map = kind, False
    for part in path:
        if isinstance(part, int) or in_map:
            in_map = False
            continue
        field = _fields_or_none(struct, version).get(str(part))
        if field is None or field.scalar:
            return ""
        struct, in_map = field.type, field.container == "map"
    return "" if in_map else struct


def _fields_or_none(struct: str, version: str) -> Mapping[str, Field]:
    try:
        return fields(struct, version)
    except KeyError:
        return {}


def read_names(struct: str) -> frozenset[str]:
    """The fields of a struct of v1 that answers take into account; of any other they say that it is not modelled."""
    return frozenset(name for name, field in fields(struct).items() if field.read)


@cache
def values_of(name: str) -> tuple[str, ...]:
    """The texts that fields of this name take, as the API server lists them; empty if they take any."""
    return next((table[name].values for table in map(fields, _STRUCTS) if name in table and table[name].values), ())


def limit(struct: str, name: str, release: Release = UNTOLD) -> int | None:
    """The most items or bytes in a field of v1; None if there is no limit."""
    return fields(struct)[name].limit(release)


def gated(raw: Any, struct: str, at: FieldPath = ()) -> Iterator[tuple[FieldPath, Field, Any]]:
    """The fields below a struct of v1 that are there and need a feature gate: paths from ``at`` on, and values.

    What has another type than it should is passed over.
    """
    for name, field in fields(struct).items() if isinstance(raw, dict) else ():
        value, path = raw.get(name), (*at, name)
        if value is None or (field.container and not value):
            continue
        if field.gates:
            yield path, field, value
        if not field.scalar and depends_on_gates(field.type):
            for key, item in items(value, field):
                yield from gated(item, field.type, (*path, *key))


@cache
def depends_on_gates(struct: str, version: str = "v1") -> bool:
    """Whether any field below a struct needs a feature gate."""
    return any(
        field.gates or (not field.scalar and depends_on_gates(field.type, version))
        for field in fields(struct, version).values()
    )
