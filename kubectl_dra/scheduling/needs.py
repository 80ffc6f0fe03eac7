"""Which further kinds decide where a pod runs: they are read only where a pod asks for it."""

from __future__ import annotations

from typing import Final

from kubectl_dra.api.pods import Pod

VOLUME_KINDS: Final = (
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
)
_NEVER: Final = "Never"


def uses_volumes(pod: Pod) -> bool:
    """Whether a volume of the pod decides where it runs."""
    return any(
        entry.persistent_volume_claim
        or entry.ephemeral
        or entry.csi
        or entry.gce_persistent_disk
        or entry.aws_elastic_block_store
        for entry in pod.spec.volumes
    )


def kinds_needed(pod: Pod) -> tuple[str, ...]:
    """The kinds, of ``cluster.kinds.SCHEDULING_KINDS``, that the scheduler looks at for this pod."""
    found: list[str] = []
    if uses_volumes(pod):
        found.extend(VOLUME_KINDS)
    if pod.priority > 0 and pod.spec.preemption_policy != _NEVER:
        found.append("PodDisruptionBudget")
    if pod.pod_group:
        found.append("PodGroup")
    if pod.spec.workload_ref is not None:
        found.append("Workload")
    return tuple(found)
