"""Which fields of resource.k8s.io a release does not have, out of all that ``api.fields`` lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubectl_dra.api.versions import Release

_DEVICE_SINCE: Final = {
    "consumesCounters": (33, None),
    "nodeName": (33, None),
    "nodeSelector": (33, None),
    "allNodes": (33, None),
    "taints": (33, None),
    "bindsToNode": (34, None),
    "bindingConditions": (34, None),
    "bindingFailureConditions": (34, None),
    "allowMultipleAllocations": (34, None),
    "nodeAllocatableResourceMappings": (36, 36),
    "nodeAllocatableResources": (37, None),
}
_REQUEST_SINCE: Final = {
    "tolerations": (33, None),
    "capacity": (34, None),
    "derivedAttributes": (37, None),
}

_LIVES: Final[Mapping[str, Mapping[str, tuple[int, int | None]]]] = {
    "DeviceRequest": {"firstAvailable": (33, None), **_REQUEST_SINCE},
    "ExactDeviceRequest": _REQUEST_SINCE,
    "DeviceSubRequest": _REQUEST_SINCE,
    "DeviceConstraint": {"distinctAttribute": (34, None)},
    "ResourceClaimSpec": {"controller": (31, 31)},
    "ResourceClaimStatus": {"devices": (32, None), "deallocationRequested": (31, 31)},
    "AllocationResult": {"allocationTimestamp": (34, None), "controller": (31, 31)},
    "DeviceRequestAllocationResult": {
        "adminAccess": (32, None),
        "tolerations": (33, None),
        "bindingConditions": (34, None),
        "bindingFailureConditions": (34, None),
        "shareID": (34, None),
        "consumedCapacity": (34, None),
        "skipNodeOperations": (37, None),
    },
    "AllocatedDeviceStatus": {"shareID": (34, None)},
    "DeviceClassSpec": {"extendedResourceName": (34, None), "suitableNodes": (31, 31)},
    "ResourceSliceSpec": {
        "perDeviceNodeSelection": (33, None),
        "sharedCounters": (33, None),
        "partitionTypeAttribute": (37, None),
        "skipNodeOperations": (37, None),
    },
    "Device": _DEVICE_SINCE,
    "BasicDevice": _DEVICE_SINCE,
    "DeviceAttribute": dict.fromkeys(("ints", "bools", "strings", "versions"), (36, None)),
    "DeviceCapacity": {"requestPolicy": (34, None)},
    "DeviceCounterConsumption": {"compatibilityGroups": (37, None)},
    "DeviceTaintSelector": {"deviceClassName": (33, 34), "selectors": (33, 34)},
    "DeviceTaintRule": {"status": (35, None)},
}


def lifetime(struct: str, field: str) -> tuple[int, int | None]:
    """The first and the last minor release of Kubernetes 1 with a field; 1.31 and none if it always was and is."""
    return _LIVES.get(struct, {}).get(field, (31, None))


def has_field(struct: str, field: str, release: Release) -> bool:
    """Whether a release has a field that ``api.fields`` lists."""
    first, last = lifetime(struct, field)
    return release.at_least(first) and (last is None or not release.at_least(last + 1))
