"""VolumeZone: the node must have the zone and region labels of the pod's volumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.volumes import PersistentVolume, PersistentVolumeClaim
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.pod_claims import (
    ObjectNotFound,
    claim_not_found,
    class_of_claim,
    persistent_volume,
    storage_class,
)
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection

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

    volume: str
    label: str
    values: tuple[str, ...]

    @property
    def words(self) -> str:
        return "node(s) had no available volume zone"


class ClaimWithoutName(Reason, frozen=True):
    """A volume of the pod has an empty claim name."""

    @property
    def words(self) -> str:
        return "PersistentVolumeClaim had no name"


class ClaimWithoutClass(Reason, frozen=True):
    """A claim has neither a volume nor a storage class."""

    claim: str

    @property
    def words(self) -> str:
        return "PersistentVolumeClaim had no pv name and storageClass name"


class VolumeWithoutName(Reason, frozen=True):
    """A claim that does not wait for a pod has no volume yet."""

    claim: str

    @property
    def words(self) -> str:
        return "PersistentVolume had no name"


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
        values = [entry.strip() for entry in written.split(_SEVERAL)]
        if all(values):
            yield _Place(volume.metadata.name, label, frozenset(values))
