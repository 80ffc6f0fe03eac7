"""What the allocator of a release can do, and which of its known defects it has."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True, slots=True)
class Features:
    """Allocator features, derived from the scheduler's feature gates (all on by default in 1.36 but lists)."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True
    list_attributes: bool = False
    extended_resources: bool = True
    taint_rules: bool = False

    @classmethod
    def from_gates(cls, gates: Set[str]) -> Features:
        """The features of a scheduler that runs with these feature gates on."""
        return cls(
            admin_access="DRAAdminAccess" in gates,
            prioritized_list="DRAPrioritizedList" in gates,
            partitionable_devices="DRAPartitionableDevices" in gates,
            device_taints="DRADeviceTaints" in gates,
            binding_conditions={"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"} <= gates,
            consumable_capacity="DRAConsumableCapacity" in gates,
            list_attributes="DRAListTypeAttributes" in gates,
            extended_resources="DRAExtendedResource" in gates,
            taint_rules={"DRADeviceTaints", "DRADeviceTaintRules"} <= gates,
        )

    @property
    def variant(self) -> str:
        """The allocator variant that a 1.36 scheduler picks: the first that supports every feature."""
        if not self.binding_conditions and not self.consumable_capacity:
            return "stable"
        return "incubating"


@dataclass(frozen=True, slots=True)
class Quirks:
    """Known defects of the allocator that change outcomes; True where the release has them.

    Each is named after what it does; the comment gives the upstream change that ends it.
    """

    counters_leak: bool = True
    """A refused or undone device stays charged, and one refused for its capacity stays in the constraints of its
    claim (kubernetes/kubernetes#140431, fixed in 1.36.3)."""
    counters_keyed_by_pool_name: bool = True
    """Drivers that use one pool name share counter tables (kubernetes/kubernetes#140435, fixed in 1.36.4)."""
    distinct_remembers_one: bool = True
    """distinctAttribute remembers one value per request (kubernetes/kubernetes#140600)."""
    all_fails_on_any_pool: bool = True
    """Mode All is fatal when any pool on the node is incomplete or invalid (kubernetes/kubernetes#141898)."""
    all_drops_exhausted: bool = True
    """Mode All silently drops exhausted shareable devices (kubernetes/kubernetes#140769)."""
    claim_config_repeated: bool = True
    """A claim's config entry is repeated for every request that it names (fixed in 1.37)."""
    counter_slices_everywhere: bool = True
    """Slices with shared counters are seen on every node (fixed in 1.37)."""
    share_without_capacity_charges: bool = True
    """A share without consumed capacity charges counters again (kubernetes/kubernetes#140437)."""

    @classmethod
    def of_release(cls, minor: int, patch: int | None = None) -> Quirks:
        """The defects of release 1.``minor``.``patch``; of a release newer than the facts, those still open.

        An unknown patch release is taken to be an early one.
        """
        if minor >= 37:
            return replace(cls.none(), all_fails_on_any_pool=True)
        if minor == 36 and patch is not None:
            return cls(counters_leak=patch < 3, counters_keyed_by_pool_name=patch < 4)
        return cls()

    @classmethod
    def none(cls) -> Quirks:
        """An allocator without known defects."""
        return cls(**{entry.name: False for entry in fields(cls)})

    def without(self, name: str) -> Quirks:
        """The same defects but one."""
        return replace(self, **{name: False})
