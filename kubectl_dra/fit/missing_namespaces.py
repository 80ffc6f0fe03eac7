"""Namespaces of workloads that do not exist."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.admission.admit import AdmissionObjects
from kubectl_dra.admission.plugins import NamespaceMissing, namespace_refusal
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.fit.workload import WorkloadPods


def missing_namespaces(workloads: Sequence[WorkloadPods], snapshot: Snapshot) -> tuple[str, ...]:
    """The namespaces of workloads for which the API server refuses every pod, because there are none."""
    return tuple(
        name
        for name in dict.fromkeys(workload.namespace for workload in workloads)
        if isinstance(namespace_refusal(name, AdmissionObjects.of(snapshot, name).namespaces), NamespaceMissing)
    )
