"""Pods on which the scheduler gives up with an error: explain knows its words."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tools.controlplane.client import Json
from tools.controlplane.objects import cel_selectors, device, request
from tools.live.referee import Referee
from tools.live.releases import PARTITIONS, Changed, needs
from tools.live.tables import ATTRIBUTE, MODELS, alternatives, filled, where


@dataclass(frozen=True)
class Failure:
    """Devices of one pool on one node, the claim's requests, and the error that they end in."""

    devices: list[Json]
    requests: list[Json]
    cause: str
    text: str | Changed[str]
    constraints: list[Json] = field(default_factory=list)


TOO_MANY = Changed(
    "number of requested devices 33 exceeds the claim limit of 32",
    "adding 33 devices exceeds the claim limit of 32, with 0 already accounted for",
    ("1.34.12", "1.35.9", "1.36.5", "1.37"),
)

FAILURES = {
    "attribute absent": Failure(
        [device("gpu-0")],
        [request("CLASS", selectors=[f'{ATTRIBUTE}.model == "a"'])],
        "selector-error",
        "no such key: model",
    ),
    "attribute absent on a later device": Failure(
        [MODELS[0], device("gpu-1")],
        [request("CLASS", count=2, selectors=[f'{ATTRIBUTE}.model == "a"'])],
        "selector-error",
        "no such key: model",
    ),
    "second selector": Failure(
        MODELS[:1],
        [request("CLASS", selectors=[f'{ATTRIBUTE}.model == "a"', f"{ATTRIBUTE}.size > 3"])],
        "selector-error",
        "no such key: size",
    ),
    "capacity absent": Failure(
        MODELS[:1],
        [request("CLASS", selectors=['device.capacity["DRIVER"].memory.isGreaterThan(quantity("1Gi"))'])],
        "selector-error",
        "no such key: memory",
    ),
    "attribute of another type": Failure(
        MODELS[:1],
        [request("CLASS", selectors=[f"{ATTRIBUTE}.model > 3"])],
        "selector-error",
        "no such overload",
    ),
    "not a bool": Failure(
        MODELS[:1],
        [request("CLASS", selectors=[f"{ATTRIBUTE}.model"])],
        "selector-error",
        "could not be converted to bool",
    ),
    "no number": Failure(
        MODELS[:1],
        [request("CLASS", selectors=[f"int({ATTRIBUTE}.model) == 3"])],
        "selector-error",
        "type conversion error from 'string' to 'int'",
    ),
    "division by zero": Failure(
        [device("gpu-0", {"numa": 0})],
        [request("CLASS", selectors=[f"1 / {ATTRIBUTE}.numa == 1"])],
        "selector-error",
        "division by zero",
    ),
    "no quantity": Failure(
        MODELS[:1],
        [request("CLASS", selectors=[f'quantity({ATTRIBUTE}.model).isGreaterThan(quantity("1"))'])],
        "selector-error",
        "quantities must match",
    ),
    "in a subrequest that is tried": Failure(
        MODELS[:1],
        [alternatives({"count": 5}, where(f"{ATTRIBUTE}.size > 3"))],
        "selector-error",
        "no such key: size",
    ),
    "more than a claim may have": Failure(
        [device(f"gpu-{index:02}") for index in range(33)],
        [request("CLASS", count=33)],
        "too-many-devices",
        TOO_MANY,
    ),
    "more than a claim may have, in all": Failure(
        [device(f"gpu-{index:02}") for index in range(33)],
        [request("CLASS", allocationMode="All")],
        "too-many-devices",
        TOO_MANY,
    ),
}


@pytest.mark.parametrize("case", FAILURES.values(), ids=FAILURES.keys())
def test_one_node(referee: Referee, case: Failure) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    case = Failure(**filled(cluster, gpu, case.__dict__))
    cluster.publish(case.devices, pool=cluster.name("pool"), node=cluster.node())
    claim = cluster.claim(case.requests, constraints=case.constraints)

    referee.fails(case.cause, case.text, claims={"gpu": claim})


def test_class_selector_fails(referee: Referee) -> None:
    cluster = referee.cluster
    driver = cluster.driver
    gpu = cluster.device_class(selectors=[f'device.driver == "{driver}" && device.attributes["{driver}"].model == "a"'])
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    referee.fails("selector-error", "no such key: model", claims={"gpu": cluster.claim([request(gpu)])})


def test_error_on_one_node_hides_another_that_fits(referee: Referee) -> None:
    cluster = referee.cluster
    good, bad = cluster.node("good"), cluster.node("bad")
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0", {"model": "a"})], pool=good, node=good)
    cluster.publish([device("gpu-0")], pool=bad, node=bad)
    claim = cluster.claim([request(gpu, selectors=[f'device.attributes["{cluster.driver}"].model == "a"'])])

    answer = referee.fails("selector-error", "no such key: model", claims={"gpu": claim})

    assert answer.outcomes(cluster.name("")) == {"allocated": 1, "error": 1}


def test_error_of_a_device_of_another_node_in_the_pool(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, PARTITIONS)
    here, there = cluster.node("here"), cluster.node("there")
    gpu = cluster.device_class()
    devices = [device("gpu-0", nodeName=there), device("gpu-1", {"model": "a"}, nodeName=here)]
    cluster.publish(devices, pool=cluster.name("pool"), perDeviceNodeSelection=True)
    claim = cluster.claim([request(gpu, selectors=[f'device.attributes["{cluster.driver}"].model == "a"'])])
    only_here = {"kubernetes.io/hostname": here}

    referee.fails("selector-error", "no such key: model", claims={"gpu": claim}, nodeSelector=only_here)


def test_all_with_an_incomplete_pool(referee: Referee) -> None:
    cluster = referee.cluster
    node = cluster.node()
    gpu = cluster.device_class()
    pool = cluster.name("pool")
    cluster.publish([device("gpu-0")], pool=cluster.name("whole"), node=node)
    half = cluster.publish([device("gpu-1")], pool=pool, node=node, slice_count=2)
    claim = cluster.claim([request(gpu, allocationMode="All")])
    text = f"asks for all devices, but resource pool {cluster.driver}/{pool} is currently being updated"

    referee.fails("all-blocked-by-pool", text, claims={"gpu": claim})

    cluster.withdraw(half)
    referee.same(referee.fits_now(), cluster.scheduled("pod"))


def test_all_with_an_invalid_pool(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    pool = cluster.name("pool")
    cluster.publish([device("gpu-0"), device("gpu-0")], pool=pool, node=cluster.node(), slices=2)
    text = f"asks for all devices, but resource pool {cluster.driver}/{pool} is currently invalid"
    claim = cluster.claim([request(gpu, allocationMode="All")])
    referee.fails("all-blocked-by-pool", text, claims={"gpu": claim})


def test_selector_fixed_in_a_new_class(referee: Referee) -> None:
    """What explain proposes against an absent attribute is what lets the pod run."""
    cluster = referee.cluster
    driver = cluster.driver
    gpu = cluster.device_class(selectors=[f'device.attributes["{driver}"].model == "a"'])
    cluster.publish([device("gpu-0"), device("gpu-1", {"model": "a"})], pool="pool", node=cluster.node())
    answer = referee.fails("selector-error", "no such key: model", claims={"gpu": cluster.claim([request(gpu)])})
    guard = f'has(device.attributes["{driver}"].model) &&'
    assert f"put {guard} before the term" in answer.report["causes"][0]["fix"]["text"]

    fixed = cluster.get("DeviceClass", gpu)
    fixed.update({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"})
    selectors = cel_selectors([f'{guard} device.attributes["{driver}"].model == "a"'])
    cluster.api.patch(fixed, {"spec": {"selectors": selectors}})

    referee.same(referee.fits_now(), cluster.scheduled("pod"))
