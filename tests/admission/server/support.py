"""Manifests that the server accepts, and how to change them for a case."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

REMOVE: Final = object()
Edits = dict[str, Any]

_SELECTOR: Final = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
_TOLERATION: Final = {"key": "example.com/ecc", "operator": "Equal", "value": "x", "effect": "NoExecute"}
_CONFIG: Final = {"opaque": {"driver": "gpu.example.com", "parameters": {"kind": "GpuConfig"}}}
_EXACTLY: Final = {
    "deviceClassName": "gpu.example.com",
    "allocationMode": "ExactCount",
    "count": 1,
    "selectors": [_SELECTOR],
    "tolerations": [_TOLERATION],
}
_CLAIM_SPEC: Final = {
    "devices": {
        "requests": [
            {"name": "gpu", "exactly": _EXACTLY},
            {"name": "alt", "firstAvailable": [{"name": "a", "deviceClassName": "big"}, {"name": "b", **_EXACTLY}]},
        ],
        "constraints": [{"requests": ["gpu", "alt/a"], "matchAttribute": "example.com/numa"}],
        "config": [{"requests": ["gpu"], **_CONFIG}],
    }
}
_POOL: Final = {"name": "node-1/a", "generation": 1, "resourceSliceCount": 1}
_POLICY: Final = {"default": "2", "validRange": {"min": "1", "max": "9", "step": "1"}}
_DEVICE: Final = {
    "name": "gpu-0",
    "attributes": {"model": {"string": "A100"}, "example.com/fw": {"version": "1.2.3"}},
    "capacity": {
        "memory": {"value": "80Gi"},
        "cores": {"value": "10", "requestPolicy": _POLICY},
        "bw": {"value": "10", "requestPolicy": {"default": "2", "validValues": ["1", "2", "5"]}},
    },
    "allowMultipleAllocations": True,
    "taints": [{"key": "example.com/ecc", "value": "x", "effect": "None"}],
    "consumesCounters": [{"counterSet": "set-0", "counters": {"memory": {"value": "1Gi"}}}],
    "bindsToNode": True,
    "bindingConditions": ["example.com/ready"],
    "bindingFailureConditions": ["example.com/failed"],
}
_TERM: Final = {
    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}],
}
_POD_SPEC: Final = {
    "resourceClaims": [
        {"name": "gpu", "resourceClaimTemplateName": "gpu"},
        {"name": "nic", "resourceClaimName": "shared"},
    ],
    "containers": [
        {
            "name": "main",
            "image": "busybox",
            "resources": {
                "claims": [{"name": "gpu", "request": "r"}, {"name": "nic"}],
                "limits": {"example.com/gpu": "1", "deviceclass.resource.kubernetes.io/gpu": "1"},
                "requests": {"example.com/gpu": "1"},
            },
        }
    ],
}


def _object(kind: str, spec: dict[str, Any], api_version: str = "resource.k8s.io/v1") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def _workload(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": _POD_SPEC}
    selector = {"selector": {"matchLabels": {"app": "x"}}}
    return _object(kind, {**selector, "template": template, **spec}, "apps/v1")


_JOB: Final = {"template": {"spec": {**_POD_SPEC, "restartPolicy": "Never"}}}

BASES: Final[dict[str, dict[str, Any]]] = {
    "claim": _object("ResourceClaim", _CLAIM_SPEC),
    "template": _object("ResourceClaimTemplate", {"metadata": {"labels": {"a": "b"}}, "spec": _CLAIM_SPEC}),
    "class": _object(
        "DeviceClass", {"selectors": [_SELECTOR], "config": [_CONFIG], "extendedResourceName": "example.com/gpu"}
    ),
    "slice": _object(
        "ResourceSlice", {"driver": "gpu.example.com", "pool": _POOL, "nodeName": "node-1", "devices": [_DEVICE]}
    ),
    "selected": _object(
        "ResourceSlice", {"driver": "gpu.example.com", "pool": _POOL, "nodeSelector": {"nodeSelectorTerms": [_TERM]}}
    ),
    "per-device": _object(
        "ResourceSlice",
        {
            "driver": "gpu.example.com",
            "pool": _POOL,
            "perDeviceNodeSelection": True,
            "devices": [{"name": "gpu-0", "nodeName": "node-1"}],
        },
    ),
    "counters": _object(
        "ResourceSlice",
        {
            "driver": "gpu.example.com",
            "pool": _POOL,
            "allNodes": True,
            "sharedCounters": [{"name": "set-0", "counters": {"memory": {"value": "1Gi"}}}],
        },
    ),
    "rule": _object(
        "DeviceTaintRule",
        {
            "deviceSelector": {"driver": "gpu.example.com", "pool": "node-1/a", "device": "gpu-0"},
            "taint": {"key": "example.com/x", "value": "y", "effect": "NoExecute"},
        },
        "resource.k8s.io/v1beta2",
    ),
    "pool-request": _object(
        "ResourcePoolStatusRequest", {"driver": "gpu.example.com", "limit": 100}, "resource.k8s.io/v1alpha3"
    ),
    "pod": _object("Pod", _POD_SPEC, "v1"),
    "deployment": _workload("Deployment", {"replicas": 2}),
    "replica-set": _workload("ReplicaSet", {"replicas": 2}),
    "stateful-set": _workload("StatefulSet", {"serviceName": "x"}),
    "daemon-set": _workload("DaemonSet", {}),
    "job": _object("Job", _JOB, "batch/v1"),
    "cron-job": _object("CronJob", {"schedule": "@daily", "jobTemplate": {"spec": _JOB}}, "batch/v1"),
    "quota": _object("ResourceQuota", {"hard": {"gpu.deviceclass.resource.k8s.io/devices": "4", "pods": "3"}}, "v1"),
}


def edited(base: str, edits: Edits) -> dict[str, Any]:
    """A copy of a base manifest with values set, or removed, at paths such as ``spec/devices/0/name``."""
    out = deepcopy(BASES[base])
    for path, value in edits.items():
        *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
        at: Any = out
        for part in parents:
            at = at[part]
        if value is REMOVE:
            del at[last]
        elif isinstance(at, list) and last == len(at):
            at.append(deepcopy(value))
        else:
            at[last] = deepcopy(value)
    return out


def repeated(count: int, **fields: Any) -> list[dict[str, Any]]:
    """Entries with different names."""
    return [{"name": f"n{number}", **fields} for number in range(count)]
