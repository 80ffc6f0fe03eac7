"""The fields of DRA objects that came after 1.31 or hang on a feature gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
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


def gated_fields(context: Context) -> tuple[tuple[Gated, Path], ...]:
    """The fields of the object that need a gate, with their paths; looked for once."""
    found: tuple[tuple[Gated, Path], ...] | None = context.memo.get("gated")
    if found is None:
        tree = _tree(context.item.kind)
        found = context.memo["gated"] = tuple(_found(context.spec, tree, context.spec_path)) if tree else ()
    return found


@cache
def _tree(kind: str) -> dict[str, Any]:
    """The fields of a kind as nested mappings by step; a field itself is at the key "" of its last step."""
    tree: dict[str, Any] = {}
    for field in _FIELDS:
        if kind in field.kinds:
            inner = tree
            for step in field.path:
                inner = inner.setdefault(step, {})
            inner[""] = field
    return tree


def _found(value: Any, tree: Mapping[str, Any], at: Path) -> Iterator[tuple[Gated, Path]]:
    for step, below in tree.items():
        if step == "":
            if value not in (None, [], {}):
                yield below, at
        elif step == "*":
            entries = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
            for key, item in entries:
                yield from _found(item, below, (*at, key))
        elif isinstance(value, dict) and step in value:
            yield from _found(value[step], below, (*at, step))
