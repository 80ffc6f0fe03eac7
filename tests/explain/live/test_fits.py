"""Pods that fit: the scheduler gives them the devices that explain says, in the same order."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from tools.controlplane.client import Json
from tools.controlplane.objects import device, request
from tools.live.referee import Referee
from tools.live.releases import Changed, expected, gates_of_fields, needs, needs_effect_none
from tools.live.tables import (
    ATTRIBUTE,
    CARD,
    HALVES,
    MODELS,
    NUMA,
    PLAIN,
    alternatives,
    filled,
    memory,
    shared,
    taint,
    where,
)


@dataclass(frozen=True)
class Fit:
    """Devices of one pool on one node, the claim's requests, and the devices that it gets."""

    devices: list[Json]
    requests: list[Json]
    gets: list[str] | Changed[list[str]]
    constraints: list[Json] = field(default_factory=list)
    counters: list[Json] = field(default_factory=list)
    slices: int = 1
    refused: str | Changed[str] = ""
    """The cause for which a release does not place it; empty where it does."""


FITS = {
    "first of several": Fit(PLAIN, [request("CLASS")], ["gpu-0"]),
    "count": Fit(PLAIN, [request("CLASS", count=3)], ["gpu-0", "gpu-1", "gpu-2"]),
    "slices in order of their names": Fit(PLAIN, [request("CLASS", count=3)], ["gpu-0", "gpu-1", "gpu-2"], slices=4),
    "selector": Fit(MODELS, [request("CLASS", selectors=[f'{ATTRIBUTE}.model == "b"'], count=2)], ["gpu-1", "gpu-3"]),
    "selector over capacity": Fit(
        [device("gpu-0", capacity={"memory": "9Gi"}), device("gpu-1", capacity={"memory": "0.5Ti"})],
        [request("CLASS", selectors=['device.capacity["DRIVER"].memory.isGreaterThan(quantity("10Gi"))'])],
        ["gpu-1"],
    ),
    "selector over version": Fit(
        [device(f"gpu-{index}", {"firmware": {"version": text}}) for index, text in enumerate(["1.9.0", "1.10.0"])],
        [request("CLASS", selectors=[f'{ATTRIBUTE}.firmware.isGreaterThan(semver("1.9.9"))'])],
        ["gpu-1"],
    ),
    "error behind the first device": Fit(
        [device("gpu-0", {"model": "a"}), device("gpu-1")],
        [request("CLASS", selectors=[f'{ATTRIBUTE}.model == "a"'])],
        ["gpu-0"],
    ),
    "attribute guarded": Fit(
        [device("gpu-0"), device("gpu-1", {"model": "a"})],
        [request("CLASS", selectors=[f'{ATTRIBUTE}.?model.orValue("") == "a"'])],
        ["gpu-1"],
    ),
    "same value": Fit(NUMA, [request("CLASS", count=2)], ["gpu-1", "gpu-3"], [{"matchAttribute": "DRIVER/numa"}]),
    "same value in two requests": Fit(
        NUMA,
        [request("CLASS", "a"), request("CLASS", "b")],
        ["gpu-1", "gpu-3"],
        [{"matchAttribute": "DRIVER/numa", "requests": ["a", "b"]}],
    ),
    "different values": Fit(
        MODELS, [request("CLASS", count=2)], ["gpu-0", "gpu-1"], [{"distinctAttribute": "DRIVER/model"}]
    ),
    "different values in two requests": Fit(
        [MODELS[0], MODELS[2], MODELS[3]],
        [request("CLASS", "a"), request("CLASS", "b")],
        Changed(["gpu-0", "gpu-2"], ["gpu-0", "gpu-3"], ("1.35",)),
        [{"distinctAttribute": "DRIVER/model"}],
    ),
    "first alternative": Fit(MODELS, [alternatives({"count": 2}, {})], ["gpu-0", "gpu-1"]),
    "fallback": Fit(MODELS, [alternatives({"count": 5}, where(f'{ATTRIBUTE}.model == "b"'))], ["gpu-1"]),
    "fallback because of a later request": Fit(
        MODELS[:2],
        [alternatives({"count": 2}, {}), request("CLASS", "other", selectors=[f'{ATTRIBUTE}.model == "a"'])],
        ["gpu-1", "gpu-0"],
    ),
    "alternative with All": Fit(
        MODELS,
        [alternatives({"count": 5}, {"allocationMode": "All"})],
        ["gpu-0", "gpu-1", "gpu-2", "gpu-3"],
        refused=Changed("allocator-defect", "", ("1.36",)),
    ),
    "all": Fit(PLAIN, [request("CLASS", allocationMode="All")], ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]),
    "all that match": Fit(
        MODELS, [request("CLASS", allocationMode="All", selectors=[f'{ATTRIBUTE}.model == "a"'])], ["gpu-0", "gpu-2"]
    ),
    "requests that compete": Fit(
        MODELS[:2],
        [request("CLASS", "any"), request("CLASS", "special", selectors=[f'{ATTRIBUTE}.model == "a"'])],
        ["gpu-1", "gpu-0"],
    ),
    "tainted one left out": Fit(
        [device("gpu-0", **taint("bad")), device("gpu-1", **taint("worse", "NoExecute")), device("gpu-2")],
        [request("CLASS")],
        ["gpu-2"],
    ),
    "taint without effect": Fit([device("gpu-0", **taint("note", "None"))], [request("CLASS")], ["gpu-0"]),
    "tolerated": Fit(
        [device("gpu-0", **taint("bad"))],
        [request("CLASS", tolerations=[{"key": "bad", "operator": "Equal", "value": "x", "effect": "NoSchedule"}])],
        ["gpu-0"],
    ),
    "tolerated whatever it is": Fit(
        [device("gpu-0", **taint("bad"))], [request("CLASS", tolerations=[{"operator": "Exists"}])], ["gpu-0"]
    ),
    "toleration of another value": Fit(
        [device("gpu-0", **taint("bad")), device("gpu-1")],
        [request("CLASS", tolerations=[{"key": "bad", "operator": "Equal", "value": "y"}])],
        ["gpu-1"],
    ),
    "partitions": Fit(HALVES[1:], [request("CLASS", count=2)], ["half-0", "half-1"], counters=CARD),
    "partitions instead of the whole": Fit(HALVES, [request("CLASS", count=2)], ["half-0", "half-1"], counters=CARD),
    "whole card": Fit(HALVES, [request("CLASS")], ["whole"], counters=CARD),
    "two shares of one device": Fit(
        [shared("gpu-0", "10Gi")],
        [request("CLASS", "a", **memory("6Gi")), request("CLASS", "b", **memory("4Gi"))],
        ["gpu-0", "gpu-0"],
    ),
    "share goes to the next device": Fit(
        [shared("gpu-0", "10Gi"), shared("gpu-1", "10Gi")],
        [request("CLASS", "a", **memory("6Gi")), request("CLASS", "b", **memory("6Gi"))],
        ["gpu-0", "gpu-1"],
    ),
    "share rounded up by its policy": Fit(
        [
            shared("gpu-0", "10Gi", default="1Gi", validRange={"min": "1Gi", "step": "4Gi"}),
            shared("gpu-1", "10Gi"),
        ],
        # 2Gi becomes 5Gi, twice; the third has no room.
        [request("CLASS", name, **memory("2Gi")) for name in "abc"],
        ["gpu-0", "gpu-0", "gpu-1"],
    ),
    "share without a request gets the default": Fit(
        [shared("gpu-0", "10Gi", default="5Gi", validValues=["5Gi", "10Gi"]), device("gpu-1")],
        [request("CLASS", name) for name in "abc"],
        ["gpu-0", "gpu-0", "gpu-1"],
    ),
    "as many as a claim may have": Fit(
        [device(f"gpu-{index:02}") for index in range(33)],
        [request("CLASS", "a", count=16), request("CLASS", "b", count=16)],
        [f"gpu-{index:02}" for index in range(32)],
    ),
}


@pytest.mark.parametrize("case", FITS.values(), ids=FITS.keys())
def test_one_node(referee: Referee, case: Fit) -> None:
    cluster = referee.cluster
    needs(cluster.plane, *gates_of_fields(case.__dict__, cluster.plane))
    if '"effect": "None"' in json.dumps(case.devices):
        needs_effect_none(cluster.plane)
    gpu = cluster.device_class()
    devices, requests, constraints, counters = filled(
        cluster, gpu, (case.devices, case.requests, case.constraints, case.counters)
    )
    cluster.publish(
        devices, pool=cluster.name("pool"), node=cluster.node(), slices=case.slices, shared_counters=counters
    )
    claim = cluster.claim(requests, constraints=constraints)
    refused = expected(case.refused, cluster.plane)
    if refused:
        referee.rejected(refused, claims={"gpu": claim})
        return

    scheduled = referee.fits(claims={"gpu": claim})

    got, gets = [result["device"] for result in scheduled.results("gpu")], expected(case.gets, cluster.plane)
    assert len(got) == len(gets)
    assert got == gets or referee.any_order
