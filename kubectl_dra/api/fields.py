"""The fields of DRA kinds per API version: one table for every walk over raw objects.

It determines how the API server prints an object (``api.encoding``), which values have the wrong type
(``api.decoding``), what the server fills in and drops (``api.defaults``), which releases have a field, which
feature gates it needs and how much it may hold (``admission.server``). It lists the fields of releases up to 1.37.

A type is written as in the API's Go types: ``T`` is always printed, ``T?`` left out when empty, ``*T``
printed when set; ``[]T`` and ``{}T`` are a list and a map, left out when empty. A ``!`` after a list or
pointer: printed as null instead of left out. A second word says what an anonymized copy has in place of a text, or
of the keys of a map (see ``cluster.anonymize_dra``). ``_with`` adds the rest: a field newer than 1.31, removed,
behind gates, or with a default or a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import cache
from typing import Any, Final

from msgspec import Struct

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
from kubectl_dra.api.releases import OLDEST_MODELLED, UNTOLD, Release, Releases

FieldPath = tuple[str | int, ...]
"""Keys and list indices from the object's root."""

CREATION: Final = "creation"
"""The default that represents the time at which the object is created."""

VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "allocationMode": ("All", "ExactCount"),
    "effect": ("NoExecute", "NoSchedule", "None"),
    "operator": ("Equal", "Exists"),
}
"""What fields of DRA kinds that take one of a few texts take, as the API server lists it."""

_SCALARS: Final = frozenset(("string", "int", "bool", "quantity", "time", "any", "object"))


class Field(Struct, frozen=True):
    """A field: ``type`` is a scalar or a struct's name, ``container`` is "", "list" or "map".

    ``since`` and ``until`` are the first and last minor release of Kubernetes 1 that have it; 31 includes all
    earlier ones, None means no last one. The API server drops the field from new objects unless all ``gates``
    are on; a release before ``dropped_since`` forgets to. ``default`` is what the server sets if the field is
    missing or empty. ``most`` are limits on its items or bytes, each from a release on. ``anonymize`` is what an
    anonymized copy has in place of its text; empty for nothing.
    """

    type: str
    container: str
    pointer: bool
    omit_empty: bool
    scalar: bool
    since: int = OLDEST_MODELLED.minor
    until: int | None = None
    gates: tuple[str, ...] = ()
    default: str | int | None = None
    most: tuple[tuple[int, int], ...] = ()
    dropped_since: int = OLDEST_MODELLED.minor
    anonymize: str = ""

    def limit(self, release: Release = UNTOLD) -> int | None:
        """The most items in a list or map, or bytes in a text; None if there is no limit."""
        return next((most for since, most in reversed(self.most) if release.at_least(since)), None)

    @property
    def releases(self) -> Releases:
        """The releases that have the field."""
        return Releases(self.since, self.until)

    def exists(self, release: Release) -> bool:
        """Whether a release has the field."""
        return release in self.releases

    def is_newer(self, release: Release) -> bool:
        """Whether the release did not have the field yet."""
        return not release.at_least(self.since)

    def is_dropped(self, release: Release, features: Set[str]) -> bool:
        """Whether the server of a release drops the field where just these gates are on."""
        return release.at_least(self.dropped_since) and not features >= {*self.gates}


def _with(
    text: str,
    *gates: str,
    since: int = OLDEST_MODELLED.minor,
    until: int | None = None,
    default: str | int | None = None,
    most: int | Mapping[int, int] | None = None,
    dropped_since: int = OLDEST_MODELLED.minor,
) -> Field:
    """The field of a type in this notation, with further facts about it."""
    text, _, anonymize = text.partition(" ")
    always, text = text.endswith("!"), text.removesuffix("!")
    container = "list" if text.startswith("[]") else "map" if text.startswith("{}") else ""
    pointer = text.startswith("*")
    omit_empty = not always and (bool(container) or pointer or text.endswith("?"))
    name = text.lstrip("[]{}*").removesuffix("?")
    limits = {since: most} if isinstance(most, int) else most or {}
    more = (since, until, gates, default, tuple(limits.items()), dropped_since, anonymize)
    return Field(name, container, pointer, omit_empty, name in _SCALARS, *more)


_Struct = Mapping[str, str | Field]

_BINDING: Final = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
_CAPACITY: Final = "DRAConsumableCapacity"
_LISTS: Final = "DRAListTypeAttributes"
_NODE_RESOURCES: Final = "DRANodeAllocatableResources"
_OPTIONAL: Final = "DRAOptionalNodeOperations"
_PARTITIONS: Final = "DRAPartitionableDevices"
_TAINTS: Final = "DRADeviceTaints"

_DRIVER: Final = _with("string driver", most=MAX_DRIVER)
_POOL: Final = _with("string pool", most=MAX_POOL)
_SELECTORS: Final = _with("[]DeviceSelector", most=MAX_SELECTORS)
_OF_REQUESTS: Final = _with("[]string request", most=MAX_REQUESTS)

_REQUEST: Final[_Struct] = {
    "deviceClassName": "string class",
    "selectors": _SELECTORS,
    "allocationMode": _with("string? keep", default="ExactCount"),
    "count": _with("int?", default=1),
    "adminAccess": _with("*bool", "DRAAdminAccess"),
    "tolerations": _with("[]DeviceToleration", _TAINTS, since=33),
    "capacity": _with("*CapacityRequirements", _CAPACITY, since=34),
    "derivedAttributes": _with("[]DerivedAttribute", "DRADerivedAttributes", since=37),
}
_SUBREQUEST: Final[_Struct] = {
    "name": "string request",
    **{key: entry for key, entry in _REQUEST.items() if key != "adminAccess"},
}
_DEVICE: Final[_Struct] = {
    "attributes": "{}DeviceAttribute",
    "capacity": "{}DeviceCapacity",
    # Up to 1.34 the limits on counters were on those of all sets together, which is not modelled.
    "consumesCounters": _with("[]DeviceCounterConsumption", _PARTITIONS, since=33, most={35: 2}),
    "nodeName": _with("*string node", _PARTITIONS, since=33),
    "nodeSelector": _with("*NodeSelector", _PARTITIONS, since=33),
    "allNodes": _with("*bool", _PARTITIONS, since=33),
    "taints": _with("[]DeviceTaint", _TAINTS, since=33, most={33: 4, 35: 16}),
    "bindsToNode": _with("*bool", *_BINDING, since=34),
    "bindingConditions": _with("[]string condition", *_BINDING, since=34, most=MAX_BINDING_CONDITIONS),
    "bindingFailureConditions": _with("[]string condition", *_BINDING, since=34, most=MAX_BINDING_CONDITIONS),
    "allowMultipleAllocations": _with("*bool", _CAPACITY, since=34),
    "nodeAllocatableResourceMappings": _with(
        "{}NodeAllocatableResourceMapping resource", _NODE_RESOURCES, since=36, until=36
    ),
    "nodeAllocatableResources": _with("{}NodeAllocatableResource resource", _NODE_RESOURCES, since=37),
}
_SLICE_SPEC: Final[_Struct] = {
    "driver": _DRIVER,
    "pool": "ResourcePool",
    "nodeName": "*string node",
    "nodeSelector": "*NodeSelector",
    "allNodes": "*bool",
    # 64 where a device has taints, consumes counters or has a list as attribute: see ``admission.server.slices``.
    "devices": _with("[]Device", most=128),
    "perDeviceNodeSelection": _with("*bool", _PARTITIONS, since=33),
    "sharedCounters": _with("[]CounterSet", _PARTITIONS, since=33, most={35: 8}),
    "partitionTypeAttribute": _with("*string qualified", "DRAPartitionableDevicesType", since=37),
    "skipNodeOperations": _with("[]string operation", _OPTIONAL, since=37),
}

# The shapes of v1, and of v1beta2, which are the same.
_STRUCTS: Final[Mapping[str, _Struct]] = {
    "DeviceClass": {"spec": "DeviceClassSpec"},
    "DeviceClassSpec": {
        "selectors": _SELECTORS,
        "config": _with("[]DeviceConfiguration", most=MAX_CONFIGS),
        "extendedResourceName": _with("*string resource", "DRAExtendedResource", since=34),
    },
    "DeviceSelector": {"cel": "*CELDeviceSelector"},
    "CELDeviceSelector": {"expression": _with("string cel", most=MAX_EXPRESSION_BYTES)},
    "DeviceConfiguration": {"opaque": "*OpaqueDeviceConfiguration"},
    "OpaqueDeviceConfiguration": {"driver": _DRIVER, "parameters": _with("any", most=10 * 1024)},
    "ResourceClaim": {"spec": "ResourceClaimSpec", "status": "*ResourceClaimStatus"},
    "ResourceClaimSpec": {"devices": "DeviceClaim"},
    "DeviceClaim": {
        "requests": _with("[]DeviceRequest!", most=MAX_REQUESTS),
        "constraints": _with("[]DeviceConstraint", most=32),
        "config": _with("[]DeviceClaimConfiguration", most=MAX_CONFIGS),
    },
    "DeviceRequest": {
        "name": "string request",
        "exactly": "*ExactDeviceRequest",
        "firstAvailable": _with("[]DeviceSubRequest", "DRAPrioritizedList", since=33, most=8),
    },
    "ExactDeviceRequest": _REQUEST,
    "DeviceSubRequest": _SUBREQUEST,
    "CapacityRequirements": {"requests": "{}quantity"},
    "DerivedAttribute": {"name": "string qualified", "expression": "string cel"},
    "DeviceToleration": {
        "key": "string?",
        "operator": _with("string?", default="Equal"),
        "value": "string?",
        "effect": "string?",
        "tolerationSeconds": "*int",
    },
    "DeviceConstraint": {
        "requests": _OF_REQUESTS,
        "matchAttribute": "*string qualified",
        "distinctAttribute": _with("*string qualified", _CAPACITY, since=34, dropped_since=35),
    },
    "DeviceClaimConfiguration": {"requests": _OF_REQUESTS, "opaque": "*OpaqueDeviceConfiguration"},
    "ResourceClaimStatus": {
        "allocation": "*AllocationResult",
        "reservedFor": _with("[]ResourceClaimConsumerReference", most=MAX_CONSUMERS),
        "devices": _with("[]AllocatedDeviceStatus", "DRAResourceClaimDeviceStatus", since=32),
    },
    "AllocationResult": {
        "devices": "DeviceAllocationResult",
        "nodeSelector": "*NodeSelector",
        "allocationTimestamp": _with("*time", since=34),
    },
    "DeviceAllocationResult": {
        "results": _with("[]DeviceRequestAllocationResult", most=MAX_RESULTS),
        "config": "[]DeviceAllocationConfiguration",
    },
    "DeviceRequestAllocationResult": {
        "request": "string request",
        "driver": "string driver",
        "pool": "string pool",
        "device": "string embedded",
        "adminAccess": _with("*bool", "DRAAdminAccess", since=32),
        "tolerations": _with("[]DeviceToleration", since=33),
        "bindingConditions": _with("[]string condition", _BINDING[0], since=34),
        "bindingFailureConditions": _with("[]string condition", _BINDING[0], since=34),
        "shareID": _with("*string scrambled", _CAPACITY, since=34),
        "consumedCapacity": _with("{}quantity", _CAPACITY, since=34),
        "skipNodeOperations": _with("[]string operation", _OPTIONAL, since=37),
    },
    "DeviceAllocationConfiguration": {
        "source": "string keep",
        "requests": "[]string request",
        "opaque": "*OpaqueDeviceConfiguration",
    },
    "ResourceClaimConsumerReference": {
        "apiGroup": "string?",
        "resource": "string",
        "name": "string",
        "uid": "string",
    },
    "AllocatedDeviceStatus": {
        "driver": "string driver",
        "pool": "string pool",
        "device": "string embedded",
        "shareID": _with("*string scrambled", _CAPACITY, since=34),
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
    "ResourceClaimTemplateSpec": {"metadata": "ClaimMetadata", "spec": "ResourceClaimSpec"},
    "ClaimMetadata": {"labels": "{}string", "annotations": "{}string"},
    "ResourceSlice": {"spec": "ResourceSliceSpec"},
    "ResourceSliceSpec": _SLICE_SPEC,
    "ResourcePool": {"name": _POOL, "generation": "int", "resourceSliceCount": "int"},
    "CounterSet": {"name": "string embedded", "counters": _with("{}Counter", most=MAX_COUNTERS)},
    "Counter": {"value": "quantity"},
    "Device": {"name": "string embedded", **_DEVICE},
    "DeviceAttribute": {
        "int": "*int",
        "bool": "*bool",
        "string": _with("*string", most=MAX_ATTRIBUTE_VALUE),
        "version": _with("*string", most=MAX_ATTRIBUTE_VALUE),
        "ints": _with("[]int", _LISTS, since=36),
        "bools": _with("[]bool", _LISTS, since=36),
        "strings": _with("[]string", _LISTS, since=36),
        "versions": _with("[]string", _LISTS, since=36),
    },
    "DeviceCapacity": {"value": "quantity", "requestPolicy": _with("*CapacityRequestPolicy", _CAPACITY, since=34)},
    "CapacityRequestPolicy": {
        "default": "*quantity!",
        "validValues": _with("[]quantity", most=10),
        "validRange": "*CapacityRequestPolicyRange",
    },
    "CapacityRequestPolicyRange": {"min": "*quantity", "max": "*quantity", "step": "*quantity"},
    "DeviceCounterConsumption": {
        "counterSet": "string embedded",
        "counters": _with("{}Counter", most=MAX_COUNTERS),
        "compatibilityGroups": _with("[]string group", "DRADeviceCompatibilityGroups", since=37),
    },
    "NodeAllocatableResourceMapping": {
        "capacityKey": "*string qualified",
        "allocationMultiplier": _with("*quantity", default="1"),
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
        "key": "string",
        "value": "string?",
        "effect": "string",
        "timeAdded": _with("*time", default=CREATION),
    },
    "NodeSelector": {"nodeSelectorTerms": "[]NodeSelectorTerm!"},
    "NodeSelectorTerm": {
        "matchExpressions": "[]NodeSelectorRequirement",
        "matchFields": "[]NodeSelectorRequirement",
    },
    "NodeSelectorRequirement": {"key": "string", "operator": "string", "values": "[]string"},
    "DeviceTaintRule": {"spec": "DeviceTaintRuleSpec", "status": _with("*DeviceTaintRuleStatus", since=35)},
    "DeviceTaintRuleSpec": {"deviceSelector": "*DeviceTaintSelector", "taint": "DeviceTaint"},
    "DeviceTaintSelector": {
        "driver": _with("*string driver", most=MAX_DRIVER),
        "pool": _with("*string pool", most=MAX_POOL),
        "device": "*string embedded",
    },
    "DeviceTaintRuleStatus": {"conditions": "[]Condition"},
}

_V1BETA1: Final[Mapping[str, _Struct]] = {
    "DeviceRequest": {
        "name": "string request",
        **_REQUEST,
        "firstAvailable": _STRUCTS["DeviceRequest"]["firstAvailable"],
    },
    "Device": {"name": "string embedded", "basic": "*BasicDevice"},
    "BasicDevice": _DEVICE,
    "ResourceSliceSpec": {**_SLICE_SPEC, "nodeName": "string? node", "allNodes": "bool?"},
}
_V1ALPHA3: Final[Mapping[str, _Struct]] = {
    **_V1BETA1,
    "BasicDevice": {**_DEVICE, "capacity": "{}quantity"},
    "DeviceTaintSelector": {
        **_STRUCTS["DeviceTaintSelector"],
        "deviceClassName": _with("*string class", since=33, until=34),
        "selectors": _with("[]DeviceSelector", since=33, until=34),
    },
    "DeviceClassSpec": {**_STRUCTS["DeviceClassSpec"], "suitableNodes": _with("*NodeSelector", until=31)},
    "ResourceClaimSpec": {"devices": "DeviceClaim", "controller": _with("string?", until=31)},
    "ResourceClaimStatus": {
        **_STRUCTS["ResourceClaimStatus"],
        "deallocationRequested": _with("bool?", until=31),
    },
    "AllocationResult": {**_STRUCTS["AllocationResult"], "controller": _with("string?", until=31)},
}
_OTHER_VERSIONS: Final = {"v1beta1": _V1BETA1, "v1alpha3": _V1ALPHA3}

# Of core/v1 only what is read here: these are no base for calling a field unknown.
_CORE: Final[Mapping[str, _Struct]] = {
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
    table = _OTHER_VERSIONS.get(version, {}).get(struct) or _STRUCTS.get(struct)
    table = table or _CORE.get(struct) or _META[struct]
    return {name: _with(entry) if isinstance(entry, str) else entry for name, entry in table.items()}


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


def items(value: Any, field: Field) -> Iterator[tuple[FieldPath, Any]]:
    """What is in a field: the items of its list or map, each with its index or key, or its one value."""
    if not field.container:
        yield (), value
    elif isinstance(value, dict) and field.container == "map":
        yield from (((key,), item) for key, item in value.items())
    elif isinstance(value, list) and field.container == "list":
        yield from (((index,), item) for index, item in enumerate(value))


@cache
def depends_on_gates(struct: str, version: str = "v1") -> bool:
    """Whether any field below a struct needs a feature gate."""
    return any(
        entry.gates or (not entry.scalar and depends_on_gates(entry.type, version))
        for entry in fields(struct, version).values()
    )


def path_text(path: FieldPath) -> str:
    """A path as Kubernetes writes it: ``spec.devices[0].capacity[example.com/memory].value``."""
    out: list[str] = []
    for part in path:
        if isinstance(part, int) or not part or not part.replace("_", "a").replace("-", "a").isalnum():
            out.append(f"[{part}]")
        else:
            out.append(f".{part}" if out else part)
    return "".join(out)
