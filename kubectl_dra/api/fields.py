"""The fields of DRA kinds per API version, with their JSON types: one table for every walk over raw objects.

It decides how the API server prints an object (``api.encoding``), which value has the wrong type (``api.decoding``)
and what a strict server calls an unknown field. Fields of releases up to 1.37 are listed.

A type is written as in the API's Go types: ``T`` always printed, ``T?`` left out when empty, ``*T`` printed
when set, ``[]T`` and ``{}T`` a list and a map left out when empty. ``!`` behind a list or pointer: printed as
null instead of being left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

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


class Field(NamedTuple):
    """A field's type: ``type`` is a scalar or a struct's name, ``container`` is "", "list" or "map"."""

    type: str
    container: str
    pointer: bool
    omit_empty: bool
    scalar: bool


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


def _field(text: str) -> Field:
    always, text = text.endswith("!"), text.removesuffix("!")
    container = "list" if text.startswith("[]") else "map" if text.startswith("{}") else ""
    pointer = text.startswith("*")
    omit_empty = not always and (bool(container) or pointer or text.endswith("?"))
    name = text.lstrip("[]{}*").removesuffix("?")
    return Field(name, container, pointer, omit_empty, name in _SCALARS)
