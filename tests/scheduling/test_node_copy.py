"""One more node like another one: what says which node or which hardware it is differs, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kubectl_dra.api.releases import default_features, parse_release
from kubectl_dra.api.slices import DeviceID, PoolID
from kubectl_dra.cluster.cluster import Cluster, NodeCopy
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.node_copy import node_copies
from kubectl_dra.scheduling.scheduler import Scheduler

JSON = dict[str, Any]
DRIVER = "gpu.example.com"
RELEASE = parse_release("1.36.0")
GATES = frozenset((*default_features(RELEASE), "DRADeviceTaintRules"))


def node(name: str, labels: JSON | None = None, **status: Any) -> JSON:
    meta = {"name": name, "labels": labels or {}, "annotations": {"csi": name, "about": f"{name} of row 1"}}
    status = {"allocatable": {"cpu": "8", "pods": "110"}, **status}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}


def entry(name: str, pool: str, devices: list[JSON], **scope: Any) -> JSON:
    spec = {"driver": DRIVER, "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1}, "devices": devices}
    meta = {"name": name}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": meta, "spec": {**spec, **scope}}


def on_host(host: str) -> JSON:
    wanted = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    return {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}


def state_of(folder: Path, *objects: JSON) -> ClusterState:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    snapshot = read_snapshot([str(path)])
    return Scheduler(RELEASE, GATES).sees(Cluster(snapshot))


def copies(folder: Path, *objects: JSON) -> dict[str, NodeCopy]:
    """The copies by the node that they are like."""
    state = state_of(folder, *objects)
    return {more.like: more for more in node_copies(state)}


def test_a_name_within_another_text_stays(tmp_path: Path) -> None:
    labels = {
        "kubernetes.io/hostname": "n1",
        "node.kubernetes.io/instance-type": "n1-standard-8",
        "topology.kubernetes.io/zone": "zone-n1",
        "topology.csi.example.com/node": "n1",
        "n1": "yes",
    }
    more = copies(tmp_path, node("n1", labels))["n1"].node
    assert more.name == "n1-more"
    own = {"kubernetes.io/hostname": "n1-more", "topology.csi.example.com/node": "n1-more"}
    assert more.labels == {**labels, **own}
    assert more.metadata.annotations == {"csi": "n1-more", "about": "n1 of row 1"}


def test_a_hostname_that_is_not_the_name(tmp_path: Path) -> None:
    labels = {"kubernetes.io/hostname": "ip-10-0-1-2", "example.com/host": "ip-10-0-1-2", "example.com/row": "10-0"}
    more = copies(tmp_path, node("ip-10-0-1-2.ec2.internal", labels))["ip-10-0-1-2.ec2.internal"].node
    own = {"kubernetes.io/hostname": "ip-10-0-1-2-more", "example.com/host": "ip-10-0-1-2-more"}
    assert more.labels == {**labels, **own}


def test_names_that_exist_are_not_taken(tmp_path: Path) -> None:
    slices = (entry("s", "gpu", [], nodeName="gpu"), entry("t", "gpu-more-2", [], nodeName="elsewhere"))
    found = copies(tmp_path, node("gpu", {"kind": "a"}), node("gpu-more", {"kind": "b"}), *slices)
    assert found["gpu"].node.name == "gpu-more-3"
    assert found["gpu-more"].node.name == "gpu-more-more"


def test_kinds_are_told_apart_by_what_is_not_the_nodes_own(tmp_path: Path) -> None:
    nodes = [
        node(f"n{number}", {"kubernetes.io/hostname": f"n{number}", "type": kind, "self": f"n{number}"})
        for number, kind in enumerate(("n0-large", "n0-large", "n2-large"))
    ]
    assert {like: more.exist for like, more in copies(tmp_path, *nodes).items()} == {"n0": 2, "n2": 1}


def test_kinds_are_told_apart_by_their_devices(tmp_path: Path) -> None:
    """By what these are, not by which: each has an identity and an address of its own."""
    objects = []
    for number, model in enumerate(("A100", "A100", "T4", "A100")):
        own = {"uuid": f"GPU-{number}", "pciAddr": f"0000:0{number}:00.0", "ip": f"10.0.0.{number}", "on": f"n{number}"}
        attributes = {name: {"string": text} for name, text in {**own, "model": model}.items()}
        capacity = {"memory": {"value": "80Gi" if number < 3 else "40Gi"}}
        taints = [{"key": "broken", "effect": "NoSchedule"}] if number == 1 else []
        device = {"name": "gpu-0", "attributes": attributes, "capacity": capacity, "taints": taints}
        objects += [node(f"n{number}"), entry(f"s{number}", f"n{number}", [device], nodeName=f"n{number}")]
    found = {like: more.exist for like, more in copies(tmp_path, *objects).items()}
    assert found == {"n0": 2, "n2": 1, "n3": 1}


def test_slices_of_the_node_and_no_others(tmp_path: Path) -> None:
    slices = (
        entry("named", "n1", [{"name": "a"}], nodeName="n1"),
        entry("selected", "fabric", [{"name": "b"}], nodeSelector=on_host("host-1")),
        entry("each", "parts", [{"name": "c", "nodeName": "n1"}], perDeviceNodeSelection=True),
        entry(
            "both",
            "mixed",
            [{"name": "d", "nodeName": "n1"}, {"name": "e", "nodeName": "n2"}],
            perDeviceNodeSelection=True,
        ),
        entry("all", "everywhere", [{"name": "f"}], allNodes=True),
        entry("others", "n2", [{"name": "g"}], nodeName="n2"),
    )
    first, second = node("n1", {"kubernetes.io/hostname": "host-1", "a": "x"}), node("n2", {"a": "y"})
    made = {slice_.name: slice_ for slice_ in copies(tmp_path, first, second, *slices)["n1"].slices}
    assert set(made) == {"named-more", "selected-more", "each-more"}
    assert made["named-more"].scope.node_name == "n1-more"
    assert made["named-more"].pool == PoolID(DRIVER, "n1-more")
    selector = made["selected-more"].scope.node_selector
    assert selector is not None
    assert selector.terms[0].expressions[0].values == ("host-1-more",)
    (device,) = made["each-more"].devices
    assert device.scope.node_name == "n1-more"


def test_other_hardware_without_its_faults(tmp_path: Path) -> None:
    """A rule for all devices of a driver holds for new ones; what the driver found on the old ones does not."""
    device = {
        "name": "gpu-0",
        "attributes": {"uuid": {"string": "GPU-1"}, "model": {"string": "n1"}, f"{DRIVER}/serial": {"string": "7"}},
        "taints": [{"key": "broken", "effect": "NoSchedule"}],
    }
    selectors = {"of-driver": {"driver": DRIVER}, "of-pool": {"pool": "n1"}, "named": {"device": "gpu-0"}}
    rules = [
        {
            "apiVersion": "resource.k8s.io/v1beta2",
            "kind": "DeviceTaintRule",
            "metadata": {"name": name},
            "spec": {"deviceSelector": selector, "taint": {"key": name, "effect": "NoSchedule"}},
        }
        for name, selector in selectors.items()
    ]
    state = state_of(tmp_path, node("n1"), entry("s", "n1", [device], nodeName="n1"), *rules)
    (found,) = node_copies(state)
    more = state.moved(state.cluster.adding_node(found)).cycle.index.by_pool[found.slices[0].pool]
    (made,) = more[0].devices
    assert {taint.key for taint in made.taints} == {"of-driver", "named"}
    assert {name: value["string"] for name, value in made.attributes.items()} == {
        "uuid": "GPU-1-more",
        "model": "n1",
        f"{DRIVER}/serial": "7-more",
    }


def test_daemons_take_what_they_take_on_each_node(tmp_path: Path) -> None:
    def pod(name: str, owner: str) -> JSON:
        owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "x", "uid": "x", "controller": True}]
        status = {"phase": "Running", "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]}
        claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        meta = {"name": name, "namespace": "kube", "uid": f"uid-{name}", "ownerReferences": owners}
        spec = {"nodeName": "n1", "containers": [{"name": "main"}], "resourceClaims": claims}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}

    def claim(name: str, device: str) -> JSON:
        owners = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}]
        meta = {"name": f"{name}-gpu", "namespace": "kube", "uid": f"uid-{name}-gpu", "ownerReferences": owners}
        result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": device}
        users = [{"resource": "pods", "name": name, "uid": f"uid-{name}"}]
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": meta,
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
            "status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": users},
        }

    objects = [pod("agent", "DaemonSet"), pod("job", "Job"), claim("agent", "gpu-0"), claim("job", "gpu-1")]
    slices = entry("s", "n1", [{"name": "gpu-0"}, {"name": "gpu-1"}], nodeName="n1")
    found = copies(tmp_path, node("n1"), slices, *objects)["n1"]
    assert [each.metadata.name for each in found.pods] == ["agent-more"]
    (held,) = found.claims
    assert held.allocation is not None
    assert [result.device for result in held.allocation.results] == [DeviceID(DRIVER, "n1-more", "gpu-0")]
    assert [user.uid for user in held.reserved_for] == [found.pods[0].metadata.uid]


def test_storage_drivers_have_the_same_limits(tmp_path: Path) -> None:
    drivers = [{"name": "csi.example.com", "nodeID": "n1", "allocatable": {"count": 3}}]
    csi = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "n1"},
        "spec": {"drivers": drivers},
    }
    made = copies(tmp_path, node("n1"), csi)["n1"].csi_node
    assert made is not None
    assert (made.metadata.name, made.spec.drivers[0].node_id) == ("n1-more", "n1-more")
    assert made.spec.drivers[0].allocatable is not None
    assert made.spec.drivers[0].allocatable.count == 3
