"""What a correct change does not keep: nodes that an autoscaler makes, shares of devices, preemption."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.errors import FileError
from kubectl_dra.manifests.changes import Path, value_at
from kubectl_dra.manifests.documents import Document, each
from kubectl_dra.manifests.objects import title
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.workloads import containers, key_of, pod_specs

_SHARED: Final = re.compile(r"^\s*(timeSlicing|mps)\s*:", re.MULTILINE)


class Autoscaler(NamedTuple):
    """Who makes nodes: the group and kind of an object that says so, the node labels by which pods do, and what to
    know of claims there.
    """

    group: str
    kind: str
    labels: re.Pattern[str] | None
    message: str


# https://karpenter.sh/docs/tasks/dra/ and https://docs.aws.amazon.com/eks/latest/userguide/device-management.html,
# both as of November 2026.
_KARPENTER: Final = (
    "Karpenter makes nodes for pods with claims only from 1.15 and with settings.enableDRA (alpha, for NVIDIA GPUs and "
    "EFA on AWS; Kubernetes 1.34 or later): without it, keep nodes that are there already"
)
AUTOSCALERS: Final = (
    Autoscaler("karpenter.k8s.aws", "EC2NodeClass", re.compile(r"karpenter\.(k8s\.aws|sh)/"), _KARPENTER),
    Autoscaler(
        "eks.amazonaws.com",
        "NodeClass",
        re.compile(r"eks\.amazonaws\.com/(compute-type\Z|instance-)"),
        # The same page of EKS.
        "EKS Auto Mode does not support claims: run pods with claims on managed node groups, self-managed nodes or "
        "nodes of your own Karpenter",
    ),
    Autoscaler(
        "karpenter.azure.com",
        "AKSNodeClass",
        re.compile(r"karpenter\.azure\.com/"),
        # https://learn.microsoft.com/azure/aks/node-autoprovision says nothing of claims, as of November 2026.
        "AKS does not document whether its node auto-provisioning reads claims: try it before you count on it, or "
        "keep a node pool with the driver",
    ),
    Autoscaler(
        "cloud.google.com",
        "ComputeClass",
        re.compile(r"cloud\.google\.com/(gke-accelerator|compute-class|gke-spot|gke-provisioning)\Z"),
        # https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra, as of November 2026.
        "GKE makes no new node pools for pods with claims (neither Autopilot nor node auto-provisioning does): create "
        "the node pool, with gke-no-default-nvidia-gpu-device-plugin=true and gpu-driver-version=disabled for NVIDIA "
        "GPUs, and with the node label that the driver's DaemonSet selects, which scaling from zero needs too",
    ),
    Autoscaler("karpenter.sh", "NodePool", None, _KARPENTER),
)
# https://github.com/kubernetes/autoscaler/issues/7724 and 10199: what the first node of a group would have is up to
# each cloud provider of the autoscaler.
_CLUSTER_AUTOSCALER: Final = (
    "the Cluster Autoscaler looks at claims only with --enable-dynamic-resource-allocation, and makes the first node "
    "of a group only if it knows the devices of such a node: keep one node in each group"
)


def by_labels(spec: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """What to know of claims where the labels that a pod asks of its nodes say who makes these; once for each."""
    told: set[str] = set()
    for path, key in _labels(spec):
        for one in AUTOSCALERS:
            if one.labels is not None and one.labels.match(key) and one.message not in told:
                told.add(one.message)
                yield path, one.message


def _labels(spec: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    selector = spec.get("nodeSelector")
    for key in selector if isinstance(selector, Mapping) else ():
        yield ("nodeSelector", key), str(key)
    at: Path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for index, term in enumerate(_list(value_at(spec, at))):
        for number, wanted in enumerate(_list(term.get("matchExpressions")) if isinstance(term, Mapping) else ()):
            if isinstance(wanted, Mapping):
                yield (*at, index, "matchExpressions", number, "key"), str(wanted.get("key"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


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
