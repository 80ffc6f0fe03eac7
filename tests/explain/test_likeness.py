"""Nodes that an attempt cannot tell apart are rejected alike; and nodes that differ in what nobody reads are that."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from typing import Any

import pytest

from kubectl_dra.allocation.attempt import Attempt, AttemptVerdict, Cycle
from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import pools_of_node
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import ResourceSlice
from kubectl_dra.scheduling.node_equivalence import NodeEquivalence
from tools.builders import claim, cycle, device, first_available, held, request, slice_of, sub

SHARE: dict[str, Any] = {"shareID": "s", "consumedCapacity": {"m": "3"}}


def likeness(cycle: Cycle, claims: Sequence[ResourceClaim], nodes: Sequence[Node]) -> list[Hashable]:
    seen = NodeEquivalence(cycle, claims)
    return [seen.of(node, pools_of_node(cycle.index, node, cycle.features, cycle.defects)) for node in nodes]


def nodes(number: int) -> list[Node]:
    return [Node.named(f"n{index}", {"half": str(index % 2)}) for index in range(number)]


def local(index: int, *devices: Any, **fields: Any) -> ResourceSlice:
    return slice_of(*devices, pool=f"n{index}", node=f"n{index}", name=fields.pop("name", f"s{index}"), **fields)


def apart(
    first: dict[str, Any], second: dict[str, Any], asking: ResourceClaim, *holders: ResourceClaim, **options: Any
) -> bool:
    """Whether two nodes with one device each are told apart."""
    made = cycle([local(0, first), local(1, second)], allocated=holders, **options)
    one, other = likeness(made, [asking], nodes(2))
    assert one is not None
    assert other is not None
    return one != other


@pytest.mark.parametrize(
    ("first", "second", "asking", "expected"),
    [
        ({"a": "x"}, {"a": "y"}, request(), False),
        ({"a": "x"}, {"a": "y"}, request(selector='device.attributes["d"].a == "z"'), False),
        ({"a": "x"}, {"a": "y"}, request(selector='device.attributes["d"].a == "y"'), True),
        ({"m": 5}, {"m": 6}, request(), False),
        ({"m": 5, "multi": True}, {"m": 6, "multi": True}, request(), True),
        ({"m": 5}, {"m": 6}, request(m=7), True),
        ({"m": 5}, {"m": 6}, request(selector="false", m=7), False),
        ({"taint": "t:NoSchedule"}, {"taint": "t2:NoSchedule"}, request(), False),
        ({"taint": "t:NoSchedule"}, {}, request(), True),
        ({"taint": "t:NoSchedule"}, {}, request(tolerations=[{"operator": "Exists"}]), False),
        ({"m": 5, "multi": True}, {"m": 5}, request(), True),
        ({"bindingConditions": ["b"]}, {}, request(), True),
    ],
)
def test_what_is_read_of_a_device(
    first: dict[str, Any], second: dict[str, Any], asking: dict[str, Any], expected: bool
) -> None:
    assert apart(device("one", **first), device("one", **second), claim(asking)) is expected


def test_names_are_not_read_and_constraints_are() -> None:
    one, other = device("gpu-123", a="x"), device("gpu-456", a="y")
    assert not apart(one, other, claim(request()))
    assert apart(one, other, claim(request(), constraints=[{"matchAttribute": "d/a"}]))
    assert apart(one, other, claim(request(), constraints=[{"distinctAttribute": "d/a"}]))


def test_what_others_hold() -> None:
    free, other = device("a", m=5, multi=True), device("b", m=5, multi=True)
    for holder in (held("a", pool="n0"), held("a", pool="n0", **SHARE)):
        assert apart(free, other, claim(request()), holder)
        assert not apart(free, other, claim(request(selector="false")), holder)
    both = [held("a", pool="n0"), held("b", pool="n1")]
    assert not apart(free, other, claim(request()), *both)
    # Nobody gets either, so what they are is not read; unless all are asked for, or for administration.
    different = device("b", m=6)
    assert not apart(free, different, claim(request()), *both)
    assert apart(free, different, claim(request(all=True)), *both)
    assert apart(free, different, claim(request(admin=True)), *both)


def test_pools_that_are_not_usable() -> None:
    slices = [local(0, device("a"), count=2), local(1, device("b"), device("b")), local(2, device("c"), count=2)]
    first, second, third = likeness(cycle(slices), [claim(request())], nodes(3))
    assert first == third
    assert first != second
    assert likeness(cycle(slices), [claim(request(all=True))], nodes(3)) == [None] * 3


def test_counters() -> None:
    def made(used: int, limit: int, *holders: ResourceClaim) -> list[Hashable]:
        slices = [local(index, counters={"s.c": 2}, count=2, name=f"c{index}") for index in range(3)]
        slices[2] = local(2, counters={"s.c": limit}, count=2, name="c2")
        slices += [local(index, device("a", consumes={"s.c": 1}), count=2) for index in (0, 2)]
        slices.append(local(1, device("b", consumes={"s.c": used}), count=2))
        return likeness(cycle(slices, allocated=holders), [claim(request())], nodes(3))

    first, second, third = made(1, 2)
    assert first == second == third
    first, second, third = made(2, 3)
    assert len({first, second, third}) == 3
    first, second, third = made(1, 2, held("b", pool="n1"))
    assert first == third != second


def test_counters_that_drivers_of_one_pool_name_mix_up_are_left_alone() -> None:
    def pools(driver: str) -> list[ResourceSlice]:
        counters = local(0, counters={"s.c": 2}, count=2, driver=driver, name=f"{driver}-c")
        return [local(0, device("a", consumes={"s.c": 1}), count=2, driver=driver, name=driver), counters]

    one = [claim(request())]
    assert likeness(cycle(pools("d")), one, nodes(1)) != [None]
    assert likeness(cycle([*pools("d"), *pools("e")]), one, nodes(1)) == [None]
    assert likeness(cycle([*pools("d"), *pools("e")], defects=KnownDefects.none()), one, nodes(1)) != [None]


@pytest.mark.parametrize("seed", range(150))
def test_random_clusters(seed: int) -> None:
    """Attempts run for the first of each kind of nodes only tell the same as attempts on all of them."""
    dice = random.Random(seed)
    all_nodes = nodes(10)
    slices, holders = _cluster(dice, all_nodes)
    claims = [_claim(dice, number) for number in range(dice.choice([1, 1, 2]))]
    defects = dice.choice([KnownDefects(), KnownDefects(), KnownDefects.none()])
    features = dice.choice([Features(), Features(), Features(consumable_capacity=False, device_taints=False)])
    options: dict[str, Any] = {"allocated": holders, "defects": defects, "features": features, "classes": _CLASSES}
    every = [cycle(slices, **options)]
    single = [every[0].attempt(node, claims) for node in all_nodes]
    grouped = cycle(slices, **options)
    seen = NodeEquivalence(grouped, claims)
    rejected: dict[Hashable, Attempt] = {}
    for node, expected in zip(all_nodes, single, strict=True):
        try:
            pools = pools_of_node(grouped.index, node, features, defects)
        except AllocationError:
            continue
        key = seen.of(node, pools)
        attempt = rejected.get(key) if key is not None else None
        if attempt is None:
            attempt = grouped.attempt(node, claims, pools=pools)
            if attempt.verdict is AttemptVerdict.REJECTED:
                rejected[key] = attempt
        assert (attempt.verdict, attempt.message, attempt.would_time_out) == (
            expected.verdict,
            expected.message,
            expected.would_time_out,
        ), node.name
        assert attempt.allocations == expected.allocations
        assert attempt.steps == expected.steps


_CLASSES = {"c": ('device.driver == "d"',), "any": ()}
_SELECTORS = (
    'device.attributes["d"].a == "x"',
    'device.attributes["d"].a != "x"',
    'device.attributes["d"].?own.orValue(1) < 0',
    'device.capacity["d"].m.compareTo(quantity("5")) >= 0',
    "true",
)


def _cluster(dice: random.Random, all_nodes: Sequence[Node]) -> tuple[list[ResourceSlice], list[ResourceClaim]]:
    slices: list[ResourceSlice] = []
    holders: list[ResourceClaim] = []
    counted, multi, whole = dice.random() < 0.4, dice.random() < 0.4, dice.random() < 0.4
    kinds = [[_kind(dice, counted=counted, multi=multi) for _ in range(dice.choice([2, 2, 3]))] for _ in range(2)]
    for index, _ in enumerate(all_nodes):
        devices = [
            device(
                f"{dice.choice(['', index])}d{number}",
                attributes={"a": {"string": dice.choice([a, a, a, "x"])}, "own": {"int": index * 10 + number}},
                **fields,
            )
            for number, (a, fields) in enumerate(dice.choice(kinds))
        ]
        broken = 1 if dice.random() < 0.1 else 0
        slices.append(local(index, *devices, count=1 + counted + broken))
        if counted:
            slices.append(local(index, counters={"s.c": dice.choice([2, 2, 2, 3])}, count=2 + broken, name=f"c{index}"))
        if not whole and dice.random() < 0.6:
            name = devices[0]["name"]
            use = SHARE if multi else {}
            holders.append(held(name, name=f"h{index}", pool=f"n{index}", **use))
    if dice.random() < 0.3:
        scopes: list[dict[str, Any]] = [{"allNodes": True}, {"nodeName": "n3"}, _half("0"), _half("1")]
        shared = [device(f"s{number}", a="x", m=5, **dice.choice(scopes)) for number in range(3)]
        slices.append(slice_of(*shared, pool="shared", name="shared", perDeviceNodeSelection=True))
    if dice.random() < 0.2:
        slices.append(slice_of(device("e", a="x"), driver="e", pool="n3", node="n3"))
    return slices, holders


def _kind(dice: random.Random, *, counted: bool, multi: bool) -> tuple[str, dict[str, Any]]:
    """The attribute ``a`` of a device, and what else it has."""
    return dice.choice("xxy"), {
        "m": dice.choice([4, 4, 6]),
        "multi": multi and dice.random() < 0.8,
        "consumes": {"s.c": dice.choice([1, 2])} if counted and dice.random() < 0.8 else None,
        "taint": dice.choice(["", "", "", "t:NoSchedule"]),
    }


def _half(value: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "half", "operator": "In", "values": [value]}]}
    return {"nodeSelector": {"nodeSelectorTerms": [term]}}


def _claim(dice: random.Random, number: int) -> ResourceClaim:
    def fields() -> dict[str, Any]:
        out: dict[str, Any] = {"class_name": dice.choice(["c", "c", "c", "any"])}
        if dice.random() < 0.6:
            out["selector"] = dice.choice(_SELECTORS)
        if dice.random() < 0.2:
            out["all"] = True
        else:
            out["count"] = dice.choice([1, 2, 3])
        if dice.random() < 0.3:
            out["m"] = dice.choice([1, 3, 5])
        if dice.random() < 0.1:
            out["admin"] = True
        if dice.random() < 0.3:
            out["tolerations"] = [{"key": "t", "operator": "Exists"}]
        return out

    requests = []
    for position in range(dice.choice([1, 1, 2])):
        if dice.random() < 0.2:
            subs = [{**fields(), "admin": False} for _ in range(2)]
            requests.append(first_available(f"r{position}", *(sub(f"s{at}", **one) for at, one in enumerate(subs))))
        else:
            requests.append(request(f"r{position}", **fields()))
    constraints = []
    if dice.random() < 0.3:
        constraints.append({dice.choice(["matchAttribute", "distinctAttribute"]): dice.choice(["d/a", "d/own"])})
    return claim(*requests, name=f"claim{number}", constraints=constraints)
