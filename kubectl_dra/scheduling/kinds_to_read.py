"""Which further kinds affect where a pod runs, so that they are read only if a pod needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.profile import Profile
from kubectl_dra.scheduling.volumes import type_of_source

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
CONTROLLERS: Final[Mapping[str, tuple[str, ...]]] = {
    "ReplicationController": ("", "v1"),
    "ReplicaSet": ("", "apps/v1"),
    "StatefulSet": ("", "apps/v1"),
}
"""Controllers whose pods the scheduler spreads, each with the versions that have it."""


def uses_volumes(pod: Pod) -> bool:
    """Whether a volume of the pod affects where it runs."""
    return any(
        volume.persistent_volume_claim or volume.ephemeral or volume.csi or type_of_source(volume) is not None
        for volume in pod.spec.volumes
    )


def group_kind(pod: Pod) -> str:
    """The kind that defines the pod's scheduling group; empty if it is scheduled alone."""
    if pod.spec.workload_ref is not None:
        return "Workload"
    return "PodGroup" if pod.pod_group else ""


def kinds_needed(pod: Pod, lowest: int | None) -> tuple[str, ...]:
    """The kinds from ``cluster.kinds.SCHEDULING_KINDS`` that the scheduler examines for this pod.

    ``lowest`` is the lowest priority of a pod on any node, or None without pods: budgets matter only if the
    pod can evict another.
    """
    kinds: list[str] = []
    if uses_volumes(pod):
        kinds.extend(VOLUME_KINDS)
    if lowest is not None and lowest < pod.priority and pod.spec.preemption_policy != _NEVER:
        kinds.append("PodDisruptionBudget")
    if kind := group_kind(pod):
        kinds.append(kind)
    return tuple(kinds)


def selecting_kinds(pod: Pod, profile: Profile) -> tuple[str, ...]:
    """The kinds that determine which pods are spread with this one, if the profile's own constraints spread it."""
    if pod.spec.topology_spread_constraints or not profile.args.spread.constraints:
        return ()
    kinds = ["Service"] if pod.metadata.labels else []
    owner = pod.metadata.controller()
    if owner is not None and owner.api_version in CONTROLLERS.get(owner.kind, ()):
        kinds.append(owner.kind)
    return tuple(kinds)
