"""Made-up clusters, each with a pod to schedule: nodes, devices, existing pods, and one to four features of the pod.

The same seed and class make the same cluster. Names carry the cluster's prefix, so that clusters can follow each other
on one control plane.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from tools.scheduling import more_features
from tools.scheduling.world import DRIVER, HOST, PREFERRED, REGION, REQUIRED, ZONE, Json, World


def node_selection(world: World) -> None:
    rng = world.rng
    if world.chance(0.3):
        world.spec["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
    if world.chance(0.7):
        terms = []
        for _ in range(rng.choice((1, 1, 2))):
            term: Json = {}
            if world.chance(0.7):
                term["matchExpressions"] = [_expression(rng)]
            if world.chance(0.3) or not term:
                operator = rng.choice(("In", "In", "NotIn"))
                field_of = {"key": "metadata.name", "operator": operator, "values": [rng.choice(world.names())]}
                term["matchFields"] = [field_of]
            terms.append(term)
        affinity = world.spec.setdefault("affinity", {})
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}


def _expression(rng: random.Random) -> Json:
    return rng.choice(
        (
            {"key": ZONE, "operator": "In", "values": rng.sample(("z1", "z2", "z3"), 2)},
            {"key": ZONE, "operator": "NotIn", "values": [rng.choice(("z1", "z2"))]},
            {"key": "gen", "operator": rng.choice(("Gt", "Lt")), "values": [str(rng.randrange(1, 9))]},
            {"key": "disk", "operator": rng.choice(("Exists", "DoesNotExist"))},
        )
    )


def taints(world: World) -> None:
    rng = world.rng
    for node in world.nodes:
        found: list[Json] = []
        if world.chance(0.4):
            found.append({"key": "nvidia.com/gpu", "value": rng.choice(("yes", "")), "effect": "NoSchedule"})
        if world.chance(0.25):
            effect = rng.choice(("NoExecute", "PreferNoSchedule", "NoSchedule"))
            found.append({"key": "maint", "value": "x", "effect": effect})
        if world.chance(0.2):
            node["spec"]["unschedulable"] = True
        node["spec"].setdefault("taints", []).extend(found)
    tolerations = (
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
        {"key": "maint", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
        {"operator": "Exists", "effect": "NoSchedule"},
    )
    world.spec["tolerations"] = rng.sample(tolerations, rng.randrange(3))


def resources(world: World) -> None:
    rng = world.rng
    for number, node in enumerate(world.names()):
        if world.chance(0.6):
            pod = world.running(f"busy-{number}", node, requests={"cpu": rng.choice(("1", "2500m", "3"))})
            _shape(world, pod["spec"])
    world.requests["cpu"] = rng.choice(("500m", "1", "2", "4"))
    if world.chance(0.4):
        world.requests["memory"] = rng.choice(("4Gi", "8Gi", "10G", "4000M"))
    if world.chance(0.2):
        world.requests["ephemeral-storage"] = rng.choice(("1Gi", "200Gi"))
    _shape(world, world.spec)
    if world.chance(0.15):
        world.spec["runtimeClassName"] = "kata"


def _shape(world: World, spec: Json) -> None:
    """Init containers, sidecars or resources of the pod as a whole."""
    rng = world.rng
    if world.chance(0.25):
        made: list[Json] = [
            {"name": "init", "image": "example.com/none", "resources": {"requests": {"cpu": rng.choice("13")}}}
        ]
        side: Json = {"name": "side", "image": "example.com/none", "restartPolicy": "Always"}
        side["resources"] = {"requests": {"cpu": "500m"}}
        if world.chance(0.6):
            made.insert(rng.randrange(2), side)
        spec["initContainers"] = made
    elif world.chance(0.2):
        spec["resources"] = {rng.choice(("requests", "limits")): {"cpu": "5"}}


def pods_limit(world: World) -> None:
    for number, node in enumerate(world.nodes):
        if world.chance(0.5):
            node["status"]["allocatable"]["pods"] = node["status"]["capacity"]["pods"] = "2"
            for index in range(world.rng.randrange(3)):
                world.running(f"one-{number}-{index}", node["metadata"]["name"])


def extended_resources(world: World) -> None:
    rng = world.rng
    for number, node in enumerate(world.nodes):
        if world.chance(0.6):
            for side in ("capacity", "allocatable"):
                node["status"][side]["example.com/fpga"] = "2"
            if world.chance(0.5):
                amount = {"example.com/fpga": rng.choice("12")}
                pod = world.running(f"fpga-{number}", node["metadata"]["name"])
                pod["spec"]["containers"][0]["resources"] = {"requests": amount, "limits": amount}
    wanted = rng.choice("12")
    world.requests["example.com/fpga"] = wanted
    world.spec["containers"][0]["resources"]["limits"] = {"example.com/fpga": wanted}


def ports(world: World) -> None:
    rng = world.rng
    for number, node in enumerate(world.names()):
        if world.chance(0.6):
            entry: Json = {"containerPort": 80, "hostPort": rng.choice((8080, 9090))}
            if world.chance(0.3):
                entry["hostIP"] = "127.0.0.1"
            if world.chance(0.3):
                entry["protocol"] = "UDP"
            world.running(f"port-{number}", node, ports=[entry])
    entry = {"containerPort": 80, "hostPort": 8080}
    if world.chance(0.3):
        entry["hostIP"] = rng.choice(("127.0.0.1", "127.0.0.2"))
    if world.chance(0.2):
        entry["protocol"] = "UDP"
    if world.chance(0.2):
        side = {"name": "side", "image": "example.com/none", "restartPolicy": "Always", "ports": [entry]}
        world.spec["initContainers"] = [*world.spec.get("initContainers", ()), side]
    else:
        world.spec["containers"][0]["ports"] = [entry]
    if world.chance(0.15):
        world.spec["hostNetwork"] = True
        for container in (*world.spec["containers"], *world.spec.get("initContainers", ())):
            for port in container.get("ports", ()):
                port["containerPort"] = port["hostPort"]


def _web(world: World) -> None:
    if any(pod["metadata"]["name"].startswith("web") for pod in world.bound):
        return
    for number, node in enumerate(world.names()):
        if world.chance(0.5):
            labels = {"app": "web", "rev": world.rng.choice("12")}
            world.running(f"web-{number}", node, other=world.chance(0.3), labels=labels)


def _term(world: World, app: str) -> Json:
    rng = world.rng
    term: Json = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": rng.choice((HOST, ZONE, ZONE, "rack"))}
    if world.chance(0.2):
        term["namespaceSelector"] = rng.choice(({}, {"matchLabels": {"team": "b"}}, {"matchLabels": {"team": "c"}}))
    elif world.chance(0.15):
        term["namespaces"] = [f"{world.prefix}-b"]
    if world.chance(0.15):
        term["matchLabelKeys"] = ["rev"]
    elif world.chance(0.1):
        term["mismatchLabelKeys"] = ["rev"]
    return term


def pod_affinity(world: World) -> None:
    _web(world)
    if world.chance(0.4):
        world.pod["metadata"]["labels"]["rev"] = world.rng.choice("12")
    app = "new" if world.chance(0.2) else "web"
    affinity = world.spec.setdefault("affinity", {})
    affinity["podAffinity"] = {REQUIRED: [_term(world, app)]}
    if world.chance(0.25):
        affinity["podAffinity"][PREFERRED] = [{"weight": 50, "podAffinityTerm": _term(world, "web")}]


def pod_anti_affinity(world: World) -> None:
    _web(world)
    if world.chance(0.6):
        world.spec.setdefault("affinity", {})["podAntiAffinity"] = {REQUIRED: [_term(world, "web")]}
    for pod in world.bound:
        if pod["metadata"]["name"].startswith("web") and world.chance(0.4):
            pod["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [_term(world, "new")]}}


def spread(world: World) -> None:
    rng = world.rng
    _web(world)
    world.pod["metadata"]["labels"]["app"] = "web"
    made = []
    for key in rng.sample((ZONE, HOST, "rack", REGION), rng.choice((1, 1, 2))):
        each: Json = {"maxSkew": rng.choice((1, 1, 2)), "topologyKey": key}
        each["labelSelector"] = {"matchLabels": {"app": "web"}}
        each["whenUnsatisfiable"] = "DoNotSchedule" if world.chance(0.85) else "ScheduleAnyway"
        if each["whenUnsatisfiable"] == "DoNotSchedule" and world.chance(0.25):
            each["minDomains"] = rng.choice((2, 3, 5))
        if world.chance(0.2):
            each["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
        if world.chance(0.2):
            each["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
        if world.chance(0.15):
            each["matchLabelKeys"] = ["rev"]
            world.pod["metadata"]["labels"]["rev"] = "1"
        made.append(each)
    world.spec["topologySpreadConstraints"] = made


def preemption(world: World) -> None:
    rng = world.rng
    for number, node in enumerate(world.names()):
        amount = rng.choice(("100m", "3", "3500m", "7"))
        # They have time to end, so a pod that preempts them is seen to wait.
        spec: Json = {"requests": {"cpu": amount}, "priorityClassName": "low"}
        pod = world.running(f"low-{number}", node, labels={"app": "low"}, **spec)
        if world.chance(0.4):
            world.hold(pod, node, rng.randrange(1, 4))
    world.requests["cpu"] = rng.choice(("2", "3", "3500m"))
    world.spec["priorityClassName"] = rng.choice(("high", "high", "never", "low"))
    if world.chance(0.3):
        budget = {"selector": {"matchLabels": {"app": "low"}}, "maxUnavailable": 0}
        world.objects.append(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "budget", "namespace": world.prefix},
                "spec": budget,
            }
        )


def volumes(world: World) -> None:
    rng = world.rng
    kind = rng.choice(
        ("bound", "bound", "missing", "unbound", "wait", "static", "rwop", "limit", "capacity", "ephemeral")
    )
    modes = ["ReadWriteOncePod" if kind == "rwop" else "ReadWriteOnce"]
    classes = {"bound": "manual", "unbound": "manual", "static": "local", "limit": "limited", "capacity": "capacity"}
    name = classes.get(kind, "manual" if kind == "rwop" else "cloud")
    claim: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": world.prefix},
        "spec": {"accessModes": modes, "storageClassName": name, "resources": {"requests": {"storage": "5Gi"}}},
    }
    if kind == "ephemeral":
        template = {"spec": claim["spec"] | {"storageClassName": rng.choice(("cloud", "manual"))}}
        world.spec.setdefault("volumes", []).append({"name": "data", "ephemeral": {"volumeClaimTemplate": template}})
        return
    world.spec.setdefault("volumes", []).append({"name": "data", "persistentVolumeClaim": {"claimName": "data"}})
    if kind == "missing":
        return
    world.objects.append(claim)
    if kind in ("bound", "rwop", "limit"):
        world.objects.append(_volume(world, "pv", name, modes, bound=claim))
        claim["spec"]["volumeName"] = f"{world.prefix}-pv"
    if kind == "static":
        for number in range(rng.randrange(3)):
            world.objects.append(_volume(world, f"pv{number}", name, modes))
    if kind == "rwop" and world.chance(0.7):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        world.running("user", rng.choice(world.names()), volumes=[volume])
    if kind == "limit":
        for node in world.names():
            driver = {"name": "lim.example.com", "nodeID": node, "topologyKeys": None, "allocatable": {"count": 1}}
            spec = {"drivers": [driver] if world.chance(0.8) else []}
            metadata = {"name": node}
            world.objects.append(
                {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": spec}
            )
        for number, node in enumerate(world.names()):
            if world.chance(0.5):
                other = {**claim, "metadata": {"name": f"used-{number}", "namespace": world.prefix}}
                other["spec"] = {**claim["spec"], "volumeName": f"{world.prefix}-used-{number}"}
                world.objects.append(other)
                world.objects.append(_volume(world, f"used-{number}", name, modes, bound=other, anywhere=True))
                volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"used-{number}"}}
                world.running(f"disk-{number}", node, volumes=[volume])
    if kind == "capacity":
        for number, zone in enumerate(("z1", "z2")):
            if world.chance(0.7):
                world.objects.append(
                    {
                        "apiVersion": "storage.k8s.io/v1",
                        "kind": "CSIStorageCapacity",
                        "metadata": {"name": f"cap-{number}", "namespace": world.prefix},
                        "storageClassName": "capacity",
                        "nodeTopology": {"matchLabels": {ZONE: zone}},
                        "capacity": rng.choice(("1Gi", "10Gi")),
                    }
                )


def _volume(
    world: World, part: str, storage_class: str, modes: list[str], *, bound: Json | None = None, anywhere: bool = False
) -> Json:
    spec: Json = {
        "capacity": {"storage": world.rng.choice(("2Gi", "10Gi")) if bound is None else "10Gi"},
        "accessModes": modes,
        "storageClassName": storage_class,
        "persistentVolumeReclaimPolicy": "Retain",
    }
    spec["csi"] = {"driver": "lim.example.com", "volumeHandle": f"{world.prefix}-{part}"}
    if not anywhere and world.chance(0.7):
        field_of = {"key": HOST, "operator": "In", "values": world.rng.sample(world.names(), 2)}
        zone = {"key": ZONE, "operator": "In", "values": [world.rng.choice(("z1", "z2"))]}
        expression = world.rng.choice((field_of, zone))
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    if bound is not None:
        metadata = bound["metadata"]
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"} | metadata
    metadata = {"name": f"{world.prefix}-{part}"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def devices_only(world: World) -> None:
    """Nothing but the claim."""


FEATURES: Final[dict[str, Callable[[World], None]]] = {
    "dra-only": devices_only,
    "nodesel": node_selection,
    "taints": taints,
    "resources": resources,
    "podslimit": pods_limit,
    "extres": extended_resources,
    "ports": ports,
    "podaff": pod_affinity,
    "antiaff": pod_anti_affinity,
    "spread": spread,
    "volumes": volumes,
    "preempt": preemption,
    "disks": more_features.disks,
    "zones": more_features.volume_zones,
    "matching": more_features.volumes_to_match,
    "attached": more_features.attached_volumes,
    "prefer": more_features.preferences,
}
MIXED: Final = "mixed"
CLASSES: Final = (*FEATURES, MIXED)


def make(name: str, seed: int) -> World:
    """The cluster of a class and seed."""
    rng = random.Random(f"{name}-{seed}")
    world = World(f"{name.replace('-', '')[:4]}{seed}", rng)
    for number in range(rng.randrange(3, 9)):
        _add_node(world, number)
    _add_pod(world)
    features = rng.sample(list(FEATURES)[1:], rng.randrange(2, 5)) if name == MIXED else [name]
    for feature in features:
        FEATURES[feature](world)
    world.objects = more_features.drivers_together(world.objects)
    for number, node in enumerate(world.names()):
        for index in range(len(world.free[node])):
            if world.chance(0.35):
                world.hold(world.running(f"h-{number}-{index}", node, labels={"app": "holder"}), node, 1)
    return world


def _add_node(world: World, number: int) -> None:
    rng, name = world.rng, f"{world.prefix}-n{number}"
    labels = {HOST: name, ZONE: rng.choice(("z1", "z2", "z3")), REGION: rng.choice(("r1", "r1", "r2"))}
    labels["gen"] = str(rng.randrange(1, 10))
    if world.chance(0.7):
        labels["disk"] = rng.choice(("ssd", "hdd"))
    if world.chance(0.5):
        labels["rack"] = rng.choice(("k1", "k2"))
    amounts = {"cpu": rng.choice("48"), "memory": rng.choice(("8Gi", "16Gi")), "pods": "110"}
    amounts["ephemeral-storage"] = "100Gi"
    world.nodes.append(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {
                "capacity": dict(amounts),
                "allocatable": dict(amounts),
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        }
    )
    world.free[name] = []
    if world.chance(0.8):
        model = rng.choice("ab")
        world.free[name] = [f"gpu-{index}" for index in range(rng.randrange(1, 5))]
        devices = [
            {
                "name": device,
                "attributes": {"model": {"string": model}, "numa": {"int": index % 2}},
                "capacity": {"memory": {"value": rng.choice(("40Gi", "80Gi"))}},
            }
            for index, device in enumerate(world.free[name])
        ]
        world.objects.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"{name}-gpu"},
                "spec": {
                    "driver": DRIVER,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "nodeName": name,
                    "devices": devices,
                },
            }
        )


def _add_pod(world: World) -> None:
    rng = world.rng
    request: Json = {"deviceClassName": rng.choice(("gpu", "gpu", "gpu-a")), "count": rng.choice((1, 1, 1, 2))}
    if world.chance(0.2):
        text = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0'
        request["selectors"] = [{"cel": {"expression": text}}]
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}
    by_template = world.chance(0.5)
    world.objects.append(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate" if by_template else "ResourceClaim",
            "metadata": {"name": "gpu", "namespace": world.prefix},
            "spec": {"spec": spec} if by_template else spec,
        }
    )
    key = "resourceClaimTemplateName" if by_template else "resourceClaimName"
    container = {"name": "main", "image": "example.com/none"}
    world.pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": world.prefix, "labels": {"app": "new"}},
        "spec": {
            "containers": [{**container, "resources": {"requests": {"cpu": "100m"}, "claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", key: "gpu"}],
            "terminationGracePeriodSeconds": 0,
        },
    }


def shared_objects() -> list[Json]:
    """What every cluster has: classes of devices, storage, priority and runtimes."""
    driver = f'device.driver == "{DRIVER}"'
    model = f'{driver} && device.attributes["{DRIVER}"].model == "a"'
    out: list[Json] = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": text}}]},
        }
        for name, text in (("gpu", driver), ("gpu-a", model))
    ]
    nobody = "kubernetes.io/no-provisioner"
    for name, provisioner, mode in (
        ("manual", nobody, "Immediate"),
        ("local", nobody, "WaitForFirstConsumer"),
        ("cloud", "disk.example.com", "WaitForFirstConsumer"),
        ("capacity", "cap.example.com", "WaitForFirstConsumer"),
        ("limited", "lim.example.com", "Immediate"),
    ):
        storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
        out.append(storage | {"provisioner": provisioner, "volumeBindingMode": mode})
    for name, capacity in (("disk.example.com", False), ("cap.example.com", True), ("lim.example.com", False)):
        spec = {"attachRequired": name.startswith("lim"), "storageCapacity": capacity}
        out.append({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec})
    for name, value, policy in (
        ("high", 100_000, "PreemptLowerPriority"),
        ("low", 10, "PreemptLowerPriority"),
        ("never", 100_000, "Never"),
    ):
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        out.append(priority | {"value": value, "preemptionPolicy": policy})
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}}
    out.append(runtime | {"handler": "kata", "overhead": {"podFixed": {"cpu": "750m", "memory": "256Mi"}}})
    return out
