"""Small clusters and workloads for the tests of ``fit``: objects as the API serves them, short to write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from kubectl_dra.cluster.snapshot import EVERY_KIND
from tests.ran import ran, unwrapped

JSON = dict[str, Any]
SCHEMA = Draft202012Validator(json.loads((Path(__file__).parents[2] / "schemas" / "fit.json").read_text()))
DRIVER = "gpu.example.com"
CLASS = {"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "gpu"}}
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REPLICA_SET: JSON = {"kind": "ReplicaSet", "name": "web-7c9d5b8f6", "uid": "o", "apiVersion": "apps/v1"}


def node(name: str, gpus: int = 0, cpu: str = "8", pods: str = "20", zone: str = "") -> list[JSON]:
    """A node and its devices."""
    labels = {HOST: name, **({ZONE: zone} if zone else {})}
    made: JSON = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "uid": f"u-{name}", "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": pods}},
    }
    return [made, published(name, gpus)] if gpus else [made]


def published(name: str, gpus: int, **scope: Any) -> JSON:
    """A slice with so many devices, of a node unless ``scope`` says otherwise."""
    spec: JSON = {"driver": DRIVER, **(scope or {"nodeName": name})}
    spec["pool"] = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec["devices"] = [{"name": f"gpu-{index}"} for index in range(gpus)]
    return {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": name}, "spec": spec}


def running(name: str, on: str, gpus: Sequence[int] = (), owner: JSON | None = None, **spec: Any) -> list[JSON]:
    """A pod that runs, with devices of its node."""
    metadata: JSON = {"name": name, "namespace": "default", "uid": f"u-{name}"}
    if owner is not None:
        metadata["ownerReferences"] = [{"controller": True, "uid": "o", **owner}]
    pod: JSON = {"nodeName": on, "containers": [{"name": "c", "image": "i"}], **spec}
    made = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": pod, "status": {"phase": "Running"}}
    if not gpus:
        return [made]
    pod["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    return [made, held(name, on, gpus, name)]


def held(name: str, on: str, gpus: Sequence[int], user: str = "") -> JSON:
    """An allocated claim, used by a pod where one is named."""
    results = [{"request": "gpu", "driver": DRIVER, "pool": on, "device": f"gpu-{index}"} for index in gpus]
    fields = [{"key": "metadata.name", "operator": "In", "values": [on]}]
    status: JSON = {
        "allocation": {
            "devices": {"results": results},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
        }
    }
    if user:
        status["reservedFor"] = [{"resource": "pods", "name": user, "uid": f"u-{user}"}]
    return {**claim(name, len(gpus)), "status": status}


def made_claim(pod: str, on: str = "", devices: Sequence[int] = (), count: int = 1) -> JSON:
    """The claim that was made for a pod, with devices of a node where there are any."""
    name = f"{pod}-gpu-x7k2p"
    made = held(name, on, devices, pod if on else "") if devices else claim(name, count)
    owner = {"kind": "Pod", "name": pod, "uid": f"u-{pod}", "controller": True, "apiVersion": "v1"}
    made["metadata"]["ownerReferences"] = [owner]
    return made


def existing(name: str, spec: JSON, on: str = "", owner: JSON = REPLICA_SET) -> JSON:
    """A pod as the API server has it; without a node it waits."""
    status: JSON = {"phase": "Running" if on else "Pending"}
    if spec.get("resourceClaims"):
        status["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"{name}-gpu-x7k2p"}]
    stored = {**deepcopy(spec), **({"nodeName": on} if on else {}), "priority": 0}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"u-{name}",
        "ownerReferences": [{"controller": True, **owner}],
    }
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": stored, "status": status}


def claim(name: str, count: int = 1, kind: str = "ResourceClaim") -> JSON:
    """A claim, or a template of one, for so many devices."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]
    spec: JSON = {"devices": {"requests": requests}}
    metadata: JSON = {"name": name, "namespace": "default", "uid": f"u-claim-{name}"}
    if kind == "ResourceClaimTemplate":
        spec, metadata = {"spec": spec}, {"name": name, "namespace": "default"}
    return {"kind": kind, "apiVersion": "resource.k8s.io/v1", "metadata": metadata, "spec": spec}


def template(count: int = 1, name: str = "") -> JSON:
    """A template of claims for so many devices."""
    return claim(name or f"gpu-{count}", count, "ResourceClaimTemplate")


def pod_spec(gpus: int = 1, cpu: str = "", **spec: Any) -> JSON:
    """The spec of a pod that wants so many devices by a template, and so much cpu."""
    container: JSON = {"name": "c", "image": "i", "resources": {}}
    if cpu:
        container["resources"]["requests"] = {"cpu": cpu}
    made: JSON = {"containers": [container], **spec}
    if gpus:
        container["resources"]["claims"] = [{"name": "gpu"}]
        made["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": f"gpu-{gpus}"}]
    return made


def bare(name: str, gpus: int = 1, **spec: Any) -> JSON:
    """A pod that nobody makes anew."""
    metadata = {"name": name, "namespace": "default"}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": pod_spec(gpus, **spec)}


def waiting(name: str, gpus: int = 1, **spec: Any) -> list[JSON]:
    """A pod that wants devices by a claim of its own, and has no node."""
    (pod,) = running(name, "", resourceClaims=[{"name": "gpu", "resourceClaimName": name}], **spec)
    pod["metadata"]["creationTimestamp"] = "2026-11-29T00:00:00Z"
    pod["status"] = {"phase": "Pending"}
    return [pod, claim(name, gpus)]


def wanting(cpu: str) -> list[JSON]:
    """The container of a pod that requests so much cpu."""
    return [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]


def tainted(name: str, gpus: int = 0, key: str = "sku", **taint: str) -> list[JSON]:
    """A node whose taint keeps pods away from its devices."""
    made = node(name, gpus)
    made[0]["spec"] = {"taints": [{"key": key, "effect": "NoSchedule", **taint}]}
    return made


def job(parallelism: int, completions: int | None = None, name: str = "web", **status: Any) -> JSON:
    """A Job whose pods want a device each."""
    spec: JSON = {"parallelism": parallelism, "template": {"spec": pod_spec(restartPolicy="Never")}}
    if completions is not None:
        spec["completions"] = completions
    meta = {"name": name, "namespace": "default", "uid": "o"}
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": meta, "spec": spec, "status": status}


def deployment(replicas: int, name: str = "web", gpus: int = 1, cpu: str = "", **spec: Any) -> JSON:
    """A Deployment."""
    labels = {"app": name}
    pods = {"metadata": {"labels": labels}, "spec": pod_spec(gpus, cpu, **spec)}
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pods},
    }


def replica_set(of: JSON, name: str = "") -> JSON:
    """The ReplicaSet with the template of a Deployment."""
    name = name or REPLICA_SET["name"]
    made = deepcopy(of["spec"]["template"])
    made["metadata"]["labels"]["pod-template-hash"] = name.rpartition("-")[2]
    owner = {"kind": "Deployment", "name": "web", "uid": "d", "controller": True, "apiVersion": "apps/v1"}
    meta = {"name": name, "namespace": "default", "uid": "o", "ownerReferences": [owner]}
    spec = {"replicas": of["spec"]["replicas"], "selector": of["spec"]["selector"], "template": made}
    return {"kind": "ReplicaSet", "apiVersion": "apps/v1", "metadata": meta, "spec": spec}


def fitted(
    folder: Path, cluster: Sequence[JSON], manifest: Sequence[JSON], *flags: str, unseen: Sequence[str] = ("Service",)
) -> tuple[int, JSON]:
    """The exit code of ``fit -o json``, and its report, which fits the schema."""
    code, out, errors = said(folder, cluster, manifest, *flags, "-o", "json", unseen=unseen)
    assert errors == ""
    report = json.loads(out)
    SCHEMA.validate(report)
    return code, report


def item(folder: Path, cluster: Sequence[JSON], manifest: Sequence[JSON], *flags: str) -> JSON:
    """The report on the only workload."""
    _, report = fitted(folder, cluster, manifest, *flags)
    (found,) = report["items"]
    assert isinstance(found, dict)
    return found


def write_cluster(path: Path, objects: Sequence[JSON], unseen: Sequence[str] = ()) -> None:
    """A file with a cluster's objects, all of them but the kinds that nobody listed."""
    read = [kind for kind in EVERY_KIND if kind not in unseen]
    head = {"kind": "List", "apiVersion": "v1", "kubectl-dra": {"schemaVersion": "1", "read": read}}
    path.write_text(json.dumps({**head, "items": list(objects)}))


def as_accepted(obj: JSON) -> JSON:
    """A workload with what the API server wants of it and these tests have no use for."""
    obj = deepcopy(obj)
    spec = obj.get("spec")
    if obj["kind"] == "CronJob" and isinstance(spec, dict):
        spec = spec.get("jobTemplate", {}).get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(template, dict):
        return obj
    if obj["kind"] in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet") and not spec.get("selector"):
        meta = template.setdefault("metadata", {})
        if isinstance(meta, dict) and isinstance(meta.setdefault("labels", {}), dict):
            meta["labels"].setdefault("app", obj["metadata"]["name"])
            spec["selector"] = {"matchLabels": {"app": meta["labels"]["app"]}}
    if obj["kind"] in ("Job", "CronJob") and isinstance(template.get("spec"), dict):
        template["spec"].setdefault("restartPolicy", "Never")
    return obj


def said(
    folder: Path, cluster: Sequence[JSON], manifest: Sequence[JSON], *flags: str, unseen: Sequence[str] = ("Service",)
) -> tuple[int, str, str]:
    """Exit code, output and errors of ``fit``; ``unseen`` kinds were not listed."""
    snapshot, file = folder / "cluster.json", folder / "manifest.json"
    write_cluster(snapshot, [CLASS, *cluster], unseen)
    items = [as_accepted(each) for each in manifest]
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    words = ["fit", "-f", str(file), "--snapshot", str(snapshot), "--kubernetes-version", "1.36"]
    return ran(*words, *flags)


def files(folder: Path) -> tuple[str, ...]:
    """The flags that name the manifest and the cluster that ``said`` has written."""
    return "-f", str(folder / "manifest.json"), "--snapshot", str(folder / "cluster.json")


def told(folder: Path, cluster: Sequence[JSON], manifest: Sequence[JSON], *flags: str) -> str:
    """The output of ``fit`` on one line."""
    return unwrapped(said(folder, cluster, manifest, *flags)[1])
