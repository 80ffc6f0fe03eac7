"""What the allocator of a release can do, and which known defects it has."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api import known_defects
from kubectl_dra.api.versions import Release


class Features(Struct, frozen=True):
    """Allocator features, derived from the scheduler's feature gates (in 1.36 all on by default but list
    attributes).
    """

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
        """The features of a scheduler with these feature gates on."""
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


class Quirks(Struct, frozen=True):
    """The defects from ``api.known_defects`` that an allocator has, under the same names; all by default."""

    counters_leak: bool = True
    counters_keyed_by_pool_name: bool = True
    distinct_remembers_one: bool = True
    all_fails_on_any_pool: bool = True
    all_drops_exhausted: bool = True
    claim_config_repeated: bool = True
    counter_slices_everywhere: bool = True
    capacity_wraps: bool = True
    share_without_capacity_charges: bool = True

    @classmethod
    def of_release(cls, release: Release, patch: int | None = None) -> Quirks:
        """The defects of a release. A release newer than the facts has those still open.

        An unknown patch release is assumed to be an early one.
        """
        return cls(**{name: defect.affects(release, patch) is not False for name, defect in _DEFECTS.items()})

    @classmethod
    def none(cls) -> Quirks:
        """An allocator without known defects."""
        return cls(**dict.fromkeys(cls.__struct_fields__, False))

    def without(self, name: str) -> Quirks:
        """The same defects but one."""
        return replace(self, **{name: False})


_DEFECTS: Final[Mapping[str, known_defects.Defect]] = {
    name: getattr(known_defects, name.upper()) for name in Quirks.__struct_fields__
}
