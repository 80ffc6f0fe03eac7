"""Where devices fail is kept by slice, and told of each device, whatever nodes see of its slice."""

from __future__ import annotations

import random

import pytest

from kubectl_dra.api.nodes import Node
from kubectl_dra.explain.funnel.device_view import DeviceView
from kubectl_dra.explain.funnel.shown import StageName
from kubectl_dra.explain.funnel.stages import Failures, StageResult
from tools.builders import cycle, device, slice_of

NODES = [Node.named(f"n{index}") for index in range(3)]
SLICES = [
    slice_of(*(device(f"a{index}") for index in range(4)), name="local", pool="local", node="n0"),
    slice_of(*(device(f"b{index}") for index in range(3)), name="first", pool="two", allNodes=True, count=2),
    slice_of(device("c0"), device("c1"), name="second", pool="two", allNodes=True, count=2),
    slice_of(
        *(device(f"d{index}", nodeName=f"n{index % 2}") for index in range(4)),
        name="parts",
        pool="parts",
        perDeviceNodeSelection=True,
    ),
]


@pytest.mark.parametrize("seed", range(20))
def test_each_device_has_its_own_failure(seed: int) -> None:
    chance = random.Random(seed)
    view = DeviceView(cycle(SLICES), NODES, {})
    stages = [StageResult(name, "") for name in (StageName.NODE, StageName.POOL, StageName.HELD)]
    expected: dict[int, int | None] = {}
    for item in view.published:
        position = expected[id(item)] = chance.choice([None, 0, 1, 2])
        if position is not None:
            stages[position].fail(item, chance.choice(["same", "same", str(item.id)]))
    failures = Failures(view, stages)
    assert [(id(item), position) for item, position in failures.each()] == list(expected.items())
    for node in NODES:
        seen = [id(item) for item in view.on_node(node.name)]
        assert failures.shape(node.name) == tuple(map(expected.__getitem__, seen))
        assert [id(item) for item, _ in failures.on_node(node.name)] == seen
    names = [node.name for node in NODES]
    assert len(view.on_node("n0")) == 11
    every = dict.fromkeys(id(item) for name in names for item in view.on_node(name))
    assert [(id(item), position) for item, position in failures.on_nodes(names)] == [
        (key, expected[key]) for key in every
    ]
    for position, stage in enumerate(stages):
        assert failures.reasons(stage.failed, position) == tuple(stage.reasons)
    assert all(failures.reason(item, expected[id(item)]) == "" for item in view.published if expected[id(item)] is None)
