"""Devices that are already allocated in the cluster, as the scheduler counts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import TypeVar

from msgspec import Struct

from kubectl_dra.allocation.features import Features
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.layered_table import layered

V = TypeVar("V")


class AllocatedState(Struct, frozen=True, dict=True):
    """What all allocated claims of the cluster hold.

    ``exclusive``: devices that nobody else can get. ``shared``: devices with at least one share.
    ``consumed``: capacity taken per shared device, by capacity name. ``holders``: the claims per device, for
    explanations. Claims with admin access hold nothing. Of the first two only the keys count.
    """

    exclusive: Mapping[DeviceID, object]
    shared: Mapping[DeviceID, object]
    consumed: Mapping[DeviceID, Mapping[str, Quantity]]
    holders: Mapping[DeviceID, tuple[ResourceClaim, ...]]

    @cached_property
    def exclusive_by_pool(self) -> Mapping[tuple[str, str], Set[str]]:
        """The names of ``exclusive`` by driver and pool."""
        names_by_pool: dict[tuple[str, str], list[str]] = {}
        for driver, pool, name in self.exclusive:
            names_by_pool.setdefault((driver, pool), []).append(name)
        # In most pools devices have the same names.
        shared: dict[frozenset[str], frozenset[str]] = {}
        return {pool: shared.setdefault(names := frozenset(held), names) for pool, held in names_by_pool.items()}

    def in_use(self, device: DeviceID) -> bool:
        """Whether the device takes its counters: held exclusively, shared, or with consumed capacity."""
        return device in self.exclusive or device in self.shared or device in self.consumed


def allocated_state(claims: Iterable[ResourceClaim], features: Features) -> AllocatedState:
    """Collect the state from every claim with an allocation, whether reserved or deleted or not."""
    exclusive: list[DeviceID] = []
    shared: dict[DeviceID, bool] = {}
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
            shared[device] = True
            if result.consumed_capacity:
                total = consumed.setdefault(device, {})
                for name, amount in result.consumed_capacity.items():
                    total[name] = total[name] + amount if name in total else amount
    # A table of all held devices would take as much memory as that of their holders.
    return AllocatedState(dict.fromkeys(exclusive, True) if shared else holders, shared, consumed, holders)


def changed_state(
    state: AllocatedState,
    changes: Sequence[tuple[ResourceClaim | None, ResourceClaim | None]],
    features: Features,
) -> AllocatedState:
    """The state after claims have become others: each as it was, and as it is then; None where it is not there."""
    after = {id(was): now for was, now in changes if was is not None}
    devices = dict.fromkeys(device for pair in changes for claim in pair if claim for device in claim.devices)
    if not devices:
        return state
    # Devices that other claims hold, too, stay held.
    holding = (after.get(id(claim), claim) for device in devices for claim in state.holders.get(device, ()))
    claims = {id(claim): claim for claim in (*holding, *(now for _, now in changes)) if claim is not None}
    again = allocated_state(claims.values(), features)
    holders = _updated(state.holders, again.holders, devices)
    shared = _updated(state.shared, again.shared, devices)
    exclusive = _updated(state.exclusive, again.exclusive, devices) if shared else holders
    out = AllocatedState(exclusive, shared, _updated(state.consumed, again.consumed, devices), holders)
    known = state.__dict__.get("exclusive_by_pool")
    if known is not None:
        names: dict[tuple[str, str], set[str]] = {}
        for device in devices:
            own = names.setdefault(device[:2], set(known.get(device[:2], ())))
            (own.add if device in exclusive else own.discard)(device.device)
        out.__dict__["exclusive_by_pool"] = layered(known, {pool: held or None for pool, held in names.items()})
    return out


def _updated(
    table: Mapping[DeviceID, V], again: Mapping[DeviceID, V], devices: Iterable[DeviceID]
) -> Mapping[DeviceID, V]:
    """The table with what is known again of some devices."""
    return layered(table, {device: again.get(device) for device in devices})
