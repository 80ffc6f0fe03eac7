"""Objects of each kind that would end a "yes", made for one cluster: they may be all that nobody has read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

JSON = dict[str, Any]
DRA = "resource.k8s.io/v1"
NOWHERE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "nowhere", "operator": "Exists"}]}]}


class World:
    """The objects of a cluster, and those that are asked about."""

    def __init__(self, objects: Sequence[JSON], asked: Sequence[JSON]) -> None:
        self.objects = list(objects)
        self.asked = [*asked, *objects]
        self.spaces = sorted({one["metadata"]["namespace"] for one in self.asked if "namespace" in one["metadata"]})

    def of(self, kind: str) -> list[JSON]:
        """The objects of a kind."""
        return [deepcopy(one) for one in self.objects if one["kind"] == kind]

    def named(self, field: str) -> list[tuple[str, Any]]:
        """The namespaces and the values of a field of pods, or of the templates of pods."""
        found: list[tuple[str, Any]] = []
        for one in self.asked:
            spec = one.get("spec") or {}
            spec = (spec.get("template") or {}).get("spec") or spec
            if spec.get(field):
                found.append((one["metadata"].get("namespace", "default"), spec[field]))
        return found

    def others(self, kind: str) -> Iterator[list[JSON]]:
        """Several sets of objects of a kind, each of which may be all that the cluster has."""
        yield []
        for make in ADVERSARIES.get(kind, ()):
            yield list(make(self))


def _meta(name: str, namespace: str = "", **more: Any) -> JSON:
    space = {"namespace": namespace} if namespace else {}
    return {"name": name, "uid": f"unread-{namespace}-{name}", "resourceVersion": "1", **space, **more}


def _nodes(change: Callable[[JSON], None]) -> Callable[[World], Iterator[JSON]]:
    def make(world: World) -> Iterator[JSON]:
        for node in world.of("Node"):
            node.setdefault("spec", {})
            change(node)
            yield node

    return make


def _tainted(node: JSON) -> None:
    node["spec"]["taints"] = [{"key": "unread", "effect": "NoSchedule"}]


def _cordoned(node: JSON) -> None:
    node["spec"]["unschedulable"] = True


def _empty(node: JSON) -> None:
    node["status"] = {**node.get("status", {}), "allocatable": {"cpu": "0", "memory": "0", "pods": "0"}}


def _bare(node: JSON) -> None:
    node["metadata"]["labels"] = {}


def _down(node: JSON) -> None:
    others = [one for one in node.get("status", {}).get("conditions", ()) if one["type"] != "Ready"]
    node["status"] = {**node.get("status", {}), "conditions": [*others, {"type": "Ready", "status": "False"}]}


def _renamed(node: JSON) -> None:
    node["metadata"]["name"] += "-other"


def _filling(world: World) -> Iterator[JSON]:
    """Pods that use all that nodes have."""
    yield from world.of("Pod")
    for node in world.of("Node"):
        name = node["metadata"]["name"]
        given = (node.get("status") or {}).get("allocatable") or {}
        requests = {key: value for key, value in given.items() if key != "pods"}
        yield _pod(f"full-{name}", name, containers=[{"name": "c", "image": "i", "resources": {"requests": requests}}])


def _shunning(world: World) -> Iterator[JSON]:
    """Pods that no other pod may be beside, on every node."""
    yield from world.of("Pod")
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": {}}
    everybody = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for node in world.of("Node"):
        node_name = node["metadata"]["name"]
        yield _pod(f"shy-{node_name}", node_name, affinity=everybody)


def _users(world: World) -> Iterator[JSON]:
    """A pod that waits for each claim."""
    yield from world.of("Pod")
    for claim in world.of("ResourceClaim"):
        meta = claim["metadata"]
        entries = [{"name": "c", "resourceClaimName": meta["name"]}]
        made = _pod(f"user-{meta['name']}", "", resourceClaims=entries)
        made["metadata"]["namespace"] = meta.get("namespace", "default")
        yield made


def _crashing(world: World) -> Iterator[JSON]:
    """The pods of all drivers, none of which starts."""
    yield from (one for one in world.of("Pod") if not _is_plugin(one))
    slices = [one["spec"] for one in world.of("ResourceSlice")]
    for driver, node in sorted({(spec["driver"], spec.get("nodeName", "")) for spec in slices}):
        if node:
            folder = {"name": "plugins", "hostPath": {"path": f"/var/lib/kubelet/plugins/{driver}"}}
            registry = {"name": "registry", "hostPath": {"path": "/var/lib/kubelet/plugins_registry"}}
            made = _pod(f"{driver}-{node}", node, volumes=[folder, registry])
            waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
            status = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 9, "state": waiting}
            made["status"] = {"phase": "Running", "containerStatuses": [status]}
            yield made


def _is_plugin(pod: JSON) -> bool:
    paths = (volume.get("hostPath", {}).get("path", "") for volume in pod["spec"].get("volumes") or ())
    return any("/plugins" in path for path in paths)


def _pod(name: str, node: str, **spec: Any) -> JSON:
    placed = {"nodeName": node} if node else {}
    spec = {"containers": [{"name": "c", "image": "i"}], **placed, **spec}
    status = {"phase": "Running" if node else "Pending"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _meta(name, "unread"), "spec": spec, "status": status}


def _holding(world: World) -> Iterator[JSON]:
    """The claims, and others that hold all devices."""
    held = set()
    for claim in world.of("ResourceClaim"):
        allocation = (claim.get("status") or {}).get("allocation") or {}
        results = (allocation.get("devices") or {}).get("results") or ()
        held |= {(one["driver"], one["pool"], one["device"]) for one in results}
        yield claim
    for entry in world.of("ResourceSlice"):
        spec = entry["spec"]
        results = [
            {"request": "r", "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
            for device in spec.get("devices") or ()
            if (spec["driver"], spec["pool"]["name"], device["name"]) not in held
        ]
        for number in range(0, len(results), 32):
            yield {
                "apiVersion": DRA,
                "kind": "ResourceClaim",
                "metadata": _meta(f"all-{entry['metadata']['name']}-{number}", "unread"),
                "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}},
                "status": {"allocation": {"devices": {"results": results[number : number + 32]}}},
            }


def _newer(world: World) -> Iterator[JSON]:
    """Newer generations of all pools, without devices."""
    for entry in world.of("ResourceSlice"):
        entry["spec"]["pool"]["generation"] = entry["spec"]["pool"].get("generation", 0) + 1
        entry["spec"]["devices"] = []
        yield entry


def _unmatching(world: World) -> Iterator[JSON]:
    for entry in world.of("DeviceClass"):
        entry["spec"] = {"selectors": [{"cel": {"expression": 'device.driver == "nobody.example.com"'}}]}
        yield entry


def _rule(effect: str) -> Callable[[World], Iterator[JSON]]:
    def make(world: World) -> Iterator[JSON]:
        spec = {"deviceSelector": {}, "taint": {"key": "unread", "effect": effect}}
        version = "resource.k8s.io/v1beta2"
        yield {"apiVersion": version, "kind": "DeviceTaintRule", "metadata": _meta("all"), "spec": spec}

    return make


def _ending(world: World) -> Iterator[JSON]:
    for name in world.spaces:
        meta = _meta(name, deletionTimestamp="2026-01-01T00:00:00Z", labels={"kubernetes.io/metadata.name": name})
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": meta, "status": {"phase": "Terminating"}}


def _restricted(world: World) -> Iterator[JSON]:
    for name in world.spaces:
        meta = _meta(name, labels={"pod-security.kubernetes.io/enforce": "restricted"})
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def _another(kind: str, api_version: str) -> Callable[[World], Iterator[JSON]]:
    """One object that nobody names, so that the kind is there without those that are named."""

    def make(world: World) -> Iterator[JSON]:
        yield {"apiVersion": api_version, "kind": kind, "metadata": _meta("another"), "value": 0, "handler": "h"}

    return make


def _used_up(world: World) -> Iterator[JSON]:
    hard = {"pods": "0", "count/pods": "0", "count/resourceclaims.resource.k8s.io": "0"}
    classes = [entry["metadata"]["name"] for entry in world.of("DeviceClass")]
    hard |= {f"{name}.deviceclass.resource.k8s.io/devices": "0" for name in classes}
    for name in world.spaces:
        status = {"hard": hard, "used": {}}
        meta = _meta("used-up", name)
        yield {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}, "status": status}


def _tight(world: World) -> Iterator[JSON]:
    for name in world.spaces:
        limits = [{"type": "Pod", "max": {"cpu": "1m", "memory": "1"}}, {"type": "Container", "max": {"cpu": "1m"}}]
        yield {"apiVersion": "v1", "kind": "LimitRange", "metadata": _meta("tight", name), "spec": {"limits": limits}}


def _lowest(world: World) -> Iterator[JSON]:
    version = "scheduling.k8s.io/v1"
    yield {
        "apiVersion": version,
        "kind": "PriorityClass",
        "metadata": _meta("lowest"),
        "value": -1000,
        "globalDefault": True,
        "preemptionPolicy": "Never",
    }


def _far_away(world: World) -> Iterator[JSON]:
    """The runtime classes that are named, each for nodes that do not exist."""
    for _, name in world.named("runtimeClassName"):
        scheduling = {"nodeSelector": {"nowhere": "true"}}
        yield {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": _meta(name),
            "handler": "h",
            "scheduling": scheduling,
        }


def _volumes(world: World) -> Iterator[JSON]:
    for volume in world.of("PersistentVolume"):
        volume["spec"] = {**volume.get("spec", {}), "nodeAffinity": {"required": NOWHERE}}
        yield volume


def _lost(world: World) -> Iterator[JSON]:
    for claim in world.of("PersistentVolumeClaim"):
        claim["metadata"]["annotations"] = {}
        claim["spec"] = {**claim.get("spec", {}), "volumeName": "", "storageClassName": ""}
        claim["status"] = {"phase": "Pending"}
        yield claim


def _full_drivers(world: World) -> Iterator[JSON]:
    drivers = {entry["spec"].get("csi", {}).get("driver") for entry in world.of("PersistentVolume")}
    drivers |= {entry.get("provisioner") for entry in world.of("StorageClass")}
    entries = [{"name": name, "nodeID": "n", "allocatable": {"count": 0}} for name in sorted(drivers - {None})]
    for node in world.of("Node"):
        meta = _meta(node["metadata"]["name"])
        yield {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": meta, "spec": {"drivers": entries}}


def _attached(world: World) -> Iterator[JSON]:
    drivers = {entry["spec"].get("csi", {}).get("driver") for entry in world.of("PersistentVolume")}
    for node in world.of("Node"):
        for driver in sorted(drivers - {None}):
            for number in range(30):
                name = f"{node['metadata']['name']}-{driver}-{number}"
                yield {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "VolumeAttachment",
                    "metadata": _meta(name),
                    "spec": {
                        "attacher": driver,
                        "nodeName": node["metadata"]["name"],
                        "source": {"persistentVolumeName": f"unread-{number}"},
                    },
                    "status": {"attached": True},
                }


def _tracking(world: World) -> Iterator[JSON]:
    for driver in world.of("CSIDriver"):
        driver["spec"] = {**driver.get("spec", {}), "storageCapacity": True, "attachRequired": True}
        yield driver


def _gangs(world: World) -> Iterator[JSON]:
    for space, group in world.named("schedulingGroup"):
        yield {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": _meta(group["podGroupName"], space),
            "spec": {"schedulingPolicy": {"gang": {"minCount": 1000}}},
        }


ADVERSARIES: dict[str, Sequence[Callable[[World], Iterator[JSON]]]] = {
    "Node": [*map(_nodes, (_tainted, _cordoned, _empty, _bare, _down, _renamed))],
    "Pod": [_filling, _shunning, _users, _crashing],
    "ResourceClaim": [_holding],
    "ResourceSlice": [_newer],
    "DeviceClass": [_unmatching],
    "DeviceTaintRule": [_rule("NoSchedule"), _rule("NoExecute")],
    "Namespace": [_ending, _restricted, _another("Namespace", "v1")],
    "ResourceQuota": [_used_up],
    "LimitRange": [_tight],
    "PriorityClass": [_lowest, _another("PriorityClass", "scheduling.k8s.io/v1")],
    "RuntimeClass": [_far_away, _another("RuntimeClass", "node.k8s.io/v1")],
    "PersistentVolume": [_volumes],
    "PersistentVolumeClaim": [_lost],
    "CSINode": [_full_drivers],
    "CSIDriver": [_tracking],
    "VolumeAttachment": [_attached],
    "PodGroup": [_gangs],
}
