"""Small clusters for tests, as ``taint`` reads them."""

from __future__ import annotations

from typing import Any

from kubectl_dra.api.releases import parse_release
from kubectl_dra.cli.taint.session import TaintedCluster, tainted_cluster
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.snapshot import KINDS

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
Json = dict[str, Any]


def slice_of(node: str, *devices: Json, driver: str = DRIVER, pool: str = "") -> Json:
    at = {"name": pool or node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": at, "devices": list(devices)}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{driver}-{pool or node}"}, "spec": spec}


def gpu(name: str, uuid: str = "", **more: Any) -> Json:
    attributes = {"uuid": {"string": uuid}} if uuid else {}
    return {"name": name, "attributes": attributes, **more}


def node(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def device_class(name: str = "gpu", expression: str = f'device.driver == "{DRIVER}"') -> Json:
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def claim(name: str, *results: Json, pods: tuple[str, ...] = (), namespace: str = "team", **exactly: Any) -> Json:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", **exactly}}
    out: Json = {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [request]}},
    }
    if results:
        reserved = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]
        out["status"] = {"allocation": {"devices": {"results": list(results)}}, "reservedFor": reserved}
    return out


def result(device: str, pool: str = "n1", **more: Any) -> Json:
    return {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device, **more}


def pod(name: str, claim_name: str = "", node_name: str = "n1", **metadata: Any) -> Json:
    claims = [{"name": "gpu", "resourceClaimName": claim_name}] if claim_name else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", **metadata},
        "spec": {"nodeName": node_name, "containers": [{"name": "main"}], "resourceClaims": claims},
        "status": {"phase": "Running" if node_name else "Pending"},
    }


def rule(name: str, selector: Json | None, effect: str = "NoSchedule", key: str = "k", **metadata: Any) -> Json:
    spec: Json = {"taint": {"key": key, "effect": effect}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return {
        "apiVersion": API,
        "kind": "DeviceTaintRule",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "5", **metadata},
        "spec": spec,
    }


def world(*objects: Json, release: str = "1.37.1") -> TaintedCluster:
    builder = SnapshotBuilder("team")
    builder.server_release(parse_release(release))
    for kind in KINDS:
        builder.present(kind)
    for raw in objects:
        builder.add(raw, Place("test"))
    return tainted_cluster(builder.build(complete=True), "team")
