"""Pre-CSI volumes, translated to volumes of the CSI drivers that replaced them (k8s.io/csi-translation-lib)."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import structs

from kubectl_dra.api.behaviour import PORTWORX_MIGRATED
from kubectl_dra.api.labels import Requirement
from kubectl_dra.api.nodes import NodeSelector, NodeSelectorTerm
from kubectl_dra.api.releases import Release
from kubectl_dra.api.volumes import CSINode, DiskSource, PersistentVolume, PersistentVolumeSpec, PodVolume

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
_BY_PLUGIN: Final = {entry.plugin: entry for entry in (_EBS, _GCE, _AZURE, _CINDER, _PORTWORX)}


def type_of_provisioner(provisioner: str) -> MigratedType | None:
    """The volume type of a pre-CSI provisioner; None for any other provisioner."""
    return _BY_PLUGIN.get(provisioner)


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
    keys = {entry.key for term in terms for entry in term.expressions}
    zone = next((key for key in _ZONES if key in keys), None)
    label = next((key for key in _ZONES if key in volume.metadata.labels), None)
    region = _OLD_REGION if _ZONES[1] == (zone or label) else ""
    renamed = {region: _REGION} | ({zone: kind.zone_label} if zone else {})
    added: tuple[Requirement, ...] = ()
    if zone is None and label is not None:
        zones = {entry.strip() for entry in volume.metadata.labels[label].split(_SEVERAL)} - {""}
        added = (Requirement(kind.zone_label, "In", tuple(sorted(zones))),) if zones else ()
    if not terms:
        return NodeSelector((NodeSelectorTerm(added),)) if added else written
    return NodeSelector(
        tuple(
            structs.replace(
                term,
                expressions=(
                    *(structs.replace(entry, key=renamed.get(entry.key, entry.key)) for entry in term.expressions),
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
