"""The objects that stand between a workload and its pods, by which the scheduler spreads the pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import ValidationError

from kubectl_dra.api.meta import OwnerReference
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.fit.workload import WorkloadPods
from kubectl_dra.manifests.workloads import key_of

TEMPLATE_HASH: Final = "fit"
"""Stands for the hash of a pod template that a Deployment makes up."""


def controller_of(workload: WorkloadPods) -> OwnerReference | None:
    """What the pods of a workload are owned by; None where the scheduler does not ask who that is."""
    made = _selecting(workload)
    if made is None:
        return None
    kind, raw = made
    name = raw["metadata"]["name"]
    return OwnerReference(
        kind, name, f"fit:{workload.namespace}/{name}", controller=True, api_version=raw["apiVersion"]
    )


def with_controllers(snapshot: Snapshot, workloads: Iterable[WorkloadPods]) -> Snapshot:
    """The cluster with the owners of the workloads' pods. Raises InputError: a selector with a wrong type in it."""
    cluster = Cluster(snapshot)
    for workload in workloads:
        made = _selecting(workload)
        if made is not None:
            kind, raw = made
            key = (workload.namespace, raw["metadata"]["name"])
            try:
                owner = SCHEDULING_KINDS[kind].decode(raw)
            except ValidationError as error:
                raise InputError(f"{workload.title}: {error}") from None
            cluster = cluster.adding_other(kind, key, owner)
    return cluster.snapshot


def _selecting(workload: WorkloadPods) -> tuple[str, Mapping[str, Any]] | None:
    """The kind of the owner and the owner, with the selector of its pods."""
    group, kind = key_of(workload.raw) if workload.raw else ("", "")
    selector = (workload.raw.get("spec") or {}).get("selector") or {}
    metadata = {"name": workload.name, "namespace": workload.namespace}
    if (group, kind) == ("apps", "Deployment"):
        labels = {**(selector.get("matchLabels") or {}), "pod-template-hash": TEMPLATE_HASH}
        metadata["name"] = f"{workload.name}-{TEMPLATE_HASH}"
        kind, selector = "ReplicaSet", {**selector, "matchLabels": labels}
    elif (group, kind) == ("", "ReplicationController"):
        return kind, {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {"selector": selector}}
    elif group != "apps" or kind not in ("ReplicaSet", "StatefulSet"):
        return None
    return kind, {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"selector": selector}}
