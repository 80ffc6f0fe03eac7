"""Claims that become others leave the state that they would make if they were read afresh."""

from __future__ import annotations

from itertools import zip_longest

from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.allocation.features import Features
from kubectl_dra.allocation.state import AllocatedState, allocated_state, changed_state
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
    holders = {device: {id(claim) for claim in entry} for device, entry in state.holders.items()}
    return set(state.exclusive), set(state.shared), state.consumed, holders


@given(CLAIMS, st.lists(st.none() | st.lists(RESULTS, max_size=4), max_size=8), st.booleans(), st.booleans())
def test_equals_the_state_that_is_read_afresh(
    results: list[list[DeviceResult]], later: list[list[DeviceResult] | None], sharing: bool, by_pool: bool
) -> None:
    """Whatever becomes of claims: they give devices back, get others, are deleted or new."""
    gates = frozenset({"DRAConsumableCapacity"}) if sharing else frozenset[str]()
    features = Features.from_gates(gates)
    before = claims_of(results)
    become = [None if entries is None else claims_of([entries])[0] for entries in later]
    state = allocated_state(before, features)
    if by_pool:
        assert state.exclusive_by_pool is not None
    after = changed_state(state, list(zip_longest(before[: len(become)], become)), features)
    now = [claim for claim in (*become, *before[len(become) :]) if claim is not None]
    fresh = allocated_state(now, features)
    assert shape(after) == shape(fresh) and after.exclusive_by_pool == fresh.exclusive_by_pool
