"""Ordinary pods for the benchmarks: as a server sends them, with all that no command reads.

Fields are in the server's order, which is that of Go's types.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

BYTES = 6_000
"""Of one pod, managed fields and statuses included."""
TIME = "2026-11-20T08:00:00Z"


@cache
def template() -> str:
    """The text of a pod of a Deployment, with marks where its number, its node's and its namespace's stand."""
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}
    container = {
        "name": "web",
        "image": "registry.example.com/team/web:1.27.3",
        "env": [{"name": f"SETTING_{index}", "value": "x" * 40} for index in range(20)],
        "resources": resources,
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "volumeMounts": [{"name": "kube-api-access-@POD@", "mountPath": "/var/run/secrets", "readOnly": True}],
    }
    status = {
        "name": "web",
        "imageID": "registry.example.com/team/web@sha256:" + "0" * 64,
        "ready": True,
        "state": {"running": {"startedAt": TIME}},
        "allocatedResources": resources["requests"],
        "resources": resources,
    }
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    fields: dict[str, Any] = {f"f:field{index}": {} for index in range(20)}
    manager: dict[str, Any] = {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": fields}}
    pod = {
        "metadata": {
            "name": "web-5f6d8c9b7d-@POD@",
            "namespace": "team-@SPACE@",
            "uid": "00000000-0000-0000-0000-0000@POD@",
            "resourceVersion": "1@POD@",
            "creationTimestamp": TIME,
            "labels": {"app": "web", "pod-template-hash": "5f6d8c9b7d"},
            "annotations": {"checksum/config": "0" * 64},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5f6d8c9b7d", "uid": "r", "controller": True}],
            "managedFields": [manager],
        },
        "spec": {
            "volumes": [{"name": "kube-api-access-@POD@", "projected": {"sources": [{"serviceAccountToken": {}}]}}],
            "containers": [container],
            "serviceAccountName": "default",
            "nodeName": "node-@NODE@",
            "schedulerName": "default-scheduler",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": kind, "status": "True", "lastTransitionTime": TIME} for kind in kinds],
            "containerStatuses": [status],
        },
    }
    manager["subresource"] = "s" * max(BYTES - len(_compact(pod)), 0)
    return _compact(pod)


def ordinary_pods(numbers: Sequence[int], nodes: int) -> Iterator[str]:
    """The texts of pods, spread over the nodes and 50 namespaces."""
    for pod in numbers:
        text = template().replace("@POD@", f"{pod:08}").replace("@SPACE@", str(pod % 50))
        yield text.replace("@NODE@", f"{pod % nodes:05}")


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
