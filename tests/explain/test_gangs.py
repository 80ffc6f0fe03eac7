"""Answers about pods of a gang: whether its members get their devices together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.ran import ran

JSON = dict[str, Any]
GPU = "gpu.example.com"


def cluster(gpus: int, members: int, minimum: int, said: str = "") -> list[JSON]:
    """Nodes with one device each, and a gang whose pods want one each."""
    ready = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}}
    items: list[JSON] = [{"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "gpu"}}]
    for index in range(gpus):
        name = f"n{index}"
        items.append({"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}, "status": ready})
        spec: JSON = {"driver": GPU, "nodeName": name, "devices": [{"name": "gpu-0"}]}
        spec["pool"] = {"name": name, "generation": 1, "resourceSliceCount": 1}
        items.append(
            {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": name}, "spec": spec}
        )
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    group = {"kind": "PodGroup", "apiVersion": "scheduling.k8s.io/v1alpha2", "spec": policy}
    items.append({**group, "metadata": {"name": "train", "namespace": "default"}})
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}
    for index in range(members):
        metadata = {"name": f"c{index}", "namespace": "default"}
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        devices = {"devices": {"requests": [request]}}
        made = {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": metadata, "spec": devices}
        items.append(made)
        pod: JSON = {
            "schedulingGroup": {"podGroupName": "train"},
            "containers": [{"name": "c", "image": "i"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": f"c{index}"}],
        }
        status = {"phase": "Pending", "conditions": [condition] if said else []}
        metadata = {"name": f"p{index}", "namespace": "default", "uid": f"u{index}"}
        items.append({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": pod, "status": status})
    return items


def explained(tmp_path: Path, items: list[JSON], pod: str = "p0") -> tuple[int, JSON]:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    words = ["explain", f"pod/{pod}", "--snapshot", str(path), "--complete", "--kubernetes-version", "1.36"]
    code, out, _ = ran(*words, "-o", "json")
    return code, json.loads(out)


def test_a_gang_that_gets_its_devices(tmp_path: Path) -> None:
    code, found = explained(tmp_path, cluster(3, 3, 3))
    assert (code, found["causes"]) == (0, [])
    assert "winners" not in found
    assert any("GenericWorkload, GangScheduling (off by default) must be on" in note for note in found["notes"])


def test_devices_for_some_of_a_gang(tmp_path: Path) -> None:
    code, found = explained(tmp_path, cluster(2, 3, 3))
    assert code == 1
    assert found["answer"].endswith("only 2 of the 3 pods that its group train wants fit together.")
    (cause,) = found["causes"]
    assert cause["code"] == "waiting-for-pod-group"
    values = {fact["field"]: fact["value"] for fact in cause["evidence"]}
    assert values["pods that fit together"] == "default/p0 on n0, default/p1 on n1"
    assert values["fits nowhere then"].startswith("0/2 nodes are available: 2 cannot allocate all claims.")
    assert cause["fix"]["text"] == "Make room for default/p2, or ask for less in the pods of the group."


def test_one_of_a_gang_is_left_out(tmp_path: Path) -> None:
    code, found = explained(tmp_path, cluster(2, 3, 2))
    assert code == 3
    assert "the group train fits, but not all of its pods: which is left out is not known" in found["answer"]


def test_what_the_scheduler_said_of_a_group_that_fits_now(tmp_path: Path) -> None:
    """Its word stands against ours, as for any pod."""
    items = cluster(3, 3, 3, said="pod group is unschedulable")
    code, found = explained(tmp_path, items)
    assert code == 3
    assert "judging by what was read, the pod fits on" in found["answer"]


def test_each_pod_of_a_gang_gets_devices_of_its_own(tmp_path: Path) -> None:
    """Of one node or of several, in whatever order they are asked about."""
    items = cluster(3, 3, 3)
    items[2]["spec"]["devices"] = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    given = []
    for pod in ("p0", "p1", "p2"):
        code, found = explained(tmp_path, items, pod)
        assert code == 0
        (placement,) = found["placements"]
        given += [(one["driver"], one["pool"], one["device"]) for one in placement["devices"]]
    assert len(given) == len(set(given)) == 3
