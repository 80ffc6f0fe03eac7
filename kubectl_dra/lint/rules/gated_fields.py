"""The fields of DRA objects that came after 1.31 or hang on a feature gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.lint.context import Context
from kubectl_dra.manifests.changes import Path


class Gated(NamedTuple):
    """A field that needs a release and a gate. ``path`` has ``*`` for items; it is in v1's shape below the spec."""

    kinds: tuple[str, ...]
    path: tuple[str, ...]
    since: int
    gates: tuple[str, ...]


_CLAIMS: Final = ("ResourceClaim", "ResourceClaimTemplate")
_SLICE: Final = ("ResourceSlice",)
_REQUEST: Final = ("devices", "requests", "*")
_FIELDS: Final = (
    Gated(("DeviceClass",), ("extendedResourceName",), 34, ("DRAExtendedResource",)),
    Gated(_CLAIMS, (*_REQUEST, "firstAvailable"), 33, ("DRAPrioritizedList",)),
    Gated(_CLAIMS, (*_REQUEST, "exactly", "adminAccess"), 31, ("DRAAdminAccess",)),
    *(
        Gated(_CLAIMS, (*_REQUEST, *inner, field), since, (gate,))
        for inner in (("exactly",), ("firstAvailable", "*"))
        for field, since, gate in (
            ("tolerations", 33, "DRADeviceTaints"),
            ("capacity", 34, "DRAConsumableCapacity"),
            ("derivedAttributes", 37, "DRADerivedAttributes"),
        )
    ),
    Gated(_CLAIMS, ("devices", "constraints", "*", "distinctAttribute"), 34, ("DRAConsumableCapacity",)),
    Gated(_SLICE, ("perDeviceNodeSelection",), 33, ("DRAPartitionableDevices",)),
    Gated(_SLICE, ("sharedCounters",), 33, ("DRAPartitionableDevices",)),
    Gated(_SLICE, ("partitionTypeAttribute",), 37, ("DRAPartitionableDevicesType",)),
    Gated(_SLICE, ("skipNodeOperations",), 37, ("DRAOptionalNodeOperations",)),
    *(
        Gated(_SLICE, ("devices", "*", *field.split(".")), since, gates)
        for field, since, gates in (
            ("consumesCounters", 33, ("DRAPartitionableDevices",)),
            ("consumesCounters.*.compatibilityGroups", 37, ("DRADeviceCompatibilityGroups",)),
            ("nodeName", 33, ("DRAPartitionableDevices",)),
            ("nodeSelector", 33, ("DRAPartitionableDevices",)),
            ("allNodes", 33, ("DRAPartitionableDevices",)),
            ("taints", 33, ("DRADeviceTaints",)),
            ("bindsToNode", 34, ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")),
            ("bindingConditions", 34, ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")),
            ("bindingFailureConditions", 34, ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")),
            ("allowMultipleAllocations", 34, ("DRAConsumableCapacity",)),
            ("capacity.*.requestPolicy", 34, ("DRAConsumableCapacity",)),
            ("nodeAllocatableResourceMappings", 36, ("DRANodeAllocatableResources",)),
            ("nodeAllocatableResources", 37, ("DRANodeAllocatableResources",)),
            ("attributes.*.ints", 36, ("DRAListTypeAttributes",)),
            ("attributes.*.bools", 36, ("DRAListTypeAttributes",)),
            ("attributes.*.strings", 36, ("DRAListTypeAttributes",)),
            ("attributes.*.versions", 36, ("DRAListTypeAttributes",)),
        )
    ),
)


def gated_fields(context: Context) -> Iterator[tuple[Gated, Path]]:
    """The fields of the object that need a gate, with their paths."""
    for field in _FIELDS:
        if context.item.kind in field.kinds:
            for path in _found(context.spec, field.path, context.spec_path):
                yield field, path


def _found(value: Any, path: tuple[str, ...], at: Path) -> Iterator[Path]:
    if not path:
        if value not in (None, [], {}):
            yield at
        return
    step = path[0]
    if step == "*":
        below = value.items() if isinstance(value, Mapping) else enumerate(value if isinstance(value, list) else ())
        for key, item in below:
            yield from _found(item, path[1:], (*at, key))
    elif isinstance(value, Mapping) and step in value:
        yield from _found(value[step], path[1:], (*at, step))
