from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_dra.allocation.slices_seen import apply_rules
from kubectl_dra.api.taints import DeviceTaintRule
from tools.builders import device, slice_of

NAMES = ("d", "e", None)
POOLS = ("p", "q", None)
DEVICES = ("a", "b", None)


def rule(number: int, selector: dict[str, Any] | None) -> DeviceTaintRule:
    spec: dict[str, Any] = {"taint": {"key": f"k{number}", "effect": "NoSchedule"}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return DeviceTaintRule.from_json({"metadata": {"name": f"r{number}"}, "spec": spec})


@pytest.mark.parametrize("seed", range(30))
def test_taints_are_those_of_the_rules_that_select_a_device_in_their_order(seed: int) -> None:
    dice = random.Random(seed)
    rules = []
    for number in range(dice.randrange(1, 9)):
        chosen = {"driver": dice.choice(NAMES), "pool": dice.choice(POOLS), "device": dice.choice(DEVICES)}
        named = {name: value for name, value in chosen.items() if value is not None}
        rules.append(rule(number, named if dice.random() < 0.9 else None))
    devices = [device("a", taint="own:NoExecute"), device("b"), device("c")]
    slices = [slice_of(*devices, pool=pool, driver=driver) for pool in ("p", "q") for driver in ("d", "e")]
    for before, after in zip(slices, apply_rules(slices, rules), strict=True):
        for one, tainted in zip(before.devices, after.devices, strict=True):
            added = [entry.taint for entry in rules if entry.selects(before.driver, before.pool.name, one.name)]
            assert tainted == replace(one, taints=(*one.taints, *added))
            assert added or tainted is one


def test_devices_that_were_one_object_are_one_afterwards() -> None:
    first = slice_of(device("a"), device("b"), pool="p")
    others = [replace(first, name=name, pool=first.pool._replace(name=name)) for name in ("q", "r", "s")]
    tainted = apply_rules([first, *others], [rule(1, {"driver": "d"}), rule(2, {"pool": "s", "device": "b"})])
    assert tainted[0].devices is tainted[1].devices is tainted[2].devices
    assert tainted[3].devices is not tainted[0].devices
    assert tainted[3].devices[0] is tainted[0].devices[0]
    untouched = apply_rules([first], [rule(1, {"driver": "x"}), rule(2, None)])
    assert untouched[0] is first
