"""Random clusters and claims: explain and the scheduler agree, device by device or word by word.

LIVE_SEEDS=200 tries that many.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pytest

from tools.controlplane.client import Json
from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import cel_selectors, claims_of, device, request
from tools.controlplane.plane import gates_of
from tools.live.command import Answer
from tools.live.referee import Referee
from tools.live.releases import EFFECT_NONE, expected, gates_of_fields
from tools.live.tables import CARD, partition, shared

SEEDS = int(os.environ.get("LIVE_SEEDS", "12"))
GATE = [{"name": "example.com/wait"}]
BAD = {"key": "bad", "value": "x", "effect": "NoSchedule"}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_same_verdict(referee: Referee, seed: int) -> None:
    random = Random(seed)
    cluster = referee.cluster
    gpu = cluster.device_class()
    for part in "ab"[: random.choice((1, 1, 2))]:
        node = cluster.node(part)
        for number in range(random.choice((1, 1, 2))):
            publish(random, cluster, cluster.name(f"{part}{number}"), node)
    hold(random, cluster, gpu)
    claims = {}
    for name in ("one", "two")[: random.choice((1, 1, 2))]:
        requests = [any_request(random, cluster, gpu, f"r{number}") for number in range(random.choice((1, 1, 2)))]
        claims[name] = cluster.claim(requests, name, constraints=constraints(random, cluster, requests))
    cluster.pod(claims=claims, schedulingGates=GATE)
    before = referee.explain("pod/pod")

    ungated = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "namespace": cluster.namespace}}
    cluster.api.patch(ungated, {"spec": {"schedulingGates": None}})
    compare(referee, before)


def compare(referee: Referee, before: Answer) -> None:
    cluster = referee.cluster

    def judged() -> Json | None:
        condition = referee.scheduling("pod")
        return condition if condition.get("reason", "") != "SchedulingGated" else None

    condition = wait(judged, "the scheduler's verdict", state=lambda: before.text)
    outcomes = before.outcomes(cluster.name(""))
    said = f"scheduler: {condition.get('message', 'scheduled')}\nexplain: {dict(outcomes)} {before.text}"
    if condition["status"] == "True":
        assert outcomes["allocated"], said
        assert not outcomes["error"], said
        referee.same(before, cluster.scheduled("pod"))
        return
    assert condition["reason"] == ("SchedulerError" if outcomes["error"] else "Unschedulable"), said
    after = referee.explain("pod/pod")
    assert after.code == 1, f"{said}\n{after.text}"
    assert after.causes, f"{said}\n{after.text}"
    if outcomes["error"]:
        errors = [group["reason"] for group in before.report["nodeGroups"] if group["outcome"] == "error"]
        assert any(condition["message"].endswith(f"filter plugin: {error}") for error in errors), said
    else:
        assert not outcomes["allocated"], said


def publish(random: Random, cluster: Cluster, pool: str, node: str) -> None:
    """A pool of ordinary devices, of devices to share, or of partitions."""
    kind = random.choice(("plain", "plain", "plain", "shared", "partitions"))
    more: dict[str, Any] = {"node": node}
    if kind == "partitions":
        devices = [partition(f"part-{number}", random.choice(("80Gi", "40Gi", "40Gi", "20Gi"))) for number in range(4)]
        more["shared_counters"] = CARD
    elif kind == "shared":
        policy = random.choice(
            (
                {},
                {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi"}},
                {"default": "5Gi", "validValues": ["5Gi", "10Gi"]},
            )
        )
        devices = [shared(f"gpu-{number}", random.choice(("10Gi", "20Gi")), **policy) for number in range(2)]
    else:
        devices = [
            device(f"gpu-{number}", capacity={"memory": random.choice(("10Gi", "40Gi"))})
            for number in range(random.randint(1, 5))
        ]
        more["slices"] = random.choice((1, 1, 2)) if len(devices) > 1 else 1
    for raw in devices:
        attributes: Json = {"numa": {"int": random.randint(0, 2)}}
        if random.random() < 0.9:
            attributes["model"] = {"string": random.choice("ab")}
        raw["attributes"] = attributes
        if random.random() < 0.15:
            chosen = random.choice((BAD, {**BAD, "effect": "None"}))
            raw["taints"] = [chosen if expected(EFFECT_NONE, cluster.plane) else BAD]
    # With counters it would be seen by every node, those of other tests too.
    if kind != "partitions" and random.random() < 0.05:
        more["slice_count"] = 5
    cluster.publish(devices, pool=pool, **more)


def hold(random: Random, cluster: Cluster, gpu: str) -> None:
    """Pods that may take some of the devices first."""
    for number in range(random.choice((0, 0, 1, 2))):
        name = f"holder-{number}"
        claim = cluster.claim([request(gpu, **some_memory(random, 0.3))], name)
        cluster.pod(name, claims={"gpu": claim})
        wait(lambda name=name: _judged(cluster, name), f"a verdict on {name}")  # type: ignore[misc]


def _judged(cluster: Cluster, name: str) -> bool | None:
    pod = cluster.get("Pod", name, "v1")
    assert None not in claims_of(pod).values()
    return True if pod.get("status", {}).get("conditions") else None


def any_request(random: Random, cluster: Cluster, gpu: str, name: str) -> Json:
    if random.random() < 0.25:
        listed = [
            {"name": f"s{number}", "deviceClassName": gpu, **details(random, cluster)}
            for number in range(random.choice((1, 2, 3)))
        ]
        return {"name": name, "firstAvailable": listed}
    return {"name": name, "exactly": {"deviceClassName": gpu, **details(random, cluster)}}


def details(random: Random, cluster: Cluster) -> Json:
    result = some_memory(random, 0.2)
    if random.random() < 0.15:
        result["allocationMode"] = "All"
    else:
        result["count"] = random.choice((1, 1, 1, 2, 3))
    if random.random() < 0.2:
        result["tolerations"] = [{"key": "bad", "operator": "Exists"}]
    if random.random() < 0.5:
        attributes = f'device.attributes["{cluster.driver}"]'
        memory = f'device.capacity["{cluster.driver}"].memory'
        chosen = random.choice(
            (
                f'{attributes}.model == "a"',
                f'{attributes}.?model.orValue("b") == "b"',
                f'"model" in {attributes} && {attributes}.model != "a"',
                f"{attributes}.numa >= 1",
                f"{attributes}.numa in [0, 2] || {attributes}.model == 'b'",
                f'{memory}.compareTo(quantity("20Gi")) >= 0',
                f"has({attributes}.model)",
            )
        )
        result["selectors"] = cel_selectors([chosen])
    return result


def some_memory(random: Random, chance: float) -> Json:
    amount = random.choice(("1Gi", "3Gi", "5Gi", "10Gi"))
    return {"capacity": {"requests": {"memory": amount}}} if random.random() < chance else {}


def constraints(random: Random, cluster: Cluster, requests: list[Json]) -> list[Json]:
    if random.random() > 0.3:
        return []
    attribute = f"{cluster.driver}/{random.choice(('numa', 'model'))}"
    names = [each["name"] for each in requests]
    some = {"requests": random.sample(names, random.randint(1, len(names)))} if random.random() < 0.4 else {}
    chosen = {random.choice(("matchAttribute", "matchAttribute", "distinctAttribute")): attribute, **some}
    known = all(gates_of(cluster.plane)[gate] for gate in gates_of_fields(chosen, cluster.plane))
    return [chosen if known else {"matchAttribute": attribute, **some}]
