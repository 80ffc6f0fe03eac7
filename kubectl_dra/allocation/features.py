"""What the allocator of a release can do, and which known defects it has."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api import behaviour
from kubectl_dra.api.releases import UNTOLD, Release

ALPHA: Final = frozenset(
    (
        "DRADerivedAttributes",
        "DRADeviceCompatibilityGroups",
        "DRAFractionalCapacityRange",
        "DRAListTypeAttributes",
        "DRAOptionalNodeOperations",
    )
)
"""Gates of 1.37 for which its scheduler does not choose the stable allocator."""


class ReleaseBehaviour(Struct, frozen=True):
    """Behaviour of a release's allocator that no gate changes: the rows of ``api.behaviour`` of these names.

    ``either_gate_chooses``: either gate of binding conditions chooses the variant that knows more, not only both;
    ``loose_pools``: slices may have devices and their counters, incomplete pools serve requests for a count, and an
    invalid pool that is reached ends the search.
    """

    either_gate_chooses: bool
    knows_alpha: bool
    ignores_groups: bool
    sorted_pools: bool
    loose_pools: bool
    local_pools: bool
    rules_without_gate: bool

    @classmethod
    def of_release(cls, release: Release) -> ReleaseBehaviour:
        """The behaviour of a release."""
        return cls(**{name: release in row for name, row in BEHAVIOUR.items()})


BEHAVIOUR: Final[Mapping[str, behaviour.Behaviour]] = {
    name: getattr(behaviour, name.upper()) for name in ReleaseBehaviour.__struct_fields__
}
"""The rows of ``ReleaseBehaviour``, by name."""


class Features(Struct, frozen=True):
    """Features and behaviour of an allocator; by default as in 1.36 with its gates.

    Up to ``taint_rules`` the fields follow from feature gates, the others from the release:
    ``stable`` is the variant that knows neither shares nor binding conditions, ``experimental`` the one with what is
    alpha; ``any_pool_order``: pools and slices are tried in random order; the others are rows of ``api.behaviour``.
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
    local_pools: bool = False
    tolerations_in_result: bool = True
    errors_name_device: bool = False

    @classmethod
    def from_gates(
        cls, gates: Set[str], release: Release = UNTOLD, behaves: ReleaseBehaviour | None = None
    ) -> Features:
        """The features of a scheduler that runs with these feature gates on; it ``behaves`` as its release."""
        behaves = behaves or ReleaseBehaviour.of_release(release)
        binding, status = "DRADeviceBindingConditions" in gates, "DRAResourceClaimDeviceStatus" in gates
        sharing = "DRAConsumableCapacity" in gates
        new = frozenset(ALPHA & gates if behaves.knows_alpha else ())
        more = (binding or status) if behaves.either_gate_chooses else (binding and status)
        stable = not (sharing or new or more)
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
            ignores_groups=behaves.ignores_groups and "DRADeviceCompatibilityGroups" not in new,
            extended_resources="DRAExtendedResource" in gates,
            taint_rules="DRADeviceTaints" in gates and (behaves.rules_without_gate or "DRADeviceTaintRules" in gates),
            stable=stable,
            any_pool_order=stable or not behaves.sorted_pools,
            loose_pools=behaves.loose_pools,
            local_pools=behaves.local_pools,
            tolerations_in_result=release in behaviour.TOLERATIONS_IN_RESULT,
            errors_name_device=release in behaviour.ERRORS_NAME_DEVICE,
        )


class KnownDefects(Struct, frozen=True):
    """The defects from ``api.releases`` that an allocator has, under the same names; by default 1.36.2's."""

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
    def of_release(cls, release: Release, patch: int | None = None) -> KnownDefects:
        """The defects of a release. A release newer than the facts has those still open.

        An unknown patch release is assumed to be an early one, but not to have a defect that lets more claims fit.
        """
        has = {name: defect.affects(release, patch) for name, defect in DEFECTS.items()}
        return cls(**{name: known if known is not None else name not in _LENIENT for name, known in has.items()})

    @classmethod
    def none(cls) -> KnownDefects:
        """An allocator without known defects."""
        return cls(**dict.fromkeys(cls.__struct_fields__, False))

    def without(self, name: str) -> KnownDefects:
        """The same defects but one."""
        return replace(self, **{name: False})


_LENIENT: Final = {"shares_charge_nothing"}
DEFECTS: Final[Mapping[str, behaviour.Defect]] = {
    name: getattr(behaviour, name.upper()) for name in KnownDefects.__struct_fields__
}
"""The defects of ``KnownDefects``, by name."""
