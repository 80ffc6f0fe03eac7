"""Devices and requests for tables."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from tools.controlplane.client import Json
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import cel_selectors, device
from tools.live.releases import expected

T = TypeVar("T")

# In tables CLASS stands for the test's device class, DRIVER for its driver.
ATTRIBUTE = 'device.attributes["DRIVER"]'


def filled(cluster: Cluster, gpu: str, value: T) -> T:
    """A value of a table with the names of this test in it, and what this release does."""
    text = (
        json.dumps(value, default=lambda each: expected(each, cluster.plane))
        .replace("CLASS", gpu)
        .replace("DRIVER", cluster.driver)
    )
    result: T = json.loads(text)
    return result


def taint(key: str, effect: str = "NoSchedule") -> Json:
    return {"taints": [{"key": key, "value": "x", "effect": effect}]}


def alternatives(*subrequests: Json, name: str = "gpu") -> Json:
    """A request that takes the first of several subrequests that fits."""
    listed = [{"name": f"alt-{index}", "deviceClassName": "CLASS", **each} for index, each in enumerate(subrequests)]
    return {"name": name, "firstAvailable": listed}


def where(expression: str) -> Json:
    return {"selectors": cel_selectors([expression])}


def shared(name: str, total: str, **policy: Any) -> Json:
    """A device with a capacity `memory` that several claims may use at once."""
    capacity: Json = {"value": total}
    if policy:
        capacity["requestPolicy"] = policy
    return {"name": name, "allowMultipleAllocations": True, "capacity": {"memory": capacity}}


def memory(amount: str) -> Json:
    return {"capacity": {"requests": {"memory": amount}}}


NUMA = [device(f"gpu-{index}", {"numa": numa}) for index, numa in enumerate([0, 1, 2, 1])]
PLAIN = [device(f"gpu-{index}") for index in range(4)]
MODELS = [device(f"gpu-{index}", {"model": model}) for index, model in enumerate("abab")]


def partition(name: str, amount: str) -> Json:
    """A part of a card that draws on its counter `memory`."""
    counters = [{"counterSet": "card", "counters": {"memory": {"value": amount}}}]
    return device(name, capacity={"memory": amount}, consumesCounters=counters)


HALVES = [partition("whole", "80Gi"), partition("half-0", "40Gi"), partition("half-1", "40Gi")]
CARD = [{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]
