"""Pods that no node can take: the scheduler says that they fit nowhere, explain says why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tools.controlplane.client import Json
from tools.controlplane.objects import device, request
from tools.live.referee import Referee
from tools.live.releases import Changed, expected, gates_of_fields, needs
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
class Misfit:
    """Devices of one pool on one node, the claim's requests, and why they do not come together."""

    devices: list[Json]
    requests: list[Json]
    cause: str | Changed[str]
    """Empty where the release places it."""
    constraints: list[Json] = field(default_factory=list)
    counters: list[Json] = field(default_factory=list)
    pool: dict[str, Any] = field(default_factory=dict)


MISFITS = {
    "selector is false": Misfit(
        MODELS, [request("CLASS", selectors=[f'{ATTRIBUTE}.model == "c"'])], "selector-matches-nothing"
    ),
    "too few devices": Misfit(PLAIN, [request("CLASS", count=5)], "too-few-on-one-node"),
    "too few match": Misfit(
        MODELS, [request("CLASS", count=3, selectors=[f'{ATTRIBUTE}.model == "b"'])], "too-few-on-one-node"
    ),
    "tainted": Misfit([device("gpu-0", **taint("bad"))], [request("CLASS")], "devices-tainted"),
    "tainted otherwise than tolerated": Misfit(
        [device("gpu-0", **taint("bad", "NoExecute"))],
        [request("CLASS", tolerations=[{"key": "bad", "operator": "Exists", "effect": "NoSchedule"}])],
        "toleration-does-not-match",
    ),
    "one of all tainted": Misfit(
        [device("gpu-0"), device("gpu-1", **taint("bad"))],
        [request("CLASS", allocationMode="All")],
        "all-not-possible",
    ),
    "all of none": Misfit(
        MODELS,
        [request("CLASS", allocationMode="All", selectors=[f'{ATTRIBUTE}.model == "c"'])],
        "selector-matches-nothing",
    ),
    "no common value": Misfit(
        NUMA[:3], [request("CLASS", count=2)], "constraint-unsatisfiable", [{"matchAttribute": "DRIVER/numa"}]
    ),
    "value absent": Misfit(
        PLAIN, [request("CLASS", count=2)], "constraint-attribute-missing", [{"matchAttribute": "DRIVER/numa"}]
    ),
    "one value only": Misfit(
        MODELS[::2],
        [request("CLASS", "a"), request("CLASS", "b")],
        Changed("", "constraint-unsatisfiable", ("1.35",)),
        [{"distinctAttribute": "DRIVER/model"}],
    ),
    "every alternative": Misfit(
        MODELS, [alternatives({"count": 5}, where(f'{ATTRIBUTE}.model == "c"'))], "too-few-on-one-node"
    ),
    "requests compete": Misfit(MODELS[:2], [request("CLASS", "a", count=2), request("CLASS", "b")], "requests-compete"),
    "partitions exclude each other": Misfit(
        HALVES[:2],
        [
            request("CLASS", "a", selectors=['device.capacity["DRIVER"].memory.compareTo(quantity("80Gi")) == 0']),
            request("CLASS", "b", selectors=['device.capacity["DRIVER"].memory.compareTo(quantity("40Gi")) == 0']),
        ],
        "requests-compete",
        counters=CARD,
    ),
    "more partitions than the card has": Misfit(
        HALVES, [request("CLASS", count=3)], "counters-exhausted", counters=CARD
    ),
    "share of nothing": Misfit(
        [shared("gpu-0", "10Gi")], [request("CLASS", **memory("11Gi"))], "capacity-insufficient"
    ),
    "shares compete": Misfit(
        [shared("gpu-0", "10Gi")],
        [request("CLASS", "a", **memory("6Gi")), request("CLASS", "b", **memory("6Gi"))],
        "requests-compete",
    ),
    "share above its policy": Misfit(
        [shared("gpu-0", "10Gi", default="1Gi", validRange={"min": "1Gi", "max": "4Gi"})],
        [request("CLASS", **memory("5Gi"))],
        "capacity-policy",
    ),
    "capacity unknown": Misfit(
        [shared("gpu-0", "10Gi")],
        [request("CLASS", capacity={"requests": {"cores": "1"}})],
        "capacity-unknown",
    ),
    "one shared device twice in a request": Misfit(
        [shared("gpu-0", "10Gi", default="1Gi", validRange={"min": "1Gi"})],
        [request("CLASS", count=2)],
        Changed("", "too-few-on-one-node", ("1.36",)),
    ),
    "pool incomplete": Misfit(
        PLAIN, [request("CLASS")], Changed("", "pool-incomplete", ("1.35",)), pool={"slice_count": 2}
    ),
}


@pytest.mark.parametrize("case", MISFITS.values(), ids=MISFITS.keys())
def test_one_node(referee: Referee, case: Misfit) -> None:
    cluster = referee.cluster
    needs(cluster.plane, *gates_of_fields(case.__dict__, cluster.plane))
    gpu = cluster.device_class()
    devices, requests, constraints, counters = filled(
        cluster, gpu, (case.devices, case.requests, case.constraints, case.counters)
    )
    cluster.publish(devices, pool=cluster.name("pool"), node=cluster.node(), shared_counters=counters, **case.pool)
    claim = cluster.claim(requests, constraints=constraints)

    cause = expected(case.cause, cluster.plane)
    if cause:
        referee.rejected(cause, claims={"gpu": claim})
    else:
        referee.fits(claims={"gpu": claim})


def test_devices_of_the_same_name(referee: Referee) -> None:
    cluster = referee.cluster
    gpu, pool = cluster.device_class(), cluster.name("pool")
    cluster.publish([device("gpu-0"), device("gpu-0")], pool=pool, node=cluster.node(), slices=2)
    claims = {"gpu": cluster.claim([request(gpu)])}
    # 1.34 does not only leave the pool out.
    if expected(Changed(True, False, ("1.35",)), cluster.plane):
        referee.fails("pool-invalid", f"pool {pool} is invalid: duplicate device name gpu-0", claims=claims)
    else:
        referee.rejected("pool-invalid", claims=claims)
