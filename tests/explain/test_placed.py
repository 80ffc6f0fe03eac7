"""Which placed pods something keeps from running: most pods of a cluster need no devices, and are hardly looked at."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.allocation.extended_resources import resources_of
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.explain import pending_alike
from kubectl_dra.explain.pending_alike import placed

JSON = dict[str, Any]
PLAIN = 500


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
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    builder.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": ready}, Place("t"))
    for number in range(PLAIN):
        builder.add(_pod(f"plain-{number}", "cpu"), Place("t"))
    builder.add(_pod("lacks", "example.com/gpu"), Place("t"))
    builder.add(_pod("other", "example.com/nic"), Place("t"))
    assert [pod.metadata.name for pod in placed(builder.build())] == ["lacks"]
    assert len(read) == 3
