"""Filters of volumes: VolumeRestrictions, VolumeZone and NodeVolumeLimits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import Struct

from kubectl_dra.api.behaviour import CSI_DRIVERS_MAY_BE_MISSING
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.volumes import (
    CSIDriver,
    CSINode,
    DiskSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PodVolume,
    VolumeAttachment,
)
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Reason, Rejection
from kubectl_dra.scheduling.volumes import (
    MIGRATED,
    ClaimOfAnotherPod,
    ObjectNotFound,
    claim_not_found,
    class_of_claim,
    counts_as_csi,
    handle,
    owned_by,
    persistent_volume,
    storage_class,
    type_of_source,
    volume_claims,
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


# NodeVolumeLimits: the maximum number of volumes that a node can attach per CSI driver.

_NOT_MADE: Final = "\0"
"""Prefix for the handle of a volume that does not exist yet; no driver's handle begins like this."""


class Attached(NamedTuple):
    """A volume as the limit counts it: pods that share one count once."""

    driver: str
    handle: str


class VolumeLimitReached(Reason, frozen=True):
    """With the pod, the node would exceed its volume limit for the driver."""

    TEXT = "node(s) exceed max volume count"
    SAID = "{attached} of {limit} volumes of {driver} attached, {wanted} wanted"
    driver: str
    limit: int
    attached: int
    wanted: int


class DriverNotOnNode(Reason, frozen=True):
    """The node lacks a CSI driver that must be there before pods (gate VolumeLimitScaling)."""

    TEXT = "{driver} CSI driver is not installed on the node"
    SAID = "CSI driver {driver} is not on the node"
    driver: str


class ClaimUnknown(Reason, frozen=True):
    """A claim of the pod does not exist."""

    TEXT = 'looking up PVC {namespace}/{claim}: persistentvolumeclaim "{claim}" not found'
    SAID = "PersistentVolumeClaim {namespace}/{claim} does not exist"
    namespace: str
    claim: str


class NodeVolumeLimits(Plugin):
    """The plugin for one pod."""

    name = PluginName.NODE_VOLUME_LIMITS

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self.skipped = not any(
            volume.persistent_volume_claim or volume.ephemeral or type_of_source(volume) for volume in pod.spec.volumes
        )

    def filter(self, node: NodeState) -> Rejection | None:
        csi_node: CSINode | None = self.state.others("CSINode").get(("", node.name))
        missing = next((entry for entry in volume_claims(self.pod, self.state) if entry.claim is None), None)
        if missing is not None:
            return Rejection(self.name, (ClaimUnknown(self.pod.metadata.namespace, missing.name),))
        wanted = self._volumes(self.pod, csi_node)
        if isinstance(wanted, ClaimOfAnotherPod):
            return Rejection(self.name, (wanted,), error=True)
        for driver in sorted({volume.driver for volume in wanted}):
            if self._missing_on(driver, csi_node):
                return Rejection(self.name, (DriverNotOnNode(driver),), resolvable=True)
        if not wanted:
            return None
        if csi_node is None and self.state.unknown("CSINode"):
            driver, count = Counter(volume.driver for volume in wanted).most_common(1)[0]
            return Rejection(self.name, (NotRead("CSINode", VolumeLimitReached(driver, 0, 0, count)),))
        limits = _limits(csi_node)
        if not limits:
            return None
        attached: set[Attached] = set()
        for other in node.pods:
            theirs = self._volumes(other, csi_node)
            if isinstance(theirs, ClaimOfAnotherPod):
                return Rejection(self.name, (theirs,), error=True)
            attached |= theirs
        new = Counter(volume.driver for volume in wanted - attached)
        # A volume that is attached and used by no pod (any more) takes a place too.
        there = Counter(volume.driver for volume in attached | self._attachments.get(node.name, set()))
        for driver, count in sorted(new.items()):
            limit = limits.get(driver)
            if limit is None:
                continue
            reason = VolumeLimitReached(driver, limit, there[driver], count)
            if there[driver] + count > limit:
                return Rejection(self.name, (reason,), resolvable=True)
            if self.state.unknown("VolumeAttachment"):
                return Rejection(self.name, (NotRead("VolumeAttachment", reason),))
        return None

    def _volumes(self, pod: Pod, node: CSINode | None) -> set[Attached] | ClaimOfAnotherPod:
        """The CSI volumes that the pod attaches on a node; missing claims do not count."""
        out: set[Attached] = set()
        for volume_claim in volume_claims(pod, self.state):
            if volume_claim.claim is None:
                continue
            if volume_claim.ephemeral and not owned_by(volume_claim.claim, pod):
                return ClaimOfAnotherPod(pod.metadata.namespace, volume_claim.name, pod.metadata.name)
            attached_volume = self._of_claim(volume_claim.claim, node)
            if attached_volume is not None and attached_volume.driver and attached_volume.handle:
                out.add(attached_volume)
        for volume in pod.spec.volumes:
            migrated = type_of_source(volume)
            if migrated is not None and counts_as_csi(migrated[0], node, self.state.release):
                out.add(Attached(migrated[0].driver, handle(*migrated, None)))
        return out

    def _of_claim(self, claim: PersistentVolumeClaim, node: CSINode | None) -> Attached | None:
        volume = persistent_volume(self.state, claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is None:
            return self._to_be_made(claim, node)
        if volume.spec.csi is not None:
            return Attached(volume.spec.csi.driver, volume.spec.csi.volume_handle)
        migrated = type_of_source(volume.spec)
        if migrated is None or not counts_as_csi(migrated[0], node, self.state.release):
            return None
        return Attached(migrated[0].driver, handle(*migrated, volume))

    def _to_be_made(self, claim: PersistentVolumeClaim, node: CSINode | None) -> Attached | None:
        """The volume that the claim's class would create."""
        kind = storage_class(self.state, class_of_claim(claim))
        if kind is None:
            return None
        own = f"{_NOT_MADE}{claim.metadata.key}"
        migrated = MIGRATED.get(kind.provisioner)
        if migrated is None:
            return Attached(kind.provisioner, own)
        return Attached(migrated.driver, own) if counts_as_csi(migrated, node, self.state.release) else None

    def _missing_on(self, driver: str, node: CSINode | None) -> bool:
        """Whether the driver must be on a node before the pod, and is not."""
        if "VolumeLimitScaling" not in self.state.gates:
            return False
        installed: CSIDriver | None = self.state.others("CSIDriver").get(("", driver))
        if installed is None:
            return False
        if self.state.release in CSI_DRIVERS_MAY_BE_MISSING and not installed.spec.prevent_pod_scheduling_if_missing:
            return False
        return node is None or all(installed.name != driver for installed in node.spec.drivers)

    @cached_property
    def _attachments(self) -> Mapping[str, set[Attached]]:
        """The attached volumes, by node."""
        out: dict[str, set[Attached]] = {}
        entries: Mapping[tuple[str, str], VolumeAttachment] = self.state.others("VolumeAttachment")
        for attachment in entries.values():
            volume = persistent_volume(self.state, attachment.spec.source.persistent_volume_name)
            if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
                own = Attached(attachment.spec.attacher, volume.spec.csi.volume_handle)
                out.setdefault(attachment.spec.node_name, set()).add(own)
        return out


def _limits(node: CSINode | None) -> dict[str, int]:
    """The node's volume limits, by driver."""
    if node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
