"""Saved clusters for the tests of migrate: nodes with GPUs of a device plugin, of the driver, or of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.snapshot import ABSENT, Gap, Snapshot

Json = dict[str, Any]
DRIVER = "gpu.nvidia.com"


def node(name: str, plugin: int = 0, *, resource: str = "nvidia.com/gpu", **labels: str) -> Json:
    """A node whose device plugin offers so much."""
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110", **({resource: str(plugin)} if plugin else {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def slice_of(name: str, count: int, kind: str = "gpu", product: str = "NVIDIA A100-SXM4-80GB") -> Json:
    """The ResourceSlice of a node with so many devices."""
    attributes = {
        "type": {"string": kind},
        "productName": {"string": product},
        **({"profile": {"string": "1g.5gb"}} if kind == "mig" else {}),
    }
    devices = [{"name": f"{kind}-{index}", "attributes": attributes} for index in range(count)]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return dra(
        "ResourceSlice", f"{name}-{kind}", {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    )


def dra(kind: str, name: str, spec: Json) -> Json:
    """An object of resource.k8s.io/v1."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def device_class() -> Json:
    """The class of whole GPUs, as the driver's chart has it."""
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'gpu'"
    return dra("DeviceClass", DRIVER, {"selectors": [{"cel": {"expression": expression}}]})


def pod(
    name: str,
    limits: Mapping[str, Any],
    *,
    namespace: str = "ml",
    owner: tuple[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    phase: str = "Running",
    **spec: Any,
) -> Json:
    """A pod of one container."""
    metadata: Json = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    if owner is not None:
        kind, owner_name = owner
        metadata["ownerReferences"] = [{"kind": kind, "name": owner_name, "uid": "u", "controller": True}]
    container = {"name": "main", "image": "a:1", "resources": {"limits": dict(limits)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
        "status": {"phase": phase},
    }


def snapshot(objects: Sequence[Json], *, expected: Sequence[str] = ()) -> Snapshot:
    """A cluster with these objects; ``expected`` kinds are gaps if there are none."""
    builder = SnapshotBuilder("ml")
    for number, raw in enumerate(objects):
        builder.add(raw, Place("cluster.yaml", number + 1))
    gaps = tuple(Gap(kind, ABSENT) for kind in expected if not any(raw["kind"] == kind for raw in objects))
    return replace(builder.build(complete=True), gaps=gaps)
