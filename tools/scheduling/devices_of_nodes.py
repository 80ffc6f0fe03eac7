"""Made-up clusters whose devices take of their nodes' own resources (alpha of 1.37), each with a pod to schedule.

The same seed makes the same cluster. The mix: enough and too little left, amounts per device and by consumed capacity,
overhead, several claims and containers, claims that other pods use, pods that run with such devices, pod-level
resources, pods that could be evicted.
"""

from __future__ import annotations

import random
from typing import Final

from tools.scheduling.world import DRIVER, HOST, Json, World

CLASS: Final = "node-resources"
GATE: Final = "DRANodeAllocatableResources"
_PAGES: Final = "hugepages-2Mi"
_CORES: Final = "cores"
_RESOURCE: Final = "resource.k8s.io/v1"


def make(seed: int) -> World:
    """The cluster of a seed."""
    rng = random.Random(f"{CLASS}-{seed}")
    world = World(f"nres{seed}", rng)
    for number in range(rng.randrange(2, 6)):
        _add_node(world, number)
    _add_pod(world)
    for number, node in enumerate(world.nodes):
        _add_running(world, number, node)
    if world.chance(0.3):
        _use_claim_of_another(world)
    if world.chance(0.12):
        _lose_a_device(world)
    return world


def _add_node(world: World, number: int) -> None:
    rng, name = world.rng, f"{world.prefix}-n{number}"
    amounts = {"cpu": rng.choice(("4", "8", "12")), "memory": rng.choice(("8Gi", "16Gi")), "pods": "110"}
    amounts["ephemeral-storage"] = "20Gi"
    if world.chance(0.4):
        amounts[_PAGES] = rng.choice(("64Mi", "512Mi"))
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": amounts, "allocatable": dict(amounts), "conditions": [ready], "declaredFeatures": [GATE]}
    world.nodes.append(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {HOST: name}},
            "spec": {},
            "status": status,
        }
    )
    world.free[name] = []
    if world.chance(0.1):
        return
    shared = world.chance(0.4)
    taken = _taken(world, shared)
    devices = []
    for index in range(rng.randrange(1, 4)):
        device: Json = {"name": f"gpu-{index}", "capacity": {_CORES: {"value": rng.choice(("8", "16"))}}}
        if shared:
            device["allowMultipleAllocations"] = True
            if world.chance(0.5):
                policy = {"default": "2", "validRange": {"min": "1", "step": "1"}}
                device["capacity"][_CORES]["requestPolicy"] = policy
        else:
            world.free[name].append(device["name"])
        each = taken if world.chance(0.8) else _taken(world, shared)
        if each:
            device["nodeAllocatableResources"] = each
        devices.append(device)
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": name, "devices": devices}
    world.objects.append(
        {"apiVersion": _RESOURCE, "kind": "ResourceSlice", "metadata": {"name": f"{name}-gpu"}, "spec": spec}
    )


def _taken(world: World, shared: bool) -> Json:
    """``nodeAllocatableResources`` of a device."""
    rng = world.rng
    amounts = {
        "cpu": ("500m", "1", "2", "3", "5"),
        "memory": ("512Mi", "2Gi", "4Gi", "9Gi"),
        _PAGES: ("16Mi", "128Mi"),
    }
    multipliers = {"cpu": ("1", "500m", "250m", "2"), "memory": ("1Gi", "256Mi")}
    out: Json = {}
    for name in rng.sample(list(amounts), rng.choice((0, 1, 1, 1, 2, 2, 3))):
        entry: Json = {}
        if world.chance(0.75):
            # Without shares nothing is consumed, which the scheduler meets with an error.
            if name in multipliers and world.chance(0.7 if shared else 0.04):
                entry["mapping"] = {"capacityKey": _CORES, "capacityMultiplier": rng.choice(multipliers[name])}
            else:
                entry["mapping"] = {"deviceMultiplier": rng.choice(amounts[name])}
        if not entry or world.chance(0.3):
            kinds = rng.choice((("perPod",), ("perContainer",), ("perPod", "perContainer")))
            entry["overhead"] = {kind: rng.choice(amounts[name][:2]) for kind in kinds}
        out[name] = entry
    return out


def _add_pod(world: World) -> None:
    rng = world.rng
    claims = []
    for number in range(rng.choice((1, 1, 1, 2))):
        name = f"gpu{number}"
        request: Json = {"deviceClassName": "gpu", "count": rng.choice((1, 1, 1, 2))}
        if world.chance(0.4):
            request["capacity"] = {"requests": {_CORES: rng.choice("12468")}}
        entry: Json = {"name": "gpu", "exactly": request}
        if world.chance(0.15):
            two = {"name": "two", "deviceClassName": "gpu", "count": 2}
            entry = {"name": "gpu", "firstAvailable": [two, {"name": "one", "deviceClassName": "gpu"}]}
        spec: Json = {"devices": {"requests": [entry]}}
        by_template = world.chance(0.4)
        kind = "ResourceClaimTemplate" if by_template else "ResourceClaim"
        metadata = {"name": name, "namespace": world.prefix}
        made = {"apiVersion": _RESOURCE, "kind": kind, "metadata": metadata}
        world.objects.append({**made, "spec": {"spec": spec} if by_template else spec})
        claims.append({"name": name, "resourceClaimTemplateName" if by_template else "resourceClaimName": name})
    used = [{"name": claim["name"]} for claim in claims]
    containers = []
    for number in range(rng.choice((1, 1, 2))):
        resources: Json = {"requests": {"cpu": rng.choice(("100m", "1", "2"))}}
        if world.chance(0.4):
            resources["requests"]["memory"] = rng.choice(("256Mi", "2Gi"))
        if world.chance(0.3):
            resources["limits"] = dict(resources["requests"])
        if mentioned := [claim for claim in used if world.chance(0.8)]:
            resources["claims"] = mentioned
        containers.append({"name": f"c{number}", "image": "example.com/none", "resources": resources})
    spec = {"containers": containers, "resourceClaims": claims, "terminationGracePeriodSeconds": 0}
    if world.chance(0.25):
        init: Json = {"name": "init", "image": "example.com/none", "resources": {"requests": {"cpu": "1"}}}
        init["resources"]["claims"] = used[:1]
        if world.chance(0.5):
            init["restartPolicy"] = "Always"
        spec["initContainers"] = [init]
    if world.chance(0.2):
        spec["resources"] = {"requests": {"cpu": rng.choice("468")}}
        if world.chance(0.5):
            spec["resources"]["limits"] = {"cpu": "8"}
    if world.chance(0.35):
        spec["priorityClassName"] = rng.choice(("high", "never"))
    world.pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": world.prefix, "labels": {"app": "new"}},
        "spec": spec,
    }


def _add_running(world: World, number: int, node: Json) -> None:
    """Pods on a node: with plain requests, and with devices of it as the scheduler would have given them."""
    rng, name = world.rng, node["metadata"]["name"]
    if world.chance(0.5):
        spec: Json = {"requests": {"cpu": rng.choice(("500m", "2", "3")), "memory": rng.choice(("1Gi", "4Gi"))}}
        if world.chance(0.5):
            spec |= {"priorityClassName": "low", "terminationGracePeriodSeconds": 0}
        world.running(f"plain-{number}", name, **spec)
    if world.free[name] and world.chance(0.5):
        pod = world.running(f"holder-{number}", name)
        if world.chance(0.5):
            pod["spec"] |= {"priorityClassName": "low", "terminationGracePeriodSeconds": 0}
        world.hold(pod, name, 1)
        if found := _status(world, pod):
            world.statuses.append({**_bare(pod), "status": {"nodeAllocatableResourceClaimStatuses": [found]}})


def _status(world: World, pod: Json) -> Json | None:
    """What the scheduler writes into the status of a pod that holds one whole device."""
    ((pool, name),) = world.held[pod["metadata"]["name"]]
    taken = _device(world, pool, name).get("nodeAllocatableResources", {})
    mapping, overhead = [], []
    for resource, entry in sorted(taken.items()):
        if amount := entry.get("mapping", {}).get("deviceMultiplier"):
            mapping.append({"name": resource, "quantity": amount})
        if "overhead" in entry:
            overhead.append({"name": resource, **entry["overhead"]})
    if not mapping and not overhead:
        return None
    claim = f"hc-{pod['metadata']['name']}"
    return {"resourceClaimName": claim, "containers": ["main"], "mapping": mapping, "overhead": overhead}


def _device(world: World, pool: str, name: str) -> Json:
    for entry in world.objects:
        if entry["kind"] == "ResourceSlice" and entry["spec"]["pool"]["name"] == pool:
            return next(device for device in entry["spec"]["devices"] if device["name"] == name)
    raise LookupError(name)


def _use_claim_of_another(world: World) -> None:
    """The pod also uses a claim that has devices: of a running pod, or of nobody yet."""
    if not world.held:
        return
    name = world.rng.choice(sorted(world.held))
    world.spec["resourceClaims"].append({"name": "held", "resourceClaimName": f"hc-{name}"})
    for container in world.spec["containers"]:
        container["resources"].setdefault("claims", []).append({"name": "held"})
    if world.chance(0.5):
        if world.chance(0.4):
            _release(world, name)
        world.spec["resourceClaims"] = world.spec["resourceClaims"][-1:]
        for container in (*world.spec["containers"], *world.spec.get("initContainers", ())):
            container["resources"].pop("claims", None)
        world.spec["containers"][0]["resources"]["claims"] = [{"name": "held"}]


def _lose_a_device(world: World) -> None:
    """The pod also uses a claim of two devices, of which one is not published any more."""
    for node, free in world.free.items():
        if free:
            pod = world.running("loser", node)
            world.hold(pod, node, 1)
            world.held["loser"].append((node, "gone"))
            if world.chance(0.7):
                _release(world, "loser")
            world.spec["resourceClaims"].append({"name": "lost", "resourceClaimName": "hc-loser"})
            return


def _release(world: World, name: str) -> None:
    """A running pod does not use its claim, which keeps its devices all the same."""
    world.released.append(f"hc-{name}")
    world.statuses = [entry for entry in world.statuses if entry["metadata"]["name"] != name]
    pod = next(entry for entry in world.bound if entry["metadata"]["name"] == name)
    del pod["spec"]["resourceClaims"]
    del pod["spec"]["containers"][0]["resources"]["claims"]


def _bare(entry: Json) -> Json:
    keep = {key: entry["metadata"][key] for key in ("name", "namespace")}
    return {"apiVersion": entry["apiVersion"], "kind": entry["kind"], "metadata": keep}
