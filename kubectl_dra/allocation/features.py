"""What the allocator of a release can do, and which known defects it has."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api import known_defects
from kubectl_dra.api.versions import Release

BASELINE: Final = Release(1, 36)
FIRST_SORTED: Final = 36
"""The first minor release that tries pools by driver and name."""


_ALPHA: Final = frozenset(
    (
        "DRADerivedAttributes",
        "DRADeviceCompatibilityGroups",
        "DRAFractionalCapacityRange",
        "DRAListTypeAttributes",
        "DRAOptionalNodeOperations",
    )
)
"""Gates of 1.37 for which its scheduler does not choose the stable allocator."""


class Features(Struct, frozen=True):
    """What an allocator can do and how it goes about it; by default as in 1.36 with its gates.

    Up to ``taint_rules`` the fields follow from feature gates, the others from the release:
    ``stable`` is the variant that knows neither shares nor binding conditions, ``experimental`` the one with what is
    alpha; ``ignores_groups``: slices with compatibility groups are left out of their pools; ``any_pool_order``: pools
    and slices are tried in random order; ``loose_pools``: as up to 1.34, slices may have devices and their counters, a
    pool is complete if all of its slices are on the node, incomplete pools serve requests for a count, and an invalid
    pool that is reached ends the search; ``errors_name_device``: those of selectors do.
    """

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    binding_conditions: bool = True
    consumable_capacity: bool = True
    list_attributes: bool = False
    fractional_capacity: bool = False
    compatibility_groups: bool = False
    derived_attributes: bool = False
    node_operations: bool = False
    experimental: bool = False
    ignores_groups: bool = False
    extended_resources: bool = True
    taint_rules: bool = False
    stable: bool = False
    any_pool_order: bool = False
    loose_pools: bool = False
    tolerations_in_result: bool = True
    errors_name_device: bool = False

    @classmethod
    def from_gates(cls, gates: Set[str], release: Release = BASELINE) -> Features:
        """The features of a release's scheduler that runs with these feature gates on."""
        binding, status = "DRADeviceBindingConditions" in gates, "DRAResourceClaimDeviceStatus" in gates
        sharing, minor = "DRAConsumableCapacity" in gates, release.minor
        new = frozenset(_ALPHA & gates if minor >= 37 else ())
        # Up to 1.34 either gate chooses the variant that knows more.
        stable = not (sharing or new or (binding or status if minor <= 34 else binding and status))
        return cls(
            admin_access="DRAAdminAccess" in gates,
            prioritized_list="DRAPrioritizedList" in gates,
            partitionable_devices="DRAPartitionableDevices" in gates,
            device_taints="DRADeviceTaints" in gates,
            binding_conditions=binding and status,
            consumable_capacity=sharing,
            list_attributes="DRAListTypeAttributes" in new,
            fractional_capacity="DRAFractionalCapacityRange" in new,
            compatibility_groups="DRADeviceCompatibilityGroups" in new,
            derived_attributes="DRADerivedAttributes" in new,
            node_operations="DRAOptionalNodeOperations" in new,
            experimental=bool(new - {"DRAFractionalCapacityRange"}),
            ignores_groups=minor >= 37 and "DRADeviceCompatibilityGroups" not in new,
            extended_resources="DRAExtendedResource" in gates,
            # Up to 1.34 rules have no gate of their own.
            taint_rules="DRADeviceTaints" in gates and (minor <= 34 or "DRADeviceTaintRules" in gates),
            stable=stable,
            any_pool_order=stable or minor < FIRST_SORTED,
            loose_pools=minor <= 34,
            tolerations_in_result=minor >= 35,
            errors_name_device=minor >= 37,
        )


class Quirks(Struct, frozen=True):
    """The defects from ``api.known_defects`` that an allocator has, under the same names; by default 1.36.2's."""

    counters_leak: bool = True
    counters_keyed_by_pool_name: bool = True
    distinct_remembers_one: bool = True
    all_fails_on_any_pool: bool = True
    all_drops_exhausted: bool = True
    claim_config_repeated: bool = True
    counter_slices_everywhere: bool = True
    capacity_wraps: bool = True
    share_without_capacity_charges: bool = True
    distinct_compares_nothing: bool = False
    later_all_continues_with_first: bool = False
    shares_charge_nothing: bool = False
    request_takes_share_twice: bool = False
    devices_of_claim_summed: bool = True

    @classmethod
    def of_release(cls, release: Release, patch: int | None = None) -> Quirks:
        """The defects of a release. A release newer than the facts has those still open.

        An unknown patch release is assumed to be an early one, but not to have a defect that lets more claims fit.
        """
        has = {name: defect.affects(release, patch) for name, defect in _DEFECTS.items()}
        return cls(**{name: known if known is not None else name not in _LENIENT for name, known in has.items()})

    @classmethod
    def none(cls) -> Quirks:
        """An allocator without known defects."""
        return cls(**dict.fromkeys(cls.__struct_fields__, False))

    def without(self, name: str) -> Quirks:
        """The same defects but one."""
        return replace(self, **{name: False})


_LENIENT: Final = {"shares_charge_nothing"}
_DEFECTS: Final[Mapping[str, known_defects.Defect]] = {
    name: getattr(known_defects, name.upper()) for name in Quirks.__struct_fields__
}
