"""Volumes (core/v1 and storage.k8s.io/v1), as far as the scheduler's volume plugins read them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from kubectl_dra.api.labels import LabelSelector
from kubectl_dra.api.meta import Amount, ApiObject, Wire
from kubectl_dra.api.nodes import NodeSelector


class ClaimVolumeSource(Wire, frozen=True):
    """``persistentVolumeClaim`` of a pod's volume."""

    claim_name: Annotated[str, "volumeclaim"] = ""
    read_only: bool = False


class VolumeResources(Wire, frozen=True):
    """``resources`` of a PersistentVolumeClaim."""

    requests: Annotated[dict[str, Amount], "resource"] = {}


class ObjectReference(Wire, frozen=True):
    """A reference to another object."""

    kind: Annotated[str, "keep"] = ""
    namespace: Annotated[str, "namespace"] = ""
    name: Annotated[str, "volumeclaim"] = ""
    uid: Annotated[str, "scrambled"] = ""


class PersistentVolumeClaimSpec(Wire, frozen=True):
    """``spec`` of a PersistentVolumeClaim. ``storage_class_name`` None is not the same as empty."""

    access_modes: Annotated[tuple[str, ...], "keep"] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: Annotated[str, "volume"] = ""
    storage_class_name: Annotated[str | None, "storageclass"] = None
    volume_mode: Annotated[str, "keep"] = "Filesystem"
    volume_attributes_class_name: Annotated[str | None, "storageclass"] = None


class PersistentVolumeClaimStatus(Wire, frozen=True):
    phase: Annotated[str, "keep"] = ""
    capacity: Annotated[dict[str, Amount], "resource"] = {}


class PersistentVolumeClaim(ApiObject, frozen=True):
    """A v1 PersistentVolumeClaim."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ClaimTemplate(ApiObject, frozen=True):
    """``volumeClaimTemplate`` of a generic ephemeral volume."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Wire, frozen=True):
    """``ephemeral`` of a pod's volume."""

    volume_claim_template: ClaimTemplate = ClaimTemplate()


class DiskSource(Wire, frozen=True):
    """A disk of a pre-CSI volume type: GCE PD, AWS EBS, Azure, Cinder, Portworx, iSCSI or Ceph RBD."""

    pd_name: Annotated[str, "scrambled"] = ""
    volume_id: Annotated[str, "scrambled"] = field(default="", name="volumeID")
    disk_uri: Annotated[str, "scrambled"] = field(default="", name="diskURI")
    read_only: bool = False
    iqn: Annotated[str, "scrambled"] = ""
    lun: int = 0
    target_portal: Annotated[str, "scrambled"] = ""
    monitors: Annotated[tuple[str, ...], "scrambled"] = ()
    pool: Annotated[str, "scrambled"] = "rbd"
    image: Annotated[str, "scrambled"] = ""


class CSIVolumeSource(Wire, frozen=True):
    """``csi`` of a pod's volume or a PersistentVolume."""

    driver: Annotated[str, "csidriver"] = ""
    volume_handle: Annotated[str, "scrambled"] = ""
    read_only: bool = False


class ImageSource(Wire, frozen=True):
    """``image`` of a pod's volume: an image whose files are mounted."""

    reference: str = ""


class PodVolume(Wire, frozen=True):
    """One entry of a pod's ``spec.volumes``, as far as it affects where the pod can run."""

    name: Annotated[str, "podvolume"] = ""
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: DiskSource | None = None
    aws_elastic_block_store: DiskSource | None = None
    azure_disk: DiskSource | None = None
    cinder: DiskSource | None = None
    portworx_volume: DiskSource | None = None
    iscsi: DiskSource | None = None
    rbd: DiskSource | None = None
    image: ImageSource | None = None


class VolumeNodeAffinity(Wire, frozen=True):
    """``spec.nodeAffinity`` of a PersistentVolume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Wire, frozen=True):
    capacity: Annotated[dict[str, Amount], "resource"] = {}
    access_modes: Annotated[tuple[str, ...], "keep"] = ()
    claim_ref: ObjectReference | None = None
    storage_class_name: Annotated[str, "storageclass"] = ""
    volume_mode: Annotated[str, "keep"] = "Filesystem"
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: DiskSource | None = None
    aws_elastic_block_store: DiskSource | None = None
    azure_disk: DiskSource | None = None
    cinder: DiskSource | None = None
    portworx_volume: DiskSource | None = None
    volume_attributes_class_name: Annotated[str | None, "storageclass"] = None


class PersistentVolumeStatus(Wire, frozen=True):
    phase: Annotated[str, "keep"] = ""


class PersistentVolume(ApiObject, frozen=True):
    """A v1 PersistentVolume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologyLabelRequirement(Wire, frozen=True):
    """One entry of ``matchLabelExpressions``: a label and its allowed values."""

    key: Annotated[str, "key"] = ""
    values: Annotated[tuple[str, ...], "value"] = ()


class TopologySelectorTerm(Wire, frozen=True):
    """One entry of ``allowedTopologies``; all its requirements must hold."""

    requirements: tuple[TopologyLabelRequirement, ...] = field(default=(), name="matchLabelExpressions")


class StorageClass(ApiObject, frozen=True):
    """A storage.k8s.io/v1 StorageClass."""

    provisioner: Annotated[str, "csidriver"] = ""
    volume_binding_mode: Annotated[str, "keep"] = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class CSIDriverSpec(Wire, frozen=True):
    storage_capacity: bool = False
    attach_required: bool = True
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(ApiObject, frozen=True):
    """A storage.k8s.io/v1 CSIDriver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class VolumeLimit(Wire, frozen=True):
    """``allocatable`` of a CSINode's driver; ``count`` None means no limit."""

    count: int | None = None


class CSINodeDriver(Wire, frozen=True):
    """A driver that a node has."""

    name: Annotated[str, "csidriver"] = ""
    node_id: Annotated[str, "node"] = field(default="", name="nodeID")
    topology_keys: Annotated[tuple[str, ...], "key"] = ()
    allocatable: VolumeLimit | None = None


class CSINodeSpec(Wire, frozen=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(ApiObject, frozen=True):
    """A storage.k8s.io/v1 CSINode, named like its node."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIStorageCapacity(ApiObject, frozen=True):
    """A storage.k8s.io/v1 CSIStorageCapacity. ``node_topology`` None means no node, an empty one every node."""

    storage_class_name: Annotated[str, "storageclass"] = ""
    node_topology: LabelSelector | None = None
    capacity: Amount | None = None
    maximum_volume_size: Amount | None = None


class VolumeAttachmentSource(Wire, frozen=True):
    """``spec.source`` of a VolumeAttachment; ``inline_volume_spec`` is kept raw."""

    persistent_volume_name: Annotated[str, "volume"] = ""
    inline_volume_spec: Annotated[dict[str, Any], PersistentVolumeSpec] = {}


class VolumeAttachmentSpec(Wire, frozen=True):
    attacher: Annotated[str, "csidriver"] = ""
    node_name: Annotated[str, "node"] = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(ApiObject, frozen=True):
    """A storage.k8s.io/v1 VolumeAttachment."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
