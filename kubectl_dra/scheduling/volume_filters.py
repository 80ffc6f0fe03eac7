"""Filters of volumes: VolumeRestrictions and VolumeZone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.volumes import DiskSource, PersistentVolume, PersistentVolumeClaim, PodVolume
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection
from kubectl_dra.scheduling.volumes import (
    ObjectNotFound,
    claim_not_found,
    class_of_claim,
    persistent_volume,
    storage_class,
)

_ONE_POD: Final = "ReadWriteOncePod"


class DiskConflict(Reason, frozen=True):
    """A pod on the node uses a disk of this volume, and one of the two writes to it."""

    TEXT = "node(s) had no available disk"
    SAID = "pod {holder} uses the disk of volume {volume}"
    volume: str
    holder: str


class ClaimOfOnePodInUse(Reason, frozen=True):
    """Another pod, on any node, uses a claim with access mode ReadWriteOncePod. ``claims`` are all such claims."""

    TEXT = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
        "another pod"
    )
    SAID = "another pod uses PersistentVolumeClaim {claims} (ReadWriteOncePod)"
    claims: tuple[str, ...]


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
        users = len(self._in_use) + self._uses(node.added) - self._uses(node.removed)
        if users > 0:
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


# VolumeZone: the node must have the zone and region labels of the pod's volumes.

_TODAY: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Maps labels of zones and regions to their current names, in the scheduler's order."""
_SEVERAL: Final = "__"


class WrongZone(Reason, frozen=True):
    """The volume is in other zones or regions than the node."""

    TEXT = "node(s) had no available volume zone"
    SAID = "volume {volume} is in {label} {values}"
    volume: str
    label: str
    values: tuple[str, ...]


class ClaimWithoutName(Reason, frozen=True):
    """A volume of the pod has an empty claim name."""

    TEXT = "PersistentVolumeClaim had no name"
    SAID = "a volume of the pod names no PersistentVolumeClaim"


class ClaimWithoutClass(Reason, frozen=True):
    """A claim has neither a volume nor a storage class."""

    TEXT = "PersistentVolumeClaim had no pv name and storageClass name"
    SAID = "PersistentVolumeClaim {claim} has neither volume nor storage class"
    claim: str


class VolumeWithoutName(Reason, frozen=True):
    """A claim that does not wait for a pod has no volume yet."""

    TEXT = "PersistentVolume had no name"
    SAID = "PersistentVolumeClaim {claim} has no volume yet"
    claim: str


class _Place(Struct, frozen=True):
    volume: str
    label: str
    values: frozenset[str]


class VolumeZone(Plugin):
    """The plugin for one pod. Claims of ephemeral volumes are ignored."""

    name = PluginName.VOLUME_ZONE

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._places: list[_Place] = []
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            reason = self._read(volume.persistent_volume_claim.claim_name)
            if reason is not None:
                self.rejection = Rejection(self.name, (reason,))
                return
        self.skipped = not self._places

    def filter(self, node: NodeState) -> Rejection | None:
        labels = node.node.labels
        if not any(label in labels for label in _TODAY):
            return None
        for place in self._places:
            value = labels.get(place.label, labels.get(_TODAY[place.label]))
            if value not in place.values:
                reason = WrongZone(place.volume, place.label, tuple(sorted(place.values)))
                return Rejection(self.name, (reason,))
        return None

    def _read(self, name: str) -> Reason | None:
        """Record the claim's zones; returns a reason if the whole pod is refused."""
        if not name:
            return ClaimWithoutName()
        claim: PersistentVolumeClaim | None = self.state.others("PersistentVolumeClaim").get(
            (self.pod.metadata.namespace, name)
        )
        if claim is None:
            return claim_not_found(self.state, self.pod.metadata.namespace, name)
        if not claim.spec.volume_name:
            return self._unbound(claim)
        volume = persistent_volume(self.state, claim.spec.volume_name)
        if volume is None:
            missing = ObjectNotFound("persistentvolume", claim.spec.volume_name)
            return self.state.unless_unread("PersistentVolume", missing)
        self._places.extend(_places(volume))
        return None

    def _unbound(self, claim: PersistentVolumeClaim) -> Reason | None:
        name = class_of_claim(claim)
        if not name:
            return ClaimWithoutClass(claim.metadata.name)
        kind = storage_class(self.state, name)
        if kind is None:
            missing = ObjectNotFound("storageclass.storage.k8s.io", name)
            return self.state.unless_unread("StorageClass", missing)
        return None if kind.volume_binding_mode == "WaitForFirstConsumer" else VolumeWithoutName(claim.metadata.name)


def _places(volume: PersistentVolume) -> Iterator[_Place]:
    """Zones and regions by label. A value with an empty part is ignored."""
    for label in _TODAY:
        written = volume.metadata.labels.get(label)
        if written is None:
            continue
        values = [part.strip() for part in written.split(_SEVERAL)]
        if all(values):
            yield _Place(volume.metadata.name, label, frozenset(values))
