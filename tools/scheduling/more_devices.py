"""Further devices for made-up clusters: of the fabric, partitions, shares, extended resources; and quotas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tools.scheduling.world import World

Json = dict[str, Any]


def add_some(world: World, pod: Json) -> str:
    """Changes what the pod asks for, and the cluster, in one way or not at all; what it is called."""
    name = world.rng.choice(("", *_KINDS))
    if name:
        _KINDS[name](world, pod)
    return name


def _fabric(world: World, pod: Json) -> None:
    """Devices that all nodes can use."""
    names = [f"net-{index}" for index in range(world.rng.randrange(1, 5))]
    _slice(world, "fabric", "net.example.com", {"allNodes": True}, [{"name": name} for name in names])
    _ask(world, pod, "net.example.com", {})


def _partitions(world: World, pod: Json) -> None:
    """Partitions of cards, of which a card has room for some."""
    for node in world.names():
        if world.chance(0.7):
            size = world.rng.choice((10, 20))
            counted = [{"counterSet": "card", "counters": {"memory": {"value": f"{size}Gi"}}}]
            devices = [{"name": f"part-{index}", "consumesCounters": counted} for index in range(4)]
            counters: Json = {"name": "card", "counters": {"memory": {"value": "40Gi"}}}
            where = {"nodeName": node}
            _slice(world, f"{node}-part", "part.example.com", where, devices, pool=node, of=2)
            _slice(world, f"{node}-card", "part.example.com", where, [], pool=node, of=2, counters=[counters])
    _ask(world, pod, "part.example.com", {})


def _shares(world: World, pod: Json) -> None:
    """Devices of which each pod takes a share."""
    for node in world.names():
        if world.chance(0.6):
            capacity = {"memory": {"value": world.rng.choice(("10Gi", "20Gi"))}}
            devices = [
                {"name": f"s-{index}", "allowMultipleAllocations": True, "capacity": capacity} for index in (0, 1)
            ]
            _slice(world, f"{node}-share", "share.example.com", {"nodeName": node}, devices, pool=node)
    amount = world.rng.choice(("3Gi", "6Gi", "10Gi"))
    _ask(world, pod, "share.example.com", {"capacity": {"requests": {"memory": amount}}})


def _extended(world: World, pod: Json) -> None:
    """An extended resource that the devices of a class serve."""
    resource = f"example.com/{world.prefix}"
    text = 'device.driver == "gpu.example.com"'
    spec = {"extendedResourceName": resource, "selectors": [{"cel": {"expression": text}}]}
    world.objects.append(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": f"{world.prefix}-ext"},
            "spec": spec,
        }
    )
    amounts = {resource: world.rng.choice("112")}
    resources = pod["spec"]["containers"][0]["resources"]
    resources["requests"] = {**resources.get("requests", {}), **amounts}
    resources["limits"] = {**resources.get("limits", {}), **amounts}
    if world.chance(0.5):
        pod["spec"].pop("resourceClaims")
        resources.pop("claims")


def _quota(world: World, pod: Json) -> None:
    """A quota that leaves room for a few pods, or for a few claims."""
    rng = world.rng
    here = [each for each in world.bound if each["metadata"]["namespace"] == world.prefix]
    held = sum(each["metadata"]["name"] in world.held for each in here)
    hard = rng.choice(
        (
            {"pods": str(len(here) + rng.randrange(1, 4))},
            {"count/resourceclaims.resource.k8s.io": str(held + rng.randrange(1, 4))},
        )
    )
    metadata = {"name": "quota", "namespace": world.prefix}
    world.late.append({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}})


_KINDS: Final[dict[str, Callable[[World, Json], None]]] = {
    "fabric": _fabric,
    "partitions": _partitions,
    "shares": _shares,
    "extended": _extended,
    "quota": _quota,
}


def _slice(
    world: World,
    name: str,
    driver: str,
    scope: Json,
    devices: list[Json],
    *,
    pool: str = "",
    of: int = 1,
    counters: list[Json] | None = None,
) -> None:
    named = name if name.startswith(world.prefix) else f"{world.prefix}-{name}"
    spec: Json = {"driver": driver, "pool": {"name": pool or named, "generation": 1, "resourceSliceCount": of}, **scope}
    if devices:
        spec["devices"] = devices
    if counters:
        spec["sharedCounters"] = counters
    world.objects.append(
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": named}, "spec": spec}
    )


def _ask(world: World, pod: Json, driver: str, more: Json) -> None:
    """Makes every pod claim a device of another driver."""
    metadata = {"name": f"{world.prefix}-class"}
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    world.objects.append(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": metadata,
            "spec": {"selectors": selectors},
        }
    )
    request = {"name": "gpu", "exactly": {"deviceClassName": f"{world.prefix}-class", **more}}
    world.objects.append(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "other", "namespace": world.prefix},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        }
    )
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "other"}]
