"""Namespaces of a manifest that do not exist: what fits is worked out as if they did, and told to be a no."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubectl_dra.admission.admit import AdmissionObjects
from kubectl_dra.admission.plugins import NamespaceMissing, namespace_refusal
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.fit.workload import WorkloadPods


def missing_namespaces(workloads: Sequence[WorkloadPods], snapshot: Snapshot) -> tuple[str, ...]:
    """The namespaces of workloads for which the API server refuses every pod, because there are none."""
    return tuple(
        name
        for name in dict.fromkeys(workload.namespace for workload in workloads)
        if isinstance(namespace_refusal(name, AdmissionObjects.of(snapshot, name).namespaces), NamespaceMissing)
    )


def with_namespaces(snapshot: Snapshot, names: Sequence[str]) -> Snapshot:
    """The cluster after these namespaces were created: without quotas, limits and labels."""
    return replace(snapshot, namespaces={**snapshot.namespaces, **{name: ObjectMeta(name=name) for name in names}})
