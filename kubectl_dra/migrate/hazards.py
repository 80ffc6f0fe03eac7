"""What a correct change does not keep: nodes that an autoscaler makes, shares of devices, preemption."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import value_at
from kubectl_dra.manifests.documents import Document, each
from kubectl_dra.manifests.objects import title
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.workloads import containers, key_of, pod_specs

_SHARED: Final = re.compile(r"^\s*(timeSlicing|mps)\s*:", re.MULTILINE)


class Autoscaler(NamedTuple):
    """An object that says who makes nodes: its group and kind, and what to know of claims there."""

    group: str
    kind: str
    message: str


_KARPENTER: Final = (
    "Karpenter makes nodes for pods with claims only with settings.enableDRA (alpha, for NVIDIA GPUs and EFA on AWS; "
    "Kubernetes 1.34 or later): without it, keep nodes that are there already"
)
AUTOSCALERS: Final = (
    Autoscaler("karpenter.k8s.aws", "EC2NodeClass", _KARPENTER),
    Autoscaler(
        "eks.amazonaws.com",
        "NodeClass",
        "nodes of EKS Auto Mode come with AWS's own device plugins, and a node must not offer a device twice: run "
        "pods with claims on managed node groups",
    ),
    Autoscaler(
        "karpenter.azure.com",
        "AKSNodeClass",
        "see that AKS's node auto-provisioning reads claims before you count on it: else keep a node pool with "
        "the driver",
    ),
    Autoscaler(
        "cloud.google.com",
        "ComputeClass",
        "GKE makes no new node pools for pods with claims (neither Autopilot nor node auto-provisioning does): create "
        "the node pool, with gke-no-default-nvidia-gpu-device-plugin=true for NVIDIA GPUs and the node label that the "
        "driver's DaemonSet selects, which scaling from zero needs too",
    ),
    Autoscaler("karpenter.sh", "NodePool", _KARPENTER),
)
_CLUSTER_AUTOSCALER: Final = (
    "the Cluster Autoscaler looks at claims only with --enable-dynamic-resource-allocation, and makes the first "
    "node of a "
    "group only if it knows the devices of such a node: keep one node in each group"
)


def autoscaler(raw: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> str:
    """What to know of claims where an object says who makes nodes; empty where it says nothing of it."""
    group, kind = key_of(raw)
    known = next((one.message for one in AUTOSCALERS if (one.group, one.kind) == (group, kind)), "")
    if (group, kind) == ("karpenter.sh", "NodePool"):
        made_by = value_at(raw, ("spec", "template", "spec", "nodeClassRef", "group"))
        # The class says it, where it is one of those above.
        return "" if any(made_by == key_of(other)[0] for other in others) else _of_pool(str(made_by or ""), known)
    if kind == "Deployment" and any(
        "cluster-autoscaler" in str(container.content.get("image"))
        for spec in pod_specs(raw)
        for container in containers(spec)
    ):
        return _CLUSTER_AUTOSCALER
    return known


def _of_pool(group: str, otherwise: str) -> str:
    return next((one.message for one in AUTOSCALERS if one.group == group), otherwise)


def claims_devices(objects: Iterable[Mapping[str, Any]]) -> bool:
    """Whether some pod among the objects has claims."""
    return any(spec.content.get("resourceClaims") for raw in objects for spec in pod_specs(raw))


def shared_resources(objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The resources of which a device plugin's configuration gives one device to several pods, and what says so."""
    out: dict[str, str] = {}
    for raw in objects:
        data = raw.get("data")
        if raw.get("kind") != "ConfigMap" or not isinstance(data, Mapping):
            continue
        for text in data.values():
            if isinstance(text, str) and _SHARED.search(text):
                for name in _replicated(text):
                    out.setdefault(name, title(raw))
    return out


def _replicated(text: str) -> Iterable[str]:
    try:
        documents = [found.object for found in each(Source("<text>", text)) if isinstance(found, Document)]
    except (FileError, RecursionError):
        return
    for document in documents:
        for strategy in ("timeSlicing", "mps"):
            resources = value_at(document, ("sharing", strategy, "resources"))
            for entry in resources if isinstance(resources, list) else ():
                if isinstance(entry, Mapping) and isinstance(entry.get("name"), str) and not entry.get("rename"):
                    replicas = entry.get("replicas")
                    if isinstance(replicas, int) and replicas > 1:
                        yield entry["name"]
