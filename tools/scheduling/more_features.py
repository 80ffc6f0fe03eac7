"""More that pods of made-up clusters ask for: disks, zones, volumes to match, limits; and what they merely prefer."""

from __future__ import annotations

from typing import Any

from tools.scheduling.world import HOST, PREFERRED, REQUIRED, ZONE, Json, World

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
EBS = "ebs.csi.aws.com"


def disks(world: World) -> None:
    """Disks of before CSI in pods, which cannot be shared on a node."""
    rng = world.rng
    for number, node in enumerate(world.names()):
        if world.chance(0.6):
            world.running(f"old-disk-{number}", node, volumes=[{"name": "disk", **_disk(world)}])
    world.spec.setdefault("volumes", []).append({"name": "disk", **_disk(world)})
    if world.chance(0.3):
        for node in rng.sample(world.names(), 2):
            world.objects.append(_csi_node(node, {EBS: rng.choice((0, 1, 5))}))


def _disk(world: World) -> Json:
    rng, read = world.rng, world.chance(0.4)
    return rng.choice(
        (
            {"gcePersistentDisk": {"pdName": rng.choice("ab"), "readOnly": read}},
            {"awsElasticBlockStore": {"volumeID": rng.choice(("vol-1", "vol-2")), "readOnly": read}},
            {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0, "readOnly": read}},
            {"rbd": {"monitors": rng.sample(["m1", "m2", "m3"], 2), "image": "i", "readOnly": read}},
        )
    )


def volume_zones(world: World) -> None:
    """Bound volumes with labels of zones and regions."""
    rng = world.rng
    for node in world.nodes:
        if world.chance(0.2):
            node["metadata"]["labels"][OLD_ZONE] = node["metadata"]["labels"].pop(ZONE)
    for number in range(rng.choice((1, 1, 2))):
        labels = {rng.choice((ZONE, OLD_ZONE)): rng.choice(("z1", "z2", "z1__z2", "z2__z3"))}
        if world.chance(0.3):
            labels["topology.kubernetes.io/region"] = rng.choice(("r1", "r2"))
        claim = _claim(world, f"zoned-{number}", "manual", volumeName=f"{world.prefix}-zoned-{number}")
        volume = _volume(world, f"zoned-{number}", "manual", labels=labels)
        volume["spec"]["claimRef"] = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"} | claim["metadata"]
        world.objects.append(volume)


def volumes_to_match(world: World) -> None:
    """Claims that wait for the pod, volumes that fit some of them, classes with topologies."""
    rng = world.rng
    topology = {"matchLabelExpressions": [{"key": ZONE, "values": rng.sample(["z1", "z2", "z3"], rng.choice((1, 2)))}]}
    made: Json = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": f"{world.prefix}-class"},
        "provisioner": "disk.example.com" if world.chance(0.6) else "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    if world.chance(0.6):
        made["allowedTopologies"] = [topology]
    world.objects.append(made)
    claims = []
    for number in range(rng.choice((1, 2, 2, 3))):
        more: Json = {}
        if world.chance(0.2):
            more["selector"] = {"matchLabels": {"tier": "gold"}}
        if world.chance(0.15):
            more["volumeMode"] = "Block"
        claim = _claim(world, f"wait-{number}", rng.choice(("local", made["metadata"]["name"])), **more)
        claim["spec"]["resources"]["requests"]["storage"] = rng.choice(("1Gi", "5Gi", "9Gi"))
        # With a provisioner the scheduler would wait for the volume, which nobody makes.
        if claim["spec"]["storageClassName"] == "local" and world.chance(0.2):
            claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": rng.choice(world.names())}
        claims.append(claim)
    for number in range(rng.randrange(2, 7)):
        name = rng.choice(("local", made["metadata"]["name"]))
        volume = _volume(world, f"static-{number}", name, labels={"tier": rng.choice(("gold", "iron"))})
        spec = volume["spec"]
        spec["capacity"]["storage"] = rng.choice(("1Gi", "5Gi", "10Gi"))
        key, values = rng.choice(((ZONE, ["z1"]), (ZONE, ["z2", "z3"]), (HOST, rng.sample(world.names(), 2))))
        if world.chance(0.7):
            expression = {"key": key, "operator": rng.choice(("In", "In", "NotIn")), "values": values}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        if world.chance(0.15):
            spec["volumeMode"] = "Block"
        if world.chance(0.15):
            claimed = rng.choice(claims)["metadata"]
            spec["claimRef"] = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"} | {
                key: claimed[key] for key in ("name", "namespace")
            }
        world.objects.append(volume)


def attached_volumes(world: World) -> None:
    """Limits of drivers, volumes that are attached and used by no pod, shared volumes, several drivers."""
    rng = world.rng
    drivers = ("lim.example.com", "cap.example.com")
    for node in world.names():
        if world.chance(0.85):
            world.objects.append(_csi_node(node, {name: rng.choice((None, 1, 2, 3)) for name in drivers}))
    used = []
    for number in range(6):
        driver = rng.choice(drivers)
        name = f"att-{number}"
        claim = _claim(world, name, "limited", mount=False, volumeName=f"{world.prefix}-{name}")
        volume = _volume(world, name, "limited")
        volume["spec"]["csi"] = {"driver": driver, "volumeHandle": f"{world.prefix}-{rng.choice((name, 'same'))}"}
        volume["spec"]["claimRef"] = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"} | claim["metadata"]
        world.objects.append(volume)
        used.append((name, driver))
    for number, node in enumerate(world.names()):
        for index in range(rng.randrange(3)):
            mounts = [_mount(used_name) for used_name, _ in rng.sample(used, rng.choice((1, 2)))]
            world.running(f"att-{number}-{index}", node, volumes=mounts)
        if world.chance(0.4):
            name, driver = rng.choice(used)
            source = {"persistentVolumeName": f"{world.prefix}-{name}"}
            world.objects.append(
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "VolumeAttachment",
                    "metadata": {"name": f"{world.prefix}-va-{number}"},
                    "spec": {"attacher": driver, "nodeName": node, "source": source},
                }
            )
    for name, _ in rng.sample(used, rng.choice((1, 2))):
        world.spec.setdefault("volumes", []).append(_mount(name))


def preferences(world: World) -> None:
    """What decides between nodes that all take the pod."""
    rng = world.rng
    for node in world.nodes:
        if world.chance(0.3):
            taints = node["spec"].setdefault("taints", [])
            taints.append({"key": rng.choice("kl"), "value": "v", "effect": "PreferNoSchedule"})
        node["status"]["images"] = [
            {"names": [f"example.com/{name}:1"], "sizeBytes": rng.choice((90, 400, 1500)) << 20}
            for name in "ab"
            if world.chance(0.5)
        ]
    world.spec["containers"][0]["image"] = rng.choice(("example.com/a:1", "example.com/b:1", "example.com/none"))
    if world.chance(0.3):
        world.spec["tolerations"] = [{"key": "k", "operator": "Exists", "effect": rng.choice(("", "PreferNoSchedule"))}]
    affinity = world.spec.setdefault("affinity", {})
    if world.chance(0.4):
        expression = {"key": rng.choice((ZONE, "disk")), "operator": "In", "values": rng.sample(["z1", "z2", "ssd"], 2)}
        preference: Json = {"weight": rng.randrange(1, 101), "preference": {"matchExpressions": [expression]}}
        affinity.setdefault("nodeAffinity", {})[PREFERRED] = [preference]
    for number, host in enumerate(world.names()):
        for index in range(rng.randrange(3)):
            requests = {"cpu": rng.choice(("100m", "500m", "1"))}
            if world.chance(0.3):
                requests["memory"] = rng.choice(("100Mi", "2Gi"))
            spec: Json = {"requests": requests, "labels": {"app": "soft"}}
            if world.chance(0.3):
                kind, rule = (
                    rng.choice(("podAffinity", "podAntiAffinity")),
                    rng.choice((PREFERRED, PREFERRED, REQUIRED)),
                )
                if (kind, rule) != ("podAntiAffinity", REQUIRED):
                    spec["affinity"] = {kind: {rule: [_near(world, "new", rule == PREFERRED)]}}
            world.running(f"soft-{number}-{index}", host, other=world.chance(0.2), **spec)
    if world.chance(0.4):
        kind = rng.choice(("podAffinity", "podAntiAffinity"))
        affinity.setdefault(kind, {})[PREFERRED] = [_near(world, "soft", True)]
    if world.chance(0.4):
        world.spec["topologySpreadConstraints"] = [
            {
                "maxSkew": rng.choice((1, 2, 4)),
                "topologyKey": key,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "soft"}},
                **rng.choice(({}, {"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore"})),
            }
            for key in rng.sample((ZONE, HOST, "rack"), rng.choice((1, 2)))
        ]
    elif world.chance(0.6):
        world.pod["metadata"]["labels"]["app"] = "soft"
        selector = {"selector": {"app": "soft"}, "ports": [{"port": 80}]}
        metadata = {"name": "soft", "namespace": world.prefix}
        world.objects.append({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": selector})


def drivers_together(objects: list[Json]) -> list[Json]:
    """The objects with one CSINode for each node: that of several features has the drivers of all."""
    out: list[Json] = []
    nodes: dict[str, Json] = {}
    for raw in objects:
        known = nodes.get(raw["metadata"]["name"]) if raw["kind"] == "CSINode" else None
        if known is not None:
            present = {entry["name"] for entry in known["spec"]["drivers"]}
            known["spec"]["drivers"] += [entry for entry in raw["spec"]["drivers"] if entry["name"] not in present]
            continue
        if raw["kind"] == "CSINode":
            nodes[raw["metadata"]["name"]] = raw
        out.append(raw)
    return out


def _near(world: World, app: str, weighted: bool) -> Json:
    key = world.rng.choice((ZONE, HOST, "rack"))
    term: Json = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    if world.chance(0.2):
        out = {"key": "team", "operator": "NotIn", "values": ["b"]}
        term["namespaceSelector"] = world.rng.choice(({}, {"matchLabels": {"team": "b"}}, {"matchExpressions": [out]}))
    return {"weight": world.rng.randrange(1, 101), "podAffinityTerm": term} if weighted else term


def _claim(world: World, name: str, storage_class: str, *, mount: bool = True, **spec: Any) -> Json:
    """Adds a claim, and a volume of the pod that uses it."""
    made: Json = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": world.prefix},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "5Gi"}},
            **spec,
        },
    }
    world.objects.append(made)
    if mount:
        world.spec.setdefault("volumes", []).append(_mount(name))
    return made


def _mount(claim: str) -> Json:
    return {"name": claim, "persistentVolumeClaim": {"claimName": claim}}


def _volume(world: World, name: str, storage_class: str, labels: dict[str, str] | None = None) -> Json:
    full = f"{world.prefix}-{name}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": full, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": "disk.example.com", "volumeHandle": full},
        },
    }


def _csi_node(node: str, limits: dict[str, int | None]) -> Json:
    drivers = [
        {
            "name": name,
            "nodeID": node,
            "topologyKeys": None,
            **({"allocatable": {"count": count}} if count is not None else {}),
        }
        for name, count in limits.items()
    ]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": drivers},
    }
