"""Which slices make the pools of a node, and in which state the pools are."""

from __future__ import annotations

import pytest

from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import NodePools, SliceIndex, pools_of_node
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import ResourceSlice
from tools.builders import device, slice_of


def pools(
    *slices: ResourceSlice, node: str = "n1", features: Features | None = None, defects: KnownDefects | None = None
) -> NodePools:
    return pools_of_node(SliceIndex(slices), Node.named(node), features or Features(), defects or KnownDefects())


def names(found: NodePools) -> list[str]:
    return [str(pool.id.name) for pool in found.pools]


def test_slices_of_other_nodes_are_left_out() -> None:
    assert names(pools(slice_of(device("a"), node="n2", pool="two"), slice_of(device("a"), pool="one"))) == ["one"]


def test_slices_of_a_pool_are_in_the_order_of_their_names() -> None:
    (pool,) = pools(slice_of(device("b"), name="2", count=2), slice_of(device("a"), name="1", count=2)).pools
    assert [entry.name for entry in pool.slices] == ["1", "2"]
    assert pool.usable


@pytest.mark.parametrize(("count", "usable"), [(1, False), (2, True), (3, False)])
def test_a_pool_is_complete_with_as_many_slices_as_it_says(count: int, usable: bool) -> None:
    (pool,) = pools(slice_of(device("a"), name="1", count=count), slice_of(device("b"), name="2", count=count)).pools
    assert pool.usable is usable
    assert pool.incomplete is not usable


def test_slices_of_other_nodes_make_a_pool_complete() -> None:
    (pool,) = pools(slice_of(device("a"), count=2), slice_of(device("b"), node="n2", count=2)).pools
    assert pool.usable and len(pool.slices) == 1 and len(pool.other_slices) == 1


def test_the_newest_generation_wins_and_the_older_is_told() -> None:
    found = pools(slice_of(device("a"), name="old"), slice_of(device("b"), name="new", generation=2))
    (pool,) = found.pools
    assert [entry.name for entry in pool.slices] == ["new"]
    assert [entry.name for entry in found.superseded] == ["old"]


def test_an_old_generation_is_obsolete_where_it_is_incomplete_and_another_node_has_a_newer_one() -> None:
    old = slice_of(device("a"), name="old", count=2)
    newer = slice_of(device("b"), node="n2", generation=2)
    found = pools(old, newer)
    assert found.pools == () and [pool.name for pool in found.obsolete] == ["p"]
    whole = pools(slice_of(device("a"), name="old"), newer)
    assert names(whole) == ["p"] and whole.obsolete == ()


@pytest.mark.parametrize(
    ("slices", "problem"),
    [
        ([slice_of(device("a"), device("a"))], "duplicate device name a"),
        (
            [
                slice_of(device("a", consumes={"s.x": 1}), count=2, name="1"),
                slice_of(counters={"t.x": 1}, count=2, name="2"),
            ],
            "counter set s not found",
        ),
        (
            [
                slice_of(device("a", consumes={"s.y": 1}), count=2, name="1"),
                slice_of(counters={"s.x": 1}, count=2, name="2"),
            ],
            "counter y not found in counter set s",
        ),
        (
            [
                slice_of(device("a"), count=3, name="1"),
                slice_of(counters={"s.x": 1}, count=3, name="2"),
                slice_of(counters={"s.x": 1}, count=3, name="3"),
            ],
            "duplicate counter set name s",
        ),
    ],
)
def test_an_invalid_pool(slices: list[ResourceSlice], problem: str) -> None:
    (pool,) = pools(*slices).pools
    assert not pool.usable and pool.invalid == problem


def test_counters_do_not_matter_without_their_feature() -> None:
    off = Features(partitionable_devices=False)
    (pool,) = pools(slice_of(device("a", consumes={"s.x": 1})), features=off).pools
    assert pool.usable
    assert pools(slice_of(counters={"s.x": 1}), features=off).pools == ()


def test_pools_that_wait_for_bindings_come_last() -> None:
    waiting = slice_of(device("a", bindingConditions=["c"], bindingFailureConditions=["f"]), pool="a")
    assert names(pools(waiting, slice_of(device("a"), pool="b"))) == ["b", "a"]


def test_a_selector_that_cannot_be_read_fails_every_node() -> None:
    bad = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "Sometimes"}]}]}
    with pytest.raises(AllocationError, match="node selection"):
        pools(slice_of(device("a"), nodeSelector=bad))


def test_counters_of_another_node_are_seen_up_to_136() -> None:
    theirs = slice_of(counters={"s.x": 1}, node="n2", count=2, pool="q")
    assert names(pools(theirs)) == ["q"]
    assert names(pools(theirs, defects=KnownDefects.none())) == []
