"""Devices that are already allocated in the cluster, as the scheduler counts them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from functools import cached_property

from msgspec import Struct

from kubectl_dra.allocation.features import Features
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID


class AllocatedState(Struct, frozen=True, dict=True):
    """What all allocated claims of the cluster hold.

    ``exclusive``: devices that nobody else can get. ``shared``: devices with at least one share.
    ``consumed``: capacity taken per shared device, by capacity name. ``holders``: the claims per device, for
    explanations. Claims with admin access hold nothing.
    """

    exclusive: Set[DeviceID]
    shared: Set[DeviceID]
    consumed: Mapping[DeviceID, Mapping[str, Quantity]]
    holders: Mapping[DeviceID, tuple[ResourceClaim, ...]]

    @cached_property
    def exclusive_by_pool(self) -> Mapping[tuple[str, str], Set[str]]:
        """The names of ``exclusive`` by driver and pool."""
        found: dict[tuple[str, str], list[str]] = {}
        for driver, pool, name in self.exclusive:
            found.setdefault((driver, pool), []).append(name)
        # In most pools devices have the same names.
        shared: dict[frozenset[str], frozenset[str]] = {}
        return {pool: shared.setdefault(names := frozenset(held), names) for pool, held in found.items()}

    def in_use(self, device: DeviceID) -> bool:
        """Whether the device takes its counters: held exclusively, shared, or with consumed capacity."""
        return device in self.exclusive or device in self.shared or device in self.consumed


def allocated_state(claims: Iterable[ResourceClaim], features: Features) -> AllocatedState:
    """Collect the state from every claim with an allocation, whether reserved or deleted or not."""
    exclusive: list[DeviceID] = []
    shared: set[DeviceID] = set()
    consumed: dict[DeviceID, dict[str, Quantity]] = {}
    holders: dict[DeviceID, tuple[ResourceClaim, ...]] = {}
    sharing = features.consumable_capacity
    for claim in claims:
        if claim.allocation is None:
            continue
        alone = (claim,)
        for result in claim.allocation.results:
            if result.admin_access:
                continue
            device, known = result.device, len(holders)
            holder = holders.setdefault(device, alone)
            if len(holders) == known:
                holders[device] = (*holder, claim)
            if not result.share_id or not sharing:
                exclusive.append(device)
                continue
            shared.add(device)
            if result.consumed_capacity:
                total = consumed.setdefault(device, {})
                for name, amount in result.consumed_capacity.items():
                    total[name] = total[name] + amount if name in total else amount
    # A view of the keys takes no memory, and a set of all held devices as much as their holders.
    return AllocatedState(frozenset(exclusive) if shared else holders.keys(), frozenset(shared), consumed, holders)


def released(state: AllocatedState, claims: Collection[ResourceClaim], features: Features) -> AllocatedState:
    """The state after these claims have given up their devices. Devices held by other claims, too, stay held."""
    gone = {id(claim) for claim in claims}
    devices = dict.fromkeys(
        result.device for claim in claims if claim.allocation is not None for result in claim.allocation.results
    )
    others = {
        id(claim): claim for device in devices for claim in state.holders.get(device, ()) if id(claim) not in gone
    }
    again = allocated_state(others.values(), features)
    touched = devices.keys()
    kept = {device: again.consumed[device] for device in touched & again.consumed.keys()}
    held = {device: again.holders[device] for device in touched & again.holders.keys()}
    holders = {device: entry for device, entry in state.holders.items() if device not in devices} | held
    shared = state.shared - touched | (again.shared & touched)
    return AllocatedState(
        exclusive=state.exclusive - touched | (again.exclusive & touched) if shared else holders.keys(),
        shared=shared,
        consumed={device: used for device, used in state.consumed.items() if device not in devices} | kept,
        holders=holders,
    )


def taken(state: AllocatedState, claims: Collection[ResourceClaim], features: Features) -> AllocatedState:
    """The state in which these claims, which held nothing before, have their devices as well."""
    more = allocated_state(claims, features)
    consumed, holders = dict(state.consumed), dict(state.holders)
    for device, amounts in more.consumed.items():
        total = dict(consumed.get(device, {}))
        for name, amount in amounts.items():
            total[name] = total[name] + amount if name in total else amount
        consumed[device] = total
    for device, own in more.holders.items():
        holders[device] = (*holders.get(device, ()), *own)
    return AllocatedState(state.exclusive | more.exclusive, state.shared | more.shared, consumed, holders)
