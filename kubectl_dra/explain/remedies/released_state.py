"""The allocated state without some claims, without going through all the others again."""

from __future__ import annotations

from collections.abc import Collection

from kubectl_dra.allocation.features import Features
from kubectl_dra.allocation.state import AllocatedState, allocated_state
from kubectl_dra.api.claims import ResourceClaim


def released(state: AllocatedState, claims: Collection[ResourceClaim], features: Features) -> AllocatedState:
    """The state in which these claims have given their devices back; what else holds a device stays."""
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
    return AllocatedState(
        exclusive=state.exclusive - touched | (again.exclusive & touched),
        shared=state.shared - touched | (again.shared & touched),
        consumed={device: used for device, used in state.consumed.items() if device not in devices} | kept,
        holders={device: entry for device, entry in state.holders.items() if device not in devices} | held,
    )
