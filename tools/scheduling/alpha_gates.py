"""Made-up clusters whose devices and claims have fields of the alpha gates of 1.37, each with a pod to schedule.

The same seed makes the same cluster: one of the allocator's (``tools.recorder.clusters``) as whole objects, so that
the API server judges them, defaults are set, and the scheduler's plugins have their say around the allocator.
"""

from __future__ import annotations

import random
from typing import Final

from kubectl_dra.api.releases import parse_release
from tools.recorder.clusters import ALPHA, Maker
from tools.scheduling.world import HOST, Json, World

CLASS: Final = "alpha"
GATES: Final = (*(f"DRA{name}" for name in ALPHA), "DRAListTypeAttributes")
RELEASE: Final = "1.37"
_RESOURCE: Final = "resource.k8s.io/v1"
POLICIES: Final = (
    {"default": "2Gi", "validValues": ["2Gi", "4Gi", "16Gi"]},
    {"default": "1", "validRange": {"min": "1", "step": "1"}},
    {"default": "1", "validRange": {"min": "500m", "step": "500m", "max": "8"}},
    {"default": "750m", "validRange": {"min": "250m", "step": "250m"}},
    {"default": "100m", "validRange": {"min": "100m", "step": "0.1", "max": "2"}},
    {"default": "300m", "validRange": {"min": "0", "step": "300m"}},
)


def make(seed: int) -> World:
    """The cluster of a seed."""
    rng = random.Random(f"{CLASS}-{seed}")
    world = World(f"alph{seed}", rng)
    # Fields of some gates at a time, so that each of them decides now and then.
    some = rng.sample(GATES, rng.choice((1, 1, 2, 5)))
    features = [f"+{gate.removeprefix('DRA')}" for gate in some]
    case = Maker(rng, parse_release(RELEASE), features).made(world.prefix)
    for node in case["nodes"]:
        _add_node(world, node)
    for entry in (*case["slices"], *case["classes"]):
        _rename(world, entry)
    _agree(case["slices"])
    world.objects += [_whole("ResourceSlice", _valid(world, entry)) for entry in case["slices"]]
    world.objects += [_whole("DeviceClass", entry) for entry in case["classes"]]
    for claim in case["allocatedClaims"]:
        _add_holder(world, claim)
    names = [_add_claim(world, claim) for claim in case["claims"]]
    _add_pod(world, names)
    return world


def _whole(kind: str, entry: Json) -> Json:
    return {"apiVersion": _RESOURCE, "kind": kind, **entry}


def _named(world: World, name: str) -> str:
    return f"{world.prefix}-{name}"


def _add_node(world: World, node: Json) -> None:
    name = _named(world, node["metadata"]["name"])
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": amounts, "allocatable": dict(amounts), "conditions": [ready], **node.get("status", {})}
    labels = {**node["metadata"]["labels"], HOST: name}
    whole = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}}
    world.nodes.append({**whole, "status": status})
    if world.chance(0.3):
        world.running(f"busy-{name}", name, requests={"cpu": world.rng.choice("37")})


def _rename(world: World, entry: Json) -> None:
    """Gives what is outside of namespaces names of this cluster alone."""
    entry["metadata"]["name"] = _named(world, entry["metadata"]["name"])
    for place in (entry["spec"], *entry["spec"].get("devices", ())):
        if "nodeName" in place:
            place["nodeName"] = _named(world, place["nodeName"])
    if "pool" in entry["spec"]:
        pool = entry["spec"]["pool"]
        # Slices of a pool may share it.
        entry["spec"]["pool"] = {**pool, "name": _named(world, pool["name"])}


def _agree(slices: list[Json]) -> None:
    """Slices of a pool announce one number: else it is chance whether the scheduler takes it as complete."""
    most: dict[tuple[str, str], int] = {}
    for pool in (entry["spec"]["pool"] for entry in slices):
        key = (pool["name"], pool["generation"])
        most[key] = max(most.get(key, 0), pool["resourceSliceCount"])
    for pool in (entry["spec"]["pool"] for entry in slices):
        pool["resourceSliceCount"] = most[pool["name"], pool["generation"]]


def _valid(world: World, entry: Json) -> Json:
    """With what the API server takes in slices, and without conditions that nobody here would ever meet."""
    devices = {device["name"]: device for device in entry["spec"].get("devices", ())}
    for device in devices.values():
        for field in ("bindingConditions", "bindingFailureConditions", "bindsToNode"):
            device.pop(field, None)
        for taint in device.get("taints", ()):
            # Else a pod that is placed may be evicted before it is looked at.
            taint["effect"] = "NoSchedule"
        for capacity in device.get("capacity", {}).values():
            if "requestPolicy" in capacity:
                capacity |= {"value": "64Gi", "requestPolicy": world.rng.choice(POLICIES)}
    if devices:
        entry["spec"]["devices"] = list(devices.values())
    return entry


def _add_claim(world: World, claim: Json) -> str:
    name, devices = claim["metadata"]["name"], claim["spec"]["devices"]
    for request in devices["requests"]:
        subrequests = [(f"{request['name']}/{each['name']}", each) for each in request.get("firstAvailable", ())]
        for path, asked in subrequests or [(request["name"], request["exactly"])]:
            asked["deviceClassName"] = _named(world, asked["deviceClassName"])
            # It needs a namespace of administrators.
            asked.pop("adminAccess", None)
            for derived in asked.get("derivedAttributes", ()):
                # The API server wants each in a constraint.
                constraint = {world.rng.choice(("matchAttribute", "distinctAttribute")): derived["name"]}
                devices.setdefault("constraints", []).append({**constraint, "requests": [path]})
    metadata = {"name": name, "namespace": world.prefix}
    world.objects.append(_whole("ResourceClaim", {"metadata": metadata, "spec": claim["spec"]}))
    return str(name)


def _add_holder(world: World, claim: Json) -> None:
    """A claim that has devices and no user yet, which keeps them all the same."""
    allocation = claim["status"]["allocation"]
    for result in allocation["devices"]["results"]:
        result.pop("adminAccess", None)
        result["pool"] = _named(world, result["pool"])
    claim["status"]["allocation"] = {**allocation, "allocationTimestamp": "2026-01-02T03:04:05Z"}
    _add_claim(world, claim)
    world.objects[-1]["metadata"]["finalizers"] = ["resource.kubernetes.io/delete-protection"]
    world.statuses.append({**world.objects[-1], "status": claim["status"]})


def _add_pod(world: World, names: list[str]) -> None:
    claims = [{"name": name, "resourceClaimName": name} for name in names]
    resources = {"requests": {"cpu": world.rng.choice(("100m", "2"))}, "claims": [{"name": name} for name in names]}
    world.pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": world.prefix, "labels": {"app": "new"}},
        "spec": {
            "containers": [{"name": "main", "image": "example.com/none", "resources": resources}],
            "resourceClaims": claims,
            "terminationGracePeriodSeconds": 0,
        },
    }
