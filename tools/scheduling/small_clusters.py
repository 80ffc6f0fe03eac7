"""Small clusters for the tests of plugins: objects as the API serves them, short to write."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import default_features, parse_release
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.snapshot import FORBIDDEN, Gap, Key, Snapshot
from kubectl_dra.scheduling.framework import ClusterState, Plugin
from kubectl_dra.scheduling.reasons import Rejection
from kubectl_dra.scheduling.scheduler import Scheduler

JSON = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def node(name: str, zone: str = "", **fields: Any) -> JSON:
    """A node with its hostname label; ``labels``, ``taints``, ``allocatable`` and ``images`` as in the API."""
    labels = {HOSTNAME: name, **({ZONE: zone} if zone else {}), **fields.get("labels", {})}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": fields.get("taints", [])},
        "status": {"allocatable": fields.get("allocatable", {}), "images": fields.get("images", [])},
    }


def pod(
    name: str, on: str = "", labels: Mapping[str, str] | None = None, namespace: str = "default", **spec: Any
) -> JSON:
    """A pod, bound to a node where ``on`` says so."""
    meta: JSON = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": dict(labels or {})}
    if spec.pop("ending", False):
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if owner := spec.pop("owner", None):
        meta["ownerReferences"] = [{"controller": True, **owner}]
    status = spec.pop("status", {})
    return {"kind": "Pod", "metadata": meta, "spec": {"nodeName": on, **spec}, "status": status}


def namespace(name: str, **labels: str) -> JSON:
    """A namespace."""
    return {"kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def claim(name: str, volume: str = "", size: str = "1Gi", **fields: Any) -> JSON:
    """A PersistentVolumeClaim, bound where it has a volume and ``bound`` does not say otherwise."""
    annotations = dict(fields.pop("annotations", {}))
    if volume and fields.pop("bound", True):
        annotations["pv.kubernetes.io/bind-completed"] = "yes"
    meta: JSON = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations}
    meta |= fields.pop("metadata", {})
    spec: JSON = {"volumeName": volume, "resources": {"requests": {"storage": size}} if size else {}}
    if (storage_class := fields.pop("storage_class", None)) is not None:
        spec["storageClassName"] = storage_class
    status = {"phase": fields.pop("phase", "Bound" if volume else "Pending")}
    spec = {"accessModes": ["ReadWriteOnce"], **spec, **fields}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": status}


def volume(name: str, size: str = "1Gi", zone: str = "", **fields: Any) -> JSON:
    """A PersistentVolume, available; ``zone`` is its node affinity."""
    meta: JSON = {"name": name, "labels": fields.pop("labels", {}), "annotations": fields.pop("annotations", {})}
    meta |= fields.pop("metadata", {})
    spec: JSON = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]}
    if (storage_class := fields.pop("storage_class", None)) is not None:
        spec["storageClassName"] = storage_class
    if zone:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [within(ZONE, zone)]}]}}
    status = {"phase": fields.pop("phase", "Available")}
    return {"kind": "PersistentVolume", "metadata": meta, "spec": {**spec, **fields}, "status": status}


def storage_class(name: str, waits: bool = True, provisioner: str = "csi.example.com", **fields: Any) -> JSON:
    """A StorageClass."""
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    return {
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **fields,
    }


def within(key: str, *values: str) -> JSON:
    """The requirement that a label has one of these values."""
    return {"key": key, "operator": "In", "values": list(values)}


def using(*claims: str) -> JSON:
    """``spec.volumes`` with these claims."""
    return {"volumes": [{"name": f"v-{name}", "persistentVolumeClaim": {"claimName": name}} for name in claims]}


def state(
    objects: Iterable[JSON], release: str = "1.36", gates: Iterable[str] = (), unread: Iterable[str] = ()
) -> ClusterState:
    """The cluster of these objects; ``gates`` are on beside those of the release, ``unread`` are forbidden kinds."""
    nodes, pods, others = {}, {}, defaultdict[str, dict[Key, Any]](dict)
    namespaces = {"default": ObjectMeta(name="default")}
    for raw in objects:
        kind, meta = raw["kind"], raw["metadata"]
        if kind == "Node":
            nodes[meta["name"]] = Node.from_json(raw)
        elif kind == "Pod":
            pods[meta["namespace"], meta["name"]] = Pod.from_json(raw)
        elif kind == "Namespace":
            namespaces[meta["name"]] = ObjectMeta.from_json(meta)
        else:
            others[kind][meta.get("namespace", ""), meta["name"]] = SCHEDULING_KINDS[kind].decode(raw)
    gaps = tuple(Gap(kind, FORBIDDEN) for kind in unread)
    snapshot = Snapshot(nodes=nodes, pods=pods, namespaces=namespaces, others=others, gaps=gaps)
    parsed = parse_release(release)
    on = default_features(parsed) | frozenset(gates)
    return Scheduler(parsed, on, parsed.patch if release.count(".") > 1 else None).sees(Cluster(snapshot))


def asked(kind: type[Plugin], raw: JSON, cluster: ClusterState) -> Plugin:
    """The plugin for a pod."""
    return kind(Pod.from_json(raw), cluster)


def refused(kind: type[Plugin], raw: JSON, cluster: ClusterState) -> dict[str, str]:
    """The scheduler's words for each node that the plugin refuses, joined where there are several."""
    plugin = asked(kind, raw, cluster)
    assert plugin.rejection is None, plugin.rejection
    if plugin.skipped:
        return {}
    answers = {name: plugin.filter(entry) for name, entry in cluster.nodes.items()}
    return {name: words(found) for name, found in answers.items() if found is not None}


def words(rejection: Rejection | None) -> str:
    """The scheduler's words of a rejection."""
    assert rejection is not None
    return "; ".join(reason.words for reason in rejection.reasons)
