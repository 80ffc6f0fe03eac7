"""Feature gates that stored objects prove to be on, or make likely.

If a gate is off, the API server drops its fields from new objects, so an existing field shows that the gate was on when
the object was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.defects import RULES_UNSEEN
from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.releases import Release, gate_default
from kubectl_dra.api.slices import MAPPINGS, ResourceSlice
from kubectl_dra.api.taints import DeviceTaintRule


def _gate(field: str) -> str:
    """The first gate that a field of devices needs."""
    return fields("Device")[field].gates[0]


TAINTS = _gate("taints")
PARTITIONS = _gate("consumesCounters")
CAPACITY = _gate("allowMultipleAllocations")
BINDING = _gate("bindingConditions")
GROUPS = fields("DeviceCounterConsumption")["compatibilityGroups"].gates[0]
OPERATIONS = fields("ResourceSliceSpec")["skipNodeOperations"].gates[0]
DERIVED = fields("ExactDeviceRequest")["derivedAttributes"].gates[0]
NODE_RESOURCES = _gate("nodeAllocatableResources")
RULES = (TAINTS, "DRADeviceTaintRules")
"""The gates without which a DeviceTaintRule has no effect. Up to 1.34 the first is both."""
_KNOWN = (TAINTS, PARTITIONS, CAPACITY, BINDING, GROUPS, OPERATIONS, DERIVED, NODE_RESOURCES)


def proved(
    slices: Iterable[ResourceSlice], assumed: Set[str], release: Release, claims: Iterable[ResourceClaim] = ()
) -> frozenset[str]:
    """The gates of the release proved by fields of these slices and stored claims, beyond those assumed to be on."""
    missing = {gate for gate in _KNOWN if gate not in assumed and gate_default(gate, release) is not None}
    found: set[str] = set()
    if not missing:
        return frozenset()
    for entry in slices:
        if entry.skip_node_operations:
            found.add(OPERATIONS)
        if entry.shared_counters or entry.per_device_node_selection:
            found.add(PARTITIONS)
        for device in entry.devices:
            if device.taints:
                found.add(TAINTS)
            if device.consumes_counters:
                found.add(PARTITIONS)
                if any(consumption.groups for consumption in device.consumes_counters):
                    found.add(GROUPS)
            if device.node_resources or MAPPINGS in device.unmodelled:
                found.add(NODE_RESOURCES)
            if device.allow_multiple_allocations:
                found.add(CAPACITY)
            if device.binding_conditions:
                found.add(BINDING)
    if DERIVED in missing and any(_derives(claim) for claim in claims):
        found.add(DERIVED)
    return frozenset(found & missing)


def taken_on(rules: Sequence[DeviceTaintRule], release: Release, patch: int | None) -> frozenset[str]:
    """The gates of the release that are off by default and taken to be on because rules exist.

    A rule proves nothing, for a server stores them with the gates off too; but nobody writes one where it does not
    count. The releases whose schedulers do not see rules are left out.
    """
    if not rules or RULES_UNSEEN.affects(release, patch):
        return frozenset()
    return frozenset(gate for gate in RULES if gate_default(gate, release) is False)


def _derives(claim: ResourceClaim) -> bool:
    return any(spec.derived_attributes for spec in claim.alternatives())
