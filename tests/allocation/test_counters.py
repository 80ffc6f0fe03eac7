"""The ledger of shared counters, and compatibility groups."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubectl_dra.allocation.counters import (
    Common,
    CounterLedger,
    CounterShortage,
    GroupClash,
    GroupLedger,
    available_counters,
)
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import Pool, SliceIndex, pools_of_node
from kubectl_dra.allocation.state import AllocatedState, allocated_state
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.releases import Release
from kubectl_dra.api.slices import Device, ResourceSlice
from tools.builders import JSON, device, held, slice_of


def pool_of(*devices: JSON, driver: str = "d", **counters: object) -> Pool:
    slices: list[ResourceSlice] = [
        slice_of(*devices, driver=driver, count=2, name="1"),
        slice_of(driver=driver, counters={key.replace("_", "."): value for key, value in counters.items()}, count=2),
    ]
    (pool,) = pools_of_node(SliceIndex(slices), Node.named("n1"), Features(), KnownDefects()).pools
    assert pool.usable, pool.invalid
    return pool


def state_of(*claims: ResourceClaim) -> AllocatedState:
    return allocated_state(claims, Features())


def devices_of(pool: Pool) -> Sequence[Device]:
    return pool.slices[0].devices


def amounts(short: CounterShortage | GroupClash | None) -> tuple[str, ...] | None:
    if short is None:
        return None
    assert isinstance(short, CounterShortage)
    return short.counter_set, short.counter, str(short.available), str(short.charged), str(short.needed)


def test_allocated_devices_leave_less_even_less_than_nothing() -> None:
    pool = pool_of(device("a", consumes={"s.x": 3}), device("b", consumes={"s.x": 3}), s_x=4)
    assert {
        name: str(left) for name, left in available_counters(pool, state_of(held("a")), KnownDefects())["s"].items()
    } == {"x": "1"}
    assert str(available_counters(pool, state_of(held("a", "b")), KnownDefects())["s"]["x"]) == "-2"


def test_a_device_is_charged_whole_or_not_at_all() -> None:
    pool = pool_of(device("a", consumes={"s.x": 3, "s.y": 1}), device("b", consumes={"s.x": 1, "s.y": 2}), s_x=4, s_y=2)
    a, b = devices_of(pool)
    ledger = CounterLedger({}, state_of(), KnownDefects())
    assert ledger.charge(pool, a) is None
    assert amounts(ledger.charge(pool, b)) == ("s", "y", "2", "1", "2")
    # Nothing of the refused device stays.
    assert {name: str(amount) for name, amount in ledger.copy()[ledger.key(pool)]["s"].items()} == {"x": "3", "y": "1"}
    ledger.release(pool, a)
    assert ledger.charges() == ()
    assert ledger.charge(pool, b) is None


def test_a_counter_that_is_overdrawn_blocks_devices_that_do_not_use_it() -> None:
    devices = device("a", consumes={"s.x": 3}), device("b", consumes={"s.x": 3}), device("c", consumes={"t.z": 1})
    pool = pool_of(*devices, s_x=4, t_z=5)
    ledger = CounterLedger({}, state_of(held("a", "b")), KnownDefects())
    assert amounts(ledger.charge(pool, devices_of(pool)[2])) == ("s", "x", "-2", "0", "0")


def test_a_share_of_a_device_charges_it() -> None:
    pool = pool_of(device("a", consumes={"s.x": 3}, m=10, multi=True), s_x=4)
    shared = held("a", shareID="1", consumedCapacity={"m": "1"})
    assert str(available_counters(pool, state_of(shared), KnownDefects())["s"]["x"]) == "1"


def test_drivers_with_one_pool_name_share_a_table_up_to_1363() -> None:
    mine, theirs = (pool_of(device("a", consumes={"s.x": 3}), driver=driver, s_x=4) for driver in ("d", "e"))
    mixed = CounterLedger({}, state_of(), KnownDefects())
    assert mixed.charge(mine, devices_of(mine)[0]) is None
    assert amounts(mixed.charge(theirs, devices_of(theirs)[0])) == ("s", "x", "4", "3", "3")
    apart = CounterLedger({}, state_of(), KnownDefects(counters_keyed_by_pool_name=False))
    assert apart.charge(mine, devices_of(mine)[0]) is None
    assert apart.charge(theirs, devices_of(theirs)[0]) is None


def test_a_copy_is_restored() -> None:
    pool = pool_of(device("a", consumes={"s.x": 1}), s_x=4)
    (one,) = devices_of(pool)
    ledger = CounterLedger({}, state_of(), KnownDefects())
    ledger.charge(pool, one)
    before, kept = ledger.charges(), ledger.copy()
    ledger.charge(pool, one)
    ledger.restore(kept)
    assert ledger.charges() == before


# Compatibility groups.

GROUPS = {"a": ["x", "y"], "b": ["y"], "c": ["z"], "plain": [], "plainer": []}


def slices() -> list[ResourceSlice]:
    """Devices that take nothing of one counter set, named like their groups above."""
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    devices = [
        {"name": name, "consumesCounters": [{"counterSet": "s", "counters": {}, "compatibilityGroups": groups}]}
        for name, groups in GROUPS.items()
    ]
    base = {"driver": "d", "nodeName": "n1", "pool": pool}
    return [
        ResourceSlice.from_json({"metadata": {"name": "devices"}, "spec": {**base, "devices": devices}}),
        ResourceSlice.from_json(
            {"metadata": {"name": "sets"}, "spec": {**base, "sharedCounters": [{"name": "s", "counters": {}}]}}
        ),
    ]


def seen(gates: set[str]) -> tuple[Pool, ...]:
    release = Release(1, 37)
    features = Features.from_gates({"DRAPartitionableDevices", "DRAConsumableCapacity", *gates}, release)
    return pools_of_node(SliceIndex(slices()), Node.named("n1"), features, KnownDefects.of_release(release)).pools


@pytest.mark.parametrize(
    ("inside", "joins", "admitted"),
    [
        ("", "c", True),
        ("a", "b", True),
        ("a", "c", False),
        ("a", "plain", False),
        ("plain", "plainer", True),
        ("plain", "a", False),
    ],
)
def test_who_may_join(inside: str, joins: str, admitted: bool) -> None:
    (pool,) = seen({"DRADeviceCompatibilityGroups"})
    by_name = {device.name: device for device in pool.slices[0].devices}
    ledger = GroupLedger({}, allocated_state([held(inside, driver="d", pool="p")] if inside else [], Features()))
    clash = ledger.join(pool, by_name[joins])
    assert (clash is None) is admitted
    if clash is not None:
        assert clash == GroupClash("s", tuple(GROUPS[joins]), tuple(GROUPS[inside]))


def test_what_is_left_in_common_comes_back() -> None:
    (pool,) = seen({"DRADeviceCompatibilityGroups"})
    by_name = {device.name: device for device in pool.slices[0].devices}
    ledger = GroupLedger({}, allocated_state([], Features()))
    assert ledger.join(pool, by_name["a"]) is None
    assert ledger.join(pool, by_name["b"]) is None
    assert ledger.join(pool, by_name["c"]) == GroupClash("s", ("z",), ("y",))
    ledger.leave(pool)
    ledger.leave(pool)
    assert ledger.join(pool, by_name["c"]) is None


def test_devices_in_use_that_contradict_each_other_admit_nobody() -> None:
    nothing = Common(frozenset("x"), False).joined(frozenset("y"))
    assert not nothing.admits(frozenset("x")) and not nothing.admits(frozenset())


def test_without_the_gate_the_slice_is_left_out() -> None:
    (pool,) = seen(set())
    assert pool.incomplete and (pool.found, pool.expected, pool.ignored) == (1, 2, 1)
