"""Feature gates that stored objects prove to be on.

If a gate is off, the API server drops its fields from new objects, so an existing field shows that the gate
was on when the object was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from kubectl_dra.api.fields import fields
from kubectl_dra.api.slices import ResourceSlice


def _gate(field: str) -> str:
    """The first gate that a field of devices needs."""
    return fields("Device")[field].gates[0]


TAINTS = _gate("taints")
PARTITIONS = _gate("consumesCounters")
CAPACITY = _gate("allowMultipleAllocations")
BINDING = _gate("bindingConditions")
_KNOWN = (TAINTS, PARTITIONS, CAPACITY, BINDING)


def proved(slices: Iterable[ResourceSlice], assumed: Set[str]) -> frozenset[str]:
    """The gates proved by fields of these slices, beyond those assumed to be on."""
    missing = {gate for gate in _KNOWN if gate not in assumed}
    found: set[str] = set()
    if not missing:
        return frozenset()
    for entry in slices:
        if entry.shared_counters or entry.per_device_node_selection:
            found.add(PARTITIONS)
        for device in entry.devices:
            if device.taints:
                found.add(TAINTS)
            if device.consumes_counters:
                found.add(PARTITIONS)
            if device.allow_multiple_allocations:
                found.add(CAPACITY)
            if device.binding_conditions:
                found.add(BINDING)
    return frozenset(found & missing)
