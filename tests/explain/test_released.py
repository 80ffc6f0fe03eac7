"""Devices given back by some claims leave the state that the other claims alone would make."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.allocation.features import Features
from kubectl_dra.allocation.state import AllocatedState, allocated_state, released
from kubectl_dra.api.claims import Allocation, DeviceResult, ResourceClaim
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import DeviceID

RESULTS = st.builds(
    lambda device, share, amount, admin: DeviceResult(
        "r",
        DeviceID("d", "p", f"gpu-{device}"),
        share_id=share,
        consumed_capacity={"memory": Quantity.parse(str(amount))} if share else {},
        admin_access=admin,
    ),
    st.integers(0, 4),
    st.sampled_from(("", "one", "two")),
    st.integers(0, 9),
    st.booleans(),
)
CLAIMS = st.lists(st.lists(RESULTS, max_size=4), max_size=6)


def claims_of(results: list[list[DeviceResult]]) -> list[ResourceClaim]:
    return [
        ResourceClaim(metadata=ObjectMeta(name=f"c{index}"), allocation=Allocation(tuple(entries), None))
        for index, entries in enumerate(results)
    ]


def shape(state: AllocatedState) -> object:
    holders = {device: {claim.metadata.name for claim in entry} for device, entry in state.holders.items()}
    return state.exclusive, state.shared, state.consumed, holders


@given(CLAIMS, st.sets(st.integers(0, 5)), st.booleans())
def test_equals_the_state_of_the_others(results: list[list[DeviceResult]], chosen: set[int], sharing: bool) -> None:
    claims = claims_of(results)
    gates = frozenset({"DRAConsumableCapacity"}) if sharing else frozenset[str]()
    features = Features.from_gates(gates)
    gone = [claim for index, claim in enumerate(claims) if index in chosen]
    kept = [claim for index, claim in enumerate(claims) if index not in chosen]
    after = released(allocated_state(claims, features), gone, features)
    assert shape(after) == shape(allocated_state(kept, features))
