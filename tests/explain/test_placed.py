"""Which placed pods something keeps from running: most pods of a cluster need no devices, and are hardly looked at."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.allocation.extended_resources import resources_of
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain import pending_alike
from kubectl_dra.explain.causes import on_node
from kubectl_dra.explain.pending_alike import placed

JSON = dict[str, Any]
PLAIN = 500
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": READY}


def _pod(name: str, resource: str) -> JSON:
    container = {"name": "main", "resources": {"requests": {resource: "1"}}}
    metadata = {"name": name, "namespace": "ml", "uid": name}
    spec = {"nodeName": "n1", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def test_pods_of_one_spec_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(pod: Pod) -> list[str]:
        read.append(pod.metadata.name)
        return resources_of(pod)

    monkeypatch.setattr(pending_alike, "resources_of", counted)
    builder = SnapshotBuilder()
    spec = {"extendedResourceName": "example.com/gpu"}
    builder.add(
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec},
        Place("t"),
    )
    builder.add(NODE, Place("t"))
    for number in range(PLAIN):
        builder.add(_pod(f"plain-{number}", "cpu"), Place("t"))
    builder.add(_pod("lacks", "example.com/gpu"), Place("t"))
    builder.add(_pod("other", "example.com/nic"), Place("t"))
    assert [pod.metadata.name for pod in placed(builder.build())] == ["lacks"]
    assert len(read) == 3


def test_slices_are_looked_through_once_for_all_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many running pods on many nodes: what each pod's devices are compared with does not depend on the pod."""
    looked: list[Snapshot] = []
    nodes_by_pool = on_node._nodes_by_pool

    def counted(snapshot: Snapshot) -> Any:
        looked.append(snapshot)
        return nodes_by_pool(snapshot)

    monkeypatch.setattr(on_node, "_nodes_by_pool", counted)
    builder = SnapshotBuilder()
    for node in ("n1", "n2"):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
        published = {"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}
        builder.add({"apiVersion": "resource.k8s.io/v1", **published}, Place("t"))
    builder.add(NODE, Place("t"))
    for number in range(20):
        home = "n2" if number == 7 else "n1"
        results = [{"request": "gpu", "driver": "d", "pool": home, "device": "gpu-0"}]
        claim = {"metadata": {"name": f"c{number}", "namespace": "ml"}, "spec": {"devices": {}}}
        status = {"status": {"allocation": {"devices": {"results": results}}}}
        builder.add({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **claim, **status}, Place("t"))
        pod = _pod(f"p{number}", "cpu")
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": f"c{number}"}]
        builder.add(pod, Place("t"))
    assert [pod.metadata.name for pod in placed(builder.build())] == ["p7"]
    assert len(looked) == 1
