"""NodeVolumeLimits: the maximum number of volumes that a node can attach per CSI driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import structs

from kubectl_dra.api.behaviour import CSI_DRIVERS_MAY_BE_MISSING, PORTWORX_MIGRATED
from kubectl_dra.api.labels import Requirement
from kubectl_dra.api.nodes import NodeSelector, NodeSelectorTerm
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import Release
from kubectl_dra.api.volumes import (
    CSIDriver,
    CSINode,
    DiskSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PodVolume,
    VolumeAttachment,
)
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Reason, Rejection
from kubectl_dra.scheduling.volumes import (
    ClaimOfAnotherPod,
    class_of_claim,
    owned_by,
    persistent_volume,
    storage_class,
    volume_claims,
)

# Pre-CSI volumes, translated to volumes of the CSI drivers that replaced them (k8s.io/csi-translation-lib).

_ANNOTATION: Final = "storage.alpha.kubernetes.io/migrated-plugins"
_ZONES: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_REGION, _OLD_REGION = "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"
_SEVERAL: Final = "__"
_UNSPECIFIED: Final = "UNSPECIFIED"


class MigratedType(NamedTuple):
    """A volume type, the driver that serves it today, and the driver's zone label on nodes (empty if none)."""

    plugin: str
    driver: str
    zone_label: str


_EBS: Final = MigratedType("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone")
_GCE: Final = MigratedType("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
_AZURE: Final = MigratedType("kubernetes.io/azure-disk", "disk.csi.azure.com", "")
_CINDER: Final = MigratedType(
    "kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"
)
_PORTWORX: Final = MigratedType("kubernetes.io/portworx-volume", "pxd.portworx.com", "")
_BY_PLUGIN: Final = {migrated.plugin: migrated for migrated in (_EBS, _GCE, _AZURE, _CINDER, _PORTWORX)}


def type_of_source(volume: PodVolume | PersistentVolumeSpec) -> tuple[MigratedType, DiskSource] | None:
    """The type and the disk of a pre-CSI volume; None for any other volume."""
    sources = (
        (_EBS, volume.aws_elastic_block_store),
        (_GCE, volume.gce_persistent_disk),
        (_AZURE, volume.azure_disk),
        (_CINDER, volume.cinder),
        (_PORTWORX, volume.portworx_volume),
    )
    return next(((kind, source) for kind, source in sources if source is not None), None)


def counts_as_csi(kind: MigratedType, node: CSINode | None, release: Release) -> bool:
    """Whether volumes of the type count toward their driver's limit: wherever there is a CSINode.

    Before 1.36, Portworx counts only if the CSINode lists it among the types that its driver serves.
    """
    return node is not None and (kind is not _PORTWORX or release in PORTWORX_MIGRATED or served_by_driver(kind, node))


def served_by_driver(kind: MigratedType, node: CSINode | None) -> bool:
    """Whether the node says that the CSI driver serves volumes of this type there."""
    return node is not None and kind.plugin in node.metadata.annotations.get(_ANNOTATION, "").split(",")


def handle(kind: MigratedType, disk: DiskSource, volume: PersistentVolume | None) -> str:
    """The driver's name for the disk. ``volume`` is the PersistentVolume, or None for a disk in the pod itself."""
    if kind is _EBS:
        return disk.volume_id.rpartition("/")[2] if disk.volume_id.startswith("aws://") else disk.volume_id
    if kind is _GCE:
        return f"projects/{_UNSPECIFIED}/{_gce_place(volume)}/disks/{disk.pd_name}"
    return disk.disk_uri if kind is _AZURE else disk.volume_id


def migrated_affinity(kind: MigratedType, volume: PersistentVolume) -> NodeSelector | None:
    """The volume's required node affinity in its driver's terms: zones by the driver's label."""
    affinity = volume.spec.node_affinity
    written = affinity.required if affinity is not None else None
    if not kind.zone_label:
        return written
    terms = written.terms if written is not None else ()
    keys = {expression.key for term in terms for expression in term.expressions}
    zone = next((key for key in _ZONES if key in keys), None)
    label = next((key for key in _ZONES if key in volume.metadata.labels), None)
    region = _OLD_REGION if _ZONES[1] == (zone or label) else ""
    renamed = {region: _REGION} | ({zone: kind.zone_label} if zone else {})
    added: tuple[Requirement, ...] = ()
    if zone is None and label is not None:
        zones = {zone.strip() for zone in volume.metadata.labels[label].split(_SEVERAL)} - {""}
        added = (Requirement(kind.zone_label, "In", tuple(sorted(zones))),) if zones else ()
    if not terms:
        return NodeSelector((NodeSelectorTerm(added),)) if added else written
    return NodeSelector(
        tuple(
            structs.replace(
                term,
                expressions=(
                    *(
                        structs.replace(requirement, key=renamed.get(requirement.key, requirement.key))
                        for requirement in term.expressions
                    ),
                    *added,
                ),
            )
            for term in terms
        )
    )


def _gce_place(volume: PersistentVolume | None) -> str:
    labels = volume.metadata.labels if volume is not None else {}
    zones = (labels.get(_ZONES[1]) or labels.get(_ZONES[0]) or _UNSPECIFIED).split(_SEVERAL)
    return f"zones/{zones[0]}" if len(zones) == 1 else f"regions/{zones[0].rpartition('-')[0]}"


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
        missing = next(
            (volume_claim for volume_claim in volume_claims(self.pod, self.state) if volume_claim.claim is None), None
        )
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
        migrated = _BY_PLUGIN.get(kind.provisioner)
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
