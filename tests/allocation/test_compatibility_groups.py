"""Compatibility groups of devices that draw on one counter set."""

from __future__ import annotations

import pytest

from kubectl_dra.allocation.counters import Common, GroupClash, GroupLedger
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import Pool, SliceIndex, pools_of_node
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.releases import Release
from kubectl_dra.api.slices import ResourceSlice
from tools.builders import held

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
