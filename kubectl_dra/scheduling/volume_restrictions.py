"""VolumeRestrictions: disks that two pods on one node cannot share, and claims that only one pod may use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.volumes import DiskSource, PersistentVolumeClaim, PodVolume
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.pod_claims import claim_not_found
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection

_ONE_POD: Final = "ReadWriteOncePod"


class DiskConflict(Reason, frozen=True):
    """A pod on the node uses a disk of this volume, and one of the two writes to it."""

    volume: str
    holder: str

    @property
    def words(self) -> str:
        return "node(s) had no available disk"


class ClaimOfOnePodInUse(Reason, frozen=True):
    """Another pod, on any node, uses a claim with access mode ReadWriteOncePod. ``claims`` are all such claims."""

    claims: tuple[str, ...]

    @property
    def words(self) -> str:
        return (
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
            "another pod"
        )


class VolumeRestrictions(Plugin):
    """The plugin for one pod."""

    name = PluginName.VOLUME_RESTRICTIONS

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._disks = [volume for volume in pod.spec.volumes if _disks(volume)]
        self._of_one_pod: set[str] = set()
        known = state.others("PersistentVolumeClaim")
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim: PersistentVolumeClaim | None = known.get((pod.metadata.namespace, name))
            if claim is None:
                self.rejection = Rejection(self.name, (claim_not_found(state, pod.metadata.namespace, name),))
                return
            if _ONE_POD in claim.spec.access_modes:
                self._of_one_pod.add(name)
        self._in_use = self._used()
        self.skipped = not self._disks and not self._in_use

    def filter(self, node: NodeState) -> Rejection | None:
        for volume in self._disks:
            for other in node.pods:
                if any(_conflict(volume, existing) for existing in other.spec.volumes):
                    return Rejection(self.name, (DiskConflict(volume.name, other.key),), resolvable=True)
        # The scheduler compares names of claims here without their namespace.
        left = len(self._in_use) + self._uses(node.added) - self._uses(node.removed)
        if left > 0:
            claims = tuple(sorted(self._in_use or self._of_one_pod))
            return Rejection(self.name, (ClaimOfOnePodInUse(claims),), resolvable=True)
        return None

    def _used(self) -> set[str]:
        """The pod's ReadWriteOncePod claims that a pod on any node uses."""
        if not self._of_one_pod:
            return set()
        namespace = self.pod.metadata.namespace
        return {
            volume.persistent_volume_claim.claim_name
            for node in self.state.nodes.values()
            for other in node.pods
            if other.metadata.namespace == namespace
            for volume in other.spec.volumes
            if volume.persistent_volume_claim is not None
            and volume.persistent_volume_claim.claim_name in self._of_one_pod
        }

    def _uses(self, pods: Iterable[Pod]) -> int:
        return sum(
            volume.persistent_volume_claim is not None and volume.persistent_volume_claim.claim_name in self._of_one_pod
            for other in pods
            for volume in other.spec.volumes
        )


def _disks(volume: PodVolume) -> bool:
    return any((volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.rbd, volume.iscsi))


def _conflict(own: PodVolume, other: PodVolume) -> bool:
    """Whether two pods on one node cannot both have these volumes. Readers can share all but EBS disks."""
    if own.aws_elastic_block_store is not None and other.aws_elastic_block_store is not None:
        return own.aws_elastic_block_store.volume_id == other.aws_elastic_block_store.volume_id
    if own.gce_persistent_disk is not None and other.gce_persistent_disk is not None:
        same = own.gce_persistent_disk.pd_name == other.gce_persistent_disk.pd_name
        return same and _one_writes(own.gce_persistent_disk, other.gce_persistent_disk)
    if own.iscsi is not None and other.iscsi is not None:
        return own.iscsi.iqn == other.iscsi.iqn and _one_writes(own.iscsi, other.iscsi)
    if own.rbd is not None and other.rbd is not None:
        same = (own.rbd.pool, own.rbd.image) == (other.rbd.pool, other.rbd.image)
        return same and bool({*own.rbd.monitors} & {*other.rbd.monitors}) and _one_writes(own.rbd, other.rbd)
    return False


def _one_writes(own: DiskSource, other: DiskSource) -> bool:
    return not (own.read_only and other.read_only)
