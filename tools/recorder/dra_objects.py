"""Made-up objects of resource.k8s.io, most of them valid, from a random number generator.

They have the shape of v1 and fields of every release up to 1.37; `shaped` gives them the shape of another version, and
`tools.recorder.mutations.known` drops what a server's schema does not have.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]

DRIVERS = ("gpu.example.com", "nic.example.com", "GPU.Example.com")
ATTRIBUTES = ("model", "index", "gpu.example.com/model", "gpu.example.com/index", "nic.example.com/numa")
FULL_NAMES = ("gpu.example.com/model", "gpu.example.com/index", "nic.example.com/numa")
CLASSES = ("gpu.example.com", "nic.example.com", "small")
SELECTORS = (
    "true",
    'device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].model == "a100"',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("10Gi")) >= 0',
    'device.attributes["gpu.example.com"].?index.orValue(0) < 3',
    "device.allowMultipleAllocations == true",
)
QUANTITIES = ("1", "10Gi", "80Gi", "500m", "2", "1e3", "40Gi")
TAINT_EFFECTS = ("NoSchedule", "NoExecute", "NoSchedule", "None")


def some(rng: random.Random, chance: float, out: Json, name: str, make: Callable[[], Any]) -> None:
    """Set a field with some probability."""
    if rng.random() < chance:
        out[name] = make()


def several(rng: random.Random, make: Callable[[int], Any], least: int = 1, most: int = 3) -> list[Any]:
    """A list of made-up items; each is told its index."""
    return [make(index) for index in range(rng.randint(least, most))]


def metadata(rng: random.Random, name: str, *, namespaced: bool) -> Json:
    """The metadata of an object with this name."""
    out: Json = {"name": name}
    if namespaced:
        out["namespace"] = "admin" if rng.random() < 0.2 else "default"
    some(rng, 0.2, out, "labels", lambda: {"app": "x", "example.com/team": "ml"})
    some(rng, 0.15, out, "annotations", lambda: {"example.com/note": "any text"})
    some(rng, 0.05, out, "finalizers", lambda: ["example.com/hold"])
    some(
        rng,
        0.05,
        out,
        "ownerReferences",
        lambda: [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}],
    )
    return out


def selector(rng: random.Random) -> Json:
    return {"cel": {"expression": rng.choice(SELECTORS)}}


def opaque(rng: random.Random) -> Json:
    parameters: tuple[Json, ...] = ({}, {"apiVersion": "gpu.example.com/v1", "kind": "Config", "sharing": {"a": [1]}})
    return {"driver": rng.choice(DRIVERS), "parameters": rng.choice(parameters)}


def device_toleration(rng: random.Random) -> Json:
    out: Json = {}
    some(rng, 0.8, out, "key", lambda: rng.choice(("example.com/unhealthy", "broken")))
    out["operator"] = "Equal" if out and rng.random() < 0.5 else "Exists"
    if out["operator"] == "Equal":
        some(rng, 0.7, out, "value", lambda: "yes")
    some(rng, 0.5, out, "effect", lambda: rng.choice(TAINT_EFFECTS))
    if out.get("effect") == "NoExecute":
        some(rng, 0.5, out, "tolerationSeconds", lambda: rng.choice((0, 60, -5)))
    return out


def device_taint(rng: random.Random) -> Json:
    out: Json = {"key": rng.choice(("example.com/unhealthy", "broken")), "effect": rng.choice(TAINT_EFFECTS)}
    some(rng, 0.5, out, "value", lambda: "yes")
    some(rng, 0.1, out, "timeAdded", lambda: "2026-01-01T00:00:00Z")
    return out


def node_selector(rng: random.Random, terms: int = 1) -> Json:
    expressions: tuple[Json, ...] = (
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"]},
        {"key": "example.com/fabric", "operator": "Exists"},
        {"key": "cores", "operator": "Gt", "values": ["8"]},
    )
    fields = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    out = []
    for _ in range(terms):
        term: Json = {"matchExpressions": rng.sample(expressions, rng.randint(1, 2))}
        some(rng, 0.2, term, "matchFields", lambda: [fields])
        out.append(term)
    return {"nodeSelectorTerms": out}


def device_request(rng: random.Random) -> Json:
    """What an exact request and an alternative have in common."""
    out: Json = {"deviceClassName": rng.choice(CLASSES)}
    some(rng, 0.3, out, "selectors", lambda: several(rng, lambda _: selector(rng), most=2))
    if rng.random() < 0.5:
        out["allocationMode"] = rng.choice(("ExactCount", "All"))
    if out.get("allocationMode") != "All":
        some(rng, 0.4, out, "count", lambda: rng.choice((1, 2, 8)))
    some(rng, 0.25, out, "tolerations", lambda: several(rng, lambda _: device_toleration(rng), most=2))
    some(rng, 0.2, out, "capacity", lambda: {"requests": {rng.choice(ATTRIBUTES): rng.choice(QUANTITIES)}})
    some(
        rng,
        0.12,
        out,
        "derivedAttributes",
        lambda: [
            {
                "name": rng.choice(FULL_NAMES),
                "expression": rng.choice(
                    ('device.attributes["gpu.example.com"].model', '"x"', "1", "semver('1.2.3')", "[1, 2]")
                ),
            }
        ],
    )
    return out


def claim_spec(rng: random.Random) -> Json:
    names = ["gpu", "nic", "extra"]

    def request(index: int) -> Json:
        if rng.random() < 0.3:
            alternatives = several(rng, lambda number: {"name": f"alt-{number}", **device_request(rng)})
            return {"name": names[index], "firstAvailable": alternatives}
        exact = device_request(rng)
        some(rng, 0.1, exact, "adminAccess", lambda: rng.random() < 0.7)
        return {"name": names[index], "exactly": exact}

    requests = several(rng, request)
    known = [request["name"] for request in requests]
    known += [f"{request['name']}/{each['name']}" for request in requests for each in request.get("firstAvailable", ())]

    def constraint(_: int) -> Json:
        out: Json = {rng.choice(("matchAttribute", "matchAttribute", "distinctAttribute")): rng.choice(FULL_NAMES)}
        some(rng, 0.5, out, "requests", lambda: rng.sample(known, rng.randint(1, min(2, len(known)))))
        return out

    def config(_: int) -> Json:
        out: Json = {"opaque": opaque(rng)}
        some(rng, 0.5, out, "requests", lambda: [rng.choice(known)])
        return out

    devices: Json = {"requests": requests}
    some(rng, 0.35, devices, "constraints", lambda: several(rng, constraint, most=2))
    some(rng, 0.25, devices, "config", lambda: several(rng, config, most=2))
    return {"devices": devices}


def resource_claim(rng: random.Random, name: str) -> Json:
    return {"metadata": metadata(rng, name, namespaced=True), "spec": claim_spec(rng)}


def claim_template(rng: random.Random, name: str) -> Json:
    spec: Json = {"spec": claim_spec(rng)}
    some(rng, 0.3, spec, "metadata", lambda: {"labels": {"a": "b"}, "annotations": {"c": "d"}})
    return {"metadata": metadata(rng, name, namespaced=True), "spec": spec}


def device_class(rng: random.Random, name: str) -> Json:
    spec: Json = {}
    some(rng, 0.7, spec, "selectors", lambda: several(rng, lambda _: selector(rng), most=2))
    some(rng, 0.4, spec, "config", lambda: several(rng, lambda _: {"opaque": opaque(rng)}, most=2))
    some(rng, 0.3, spec, "extendedResourceName", lambda: rng.choice(("example.com/gpu", "gpu.example.com/A100")))
    return {"metadata": metadata(rng, name, namespaced=False), "spec": spec}


def attribute(rng: random.Random) -> Json:
    choices: tuple[Json, ...] = (
        {"string": "a100"},
        {"int": 3},
        {"bool": True},
        {"version": "1.2.3-rc.1"},
        {"string": "b"},
        {"ints": [1, 2]},
        {"strings": ["a", "b"]},
        {"versions": ["1.0.0"]},
        {"bools": [True, False]},
    )
    return rng.choice(choices[:5] if rng.random() < 0.8 else choices)


def policy(rng: random.Random) -> Json:
    choices: tuple[Json, ...] = (
        {"default": "1Gi", "validRange": {"min": "1Gi"}},
        {"default": "2Gi", "validRange": {"min": "1Gi", "max": "8Gi"}},
        {"default": "2Gi", "validRange": {"min": "1Gi", "max": "9Gi", "step": "1Gi"}},
        {"default": "2Gi", "validValues": ["1Gi", "2Gi", "4Gi"]},
        {"default": "500m", "validRange": {"min": "100m", "max": "1", "step": "100m"}},
        {},
    )
    return rng.choice(choices)


def capacity(rng: random.Random, *, shared: bool) -> Json:
    out: Json = {"value": rng.choice(("10Gi", "80Gi", "40Gi"))}
    if shared:
        some(rng, 0.6, out, "requestPolicy", lambda: policy(rng))
    return out


def consumption(rng: random.Random, index: int) -> Json:
    out: Json = {"counterSet": f"set-{index}", "counters": {"memory": {"value": "10Gi"}, "slices": {"value": "1"}}}
    some(rng, 0.3, out, "compatibilityGroups", lambda: ["a", "b"][: rng.randint(1, 2)])
    return out


def node_resources(rng: random.Random) -> Json:
    """`nodeAllocatableResources` of 1.37."""
    mappings: tuple[Json, ...] = (
        {"mapping": {"deviceMultiplier": "2"}},
        {"mapping": {"capacityKey": "memory", "capacityMultiplier": "1"}},
        {"overhead": {"perPod": "100Mi"}},
        {"overhead": {"perContainer": "1Mi", "perPod": "1Mi"}},
    )
    return {rng.choice(("cpu", "memory", "ephemeral-storage")): rng.choice(mappings)}


def device(rng: random.Random, index: int, *, per_device: bool) -> Json:
    out: Json = {"name": f"dev-{index}"}
    shared = rng.random() < 0.3
    some(rng, 0.8, out, "attributes", lambda: {name: attribute(rng) for name in rng.sample(ATTRIBUTES, 2)})
    some(rng, 0.7, out, "capacity", lambda: {name: capacity(rng, shared=shared) for name in ("memory", "cores")})
    if shared:
        out["allowMultipleAllocations"] = True
    some(rng, 0.2, out, "taints", lambda: several(rng, lambda _: device_taint(rng), most=2))
    some(rng, 0.2, out, "consumesCounters", lambda: several(rng, lambda number: consumption(rng, number), most=2))
    if per_device:
        choices: tuple[Json, ...] = ({"nodeName": "n1"}, {"allNodes": True}, {"nodeSelector": node_selector(rng)})
        out |= rng.choice(choices)
    if rng.random() < 0.2:
        out["bindingConditions"] = ["example.com/attached"]
        out["bindingFailureConditions"] = ["example.com/failed"]
        some(rng, 0.5, out, "bindsToNode", lambda: True)
    some(rng, 0.12, out, "nodeAllocatableResources", lambda: node_resources(rng))
    some(rng, 0.12, out, "nodeAllocatableResourceMappings", lambda: {"cpu": {"allocationMultiplier": "2"}})
    return out


def resource_slice(rng: random.Random, name: str) -> Json:
    spec: Json = {
        "driver": rng.choice(DRIVERS),
        "pool": {"name": rng.choice(("n1", "rack/a")), "generation": rng.choice((0, 1, 7)), "resourceSliceCount": 1},
    }
    where: tuple[Json, ...] = (
        {"nodeName": "n1"},
        {"allNodes": True},
        {"nodeSelector": node_selector(rng)},
        {"perDeviceNodeSelection": True},
    )
    spec |= where[rng.choice((0, 0, 0, 1, 2, 3))]
    if rng.random() < 0.2:
        spec["sharedCounters"] = several(rng, lambda index: counter_set(rng, index))
    else:
        per_device = "perDeviceNodeSelection" in spec
        spec["devices"] = several(rng, lambda index: device(rng, index, per_device=per_device), least=0)
        some(rng, 0.05, spec, "partitionTypeAttribute", lambda: rng.choice(FULL_NAMES))
        operations = ["NodePrepareResources", "NodeUnprepareResources"]
        some(rng, 0.05, spec, "skipNodeOperations", lambda: rng.sample(operations, rng.randint(1, 2)))
    return {"metadata": metadata(rng, name, namespaced=False), "spec": spec}


def counter_set(rng: random.Random, index: int) -> Json:
    return {"name": f"set-{index}", "counters": {"memory": {"value": rng.choice(QUANTITIES)}, "slices": {"value": "7"}}}


def taint_rule(rng: random.Random, name: str) -> Json:
    chosen: Json = {}
    some(rng, 0.7, chosen, "driver", lambda: rng.choice(DRIVERS))
    some(rng, 0.5, chosen, "pool", lambda: rng.choice(("n1", "rack/a")))
    some(rng, 0.4, chosen, "device", lambda: "dev-0")
    spec: Json = {"taint": device_taint(rng)}
    some(rng, 0.8, spec, "deviceSelector", lambda: chosen)
    return {"metadata": metadata(rng, name, namespaced=False), "spec": spec}


def pool_request(rng: random.Random, name: str) -> Json:
    spec: Json = {"driver": rng.choice(DRIVERS)}
    some(rng, 0.5, spec, "poolName", lambda: "n1")
    some(rng, 0.5, spec, "limit", lambda: rng.choice((1, 100, 1000)))
    return {"metadata": metadata(rng, name, namespaced=False), "spec": spec}


MAKERS: Mapping[str, Callable[[random.Random, str], Json]] = {
    "DeviceClass": device_class,
    "DeviceTaintRule": taint_rule,
    "ResourceClaim": resource_claim,
    "ResourceClaimTemplate": claim_template,
    "ResourcePoolStatusRequest": pool_request,
    "ResourceSlice": resource_slice,
}
"""Each makes an object with a given name, without apiVersion and kind."""


def shaped(made: Json, version: str, kind: str) -> Json:
    """The object in the shape of a version."""
    out: Json = {"apiVersion": f"resource.k8s.io/{version}", "kind": kind, **made}
    if version == "v1beta1":
        if kind == "ResourceSlice" and "devices" in out["spec"]:
            flat = [{"name": entry.pop("name"), "basic": entry} for entry in out["spec"]["devices"]]
            out["spec"]["devices"] = flat
        elif kind in ("ResourceClaim", "ResourceClaimTemplate"):
            spec = out["spec"]["spec"] if kind == "ResourceClaimTemplate" else out["spec"]
            spec["devices"]["requests"] = [entry | entry.pop("exactly", {}) for entry in spec["devices"]["requests"]]
    return out


def claim_status(rng: random.Random, spec: Json) -> Json:
    """A status that a scheduler and drivers could have written for the claim."""
    results: list[Json] = []
    for request in spec["devices"]["requests"]:
        name = request["name"]
        if "firstAvailable" in request:
            name += "/" + request["firstAvailable"][0]["name"]
        result: Json = {"request": name, "driver": "gpu.example.com", "pool": "n1", "device": f"dev-{len(results)}"}
        some(rng, 0.1, result, "shareID", lambda: "0a8b1c2d-3e4f-4a5b-8c6d-7e8f9a0b1c2d")
        some(rng, 0.1, result, "consumedCapacity", lambda: {"memory": "1Gi"})
        some(rng, 0.1, result, "adminAccess", lambda: True)
        some(rng, 0.1, result, "tolerations", lambda: [device_toleration(rng)])
        if rng.random() < 0.1:
            result["bindingConditions"] = ["example.com/attached"]
            result["bindingFailureConditions"] = ["example.com/failed"]
        results.append(result)
    allocation: Json = {"devices": {"results": results}}
    some(rng, 0.5, allocation, "nodeSelector", lambda: node_selector(rng))
    some(rng, 0.2, allocation, "allocationTimestamp", lambda: "2026-01-01T00:00:00Z")
    config = {"source": rng.choice(("FromClass", "FromClaim")), "opaque": opaque(rng)}
    some(rng, 0.3, allocation["devices"], "config", lambda: [config])
    status: Json = {"allocation": allocation}
    consumer = {"resource": "pods", "name": "p", "uid": "u-1"}
    some(rng, 0.5, status, "reservedFor", lambda: [consumer])
    some(rng, 0.6, status, "devices", lambda: [device_status(rng, each) for each in results])
    return status


def device_status(rng: random.Random, result: Json) -> Json:
    """What a driver reports about an allocated device."""
    out: Json = {name: result[name] for name in ("driver", "pool", "device", "shareID") if name in result}
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Up",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    some(rng, 0.6, out, "conditions", lambda: [condition])
    some(rng, 0.4, out, "data", lambda: {"any": ["thing"]})
    network = {
        "interfaceName": "eth0",
        "ips": ["10.0.0.1/24", "2001:db8::1/64"],
        "hardwareAddress": "02:00:00:00:00:01",
    }
    some(rng, 0.5, out, "networkData", lambda: network)
    return out
