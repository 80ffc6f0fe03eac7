"""The PersistentVolumeClaims of a pod, which PersistentVolumes can be bound to them, and who serves old types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Final, NamedTuple

from msgspec import Struct, structs

from kubectl_dra.api.behaviour import PORTWORX_MIGRATED
from kubectl_dra.api.labels import Requirement
from kubectl_dra.api.meta import Amount, ObjectMeta, OwnerReference
from kubectl_dra.api.nodes import Node, NodeSelector, NodeSelectorTerm
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.releases import Release
from kubectl_dra.api.volumes import (
    CSINode,
    DiskSource,
    EphemeralVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PodVolume,
    StorageClass,
)
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.reasons import Reason

CLAIM: Final = "PersistentVolumeClaim"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"


class ObjectNotFound(Reason, frozen=True):
    """The pod needs an object that does not exist. ``resource`` is its kind as the scheduler writes it."""

    TEXT = '{resource} "{name}" not found'
    SAID = "{kind} {name} does not exist"
    resource: str
    name: str


def claim_not_found(state: ClusterState, namespace: str, name: str) -> Reason:
    """The reason for a claim that was not found."""
    return state.unless_unread(CLAIM, ObjectNotFound("persistentvolumeclaim", name), namespace)


class ClaimOfAnotherPod(Reason, frozen=True):
    """A claim has the name of the ephemeral volume's claim, but the pod does not own it."""

    TEXT = "PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)"
    SAID = "PersistentVolumeClaim {namespace}/{claim} belongs to another pod"
    namespace: str
    claim: str
    pod: str


class VolumeClaim(Struct, frozen=True):
    """One volume of a pod that uses a claim. ``claim`` None: no claim has that name.

    ``assumed``: the pod is not stored yet, and the claim is the one that would be made for its ephemeral
    volume.
    """

    volume: str
    name: str
    ephemeral: bool
    claim: PersistentVolumeClaim | None
    assumed: bool = False


def claim_name(pod: Pod, volume: PodVolume) -> str | None:
    """The name of the claim that the volume uses; None if it uses none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is None:
        return None
    return _named_claim(volume) or f"{pod.metadata.name}-{volume.name}"


def _named_claim(volume: PodVolume) -> str:
    """The name that a volume of a StatefulSet's pod has for its claim; the API takes none in an ephemeral volume."""
    return volume.ephemeral.volume_claim_template.metadata.name if volume.ephemeral is not None else ""


def volume_claims(pod: Pod, state: ClusterState) -> Iterator[VolumeClaim]:
    """The volumes of the pod that use a claim, in the pod's order."""
    known = state.others(CLAIM)
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        ephemeral = volume.persistent_volume_claim is None and not _named_claim(volume)
        claim = known.get((pod.metadata.namespace, name))
        assumed = claim is None and volume.ephemeral is not None and not pod.metadata.uid
        if assumed and volume.ephemeral is not None:
            claim = _to_be_made(pod, name, volume.ephemeral, state)
        yield VolumeClaim(volume.name, name, ephemeral, claim, assumed)


def owned_by(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether the claim was made for an ephemeral volume of the pod, which is then its controller."""
    controller = claim.metadata.controller()
    return controller is not None and controller.uid == pod.metadata.uid


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """The name of the claim's storage class; empty if none. The old annotation takes precedence over the field."""
    annotated = claim.metadata.annotations.get(_CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    """The name of the volume's storage class; empty if none."""
    annotated = volume.metadata.annotations.get(_CLASS_ANNOTATION)
    return annotated if annotated is not None else volume.spec.storage_class_name


def storage_class(state: ClusterState, name: str) -> StorageClass | None:
    """The storage class of that name."""
    storage_class: StorageClass | None = state.others("StorageClass").get(("", name))
    return storage_class


def persistent_volume(state: ClusterState, name: str) -> PersistentVolume | None:
    """The volume of that name."""
    persistent_volume: PersistentVolume | None = state.others("PersistentVolume").get(("", name))
    return persistent_volume


def waits_for_consumer(claim: PersistentVolumeClaim, state: ClusterState) -> bool:
    """Whether the claim is bound only once a pod that uses it has a node."""
    name = class_of_claim(claim)
    kind = storage_class(state, name) if name else None
    return kind is not None and kind.volume_binding_mode == "WaitForFirstConsumer"


def fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume and the controller has finished binding."""
    return bool(claim.spec.volume_name) and _BIND_COMPLETED in claim.metadata.annotations


def _to_be_made(pod: Pod, name: str, source: EphemeralVolumeSource, state: ClusterState) -> PersistentVolumeClaim:
    """The claim that will be made for an ephemeral volume of a pod not stored yet."""
    template = source.volume_claim_template
    spec = template.spec
    if spec.storage_class_name is None and (default := _default_class(state)):
        spec = structs.replace(spec, storage_class_name=default)
    owner = OwnerReference("Pod", pod.metadata.name, pod.metadata.uid, controller=True)
    meta = structs.replace(template.metadata, name=name, namespace=pod.metadata.namespace, owners=(owner,))
    return PersistentVolumeClaim(meta, spec, PersistentVolumeClaimStatus("Pending"))


def _default_class(state: ClusterState) -> str:
    """The class of claims that name none: the newest one marked as default."""
    marked: list[StorageClass] = [
        storage_class
        for storage_class in state.others("StorageClass").values()
        if any(storage_class.metadata.annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    ]
    marked.sort(key=lambda storage_class: storage_class.metadata.name)
    newest = max(marked, key=lambda storage_class: storage_class.metadata.creation_timestamp, default=None)
    return newest.metadata.name if newest is not None else ""


# Which PersistentVolume fits a claim that waits for its first pod, and on which nodes a volume can be used.

_STORAGE: Final = "storage"


def allows(affinity: NodeSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a volume with this required node affinity can be used on a node with these labels.

    Only labels count: a term over the node's name (``matchFields``) never holds, nor does an unparsable one.
    """
    return affinity is None or affinity.admits(Node(ObjectMeta(labels=dict(labels))))


def usable_with(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    """Whether the volume can be used on a node with these labels."""
    affinity = volume.spec.node_affinity
    return allows(affinity.required if affinity is not None else None, labels)


def best_match(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    labels: Mapping[str, str],
    matched: Set[str],
) -> PersistentVolume | None:
    """The volume for the claim on a node with these labels: the one reserved for it, else the smallest that
    fits.

    ``volumes`` are those of the claim's class; ``matched`` are the names of those given to the pod's other
    claims.
    """
    wanted = stored(claim.spec.resources.requests)
    smallest: PersistentVolume | None = None
    for volume in volumes:
        if volume.metadata.name in matched or not _open_to(volume, claim):
            continue
        size = stored(volume.spec.capacity)
        if size < wanted or volume.metadata.deletion_timestamp or not _same_kind(volume, claim):
            continue
        if volume.spec.claim_ref is not None:
            return volume if usable_with(volume, labels) else None
        if not _available(volume, claim) or not usable_with(volume, labels):
            continue
        if smallest is None or size < stored(smallest.spec.capacity):
            smallest = volume
    return smallest


def stored(amounts: Mapping[str, Amount]) -> int:
    """The storage amount in nano bytes; 0 if there is none."""
    return in_nanos(amounts.get(_STORAGE))


def in_nanos(amount: Amount | None) -> int:
    """A quantity in nano units; 0 if absent or unreadable."""
    if amount is None:
        return 0
    try:
        return Quantity.from_json(amount).nanos
    except QuantityError:
        return 0


def _open_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is unclaimed or reserved for the claim."""
    reference = volume.spec.claim_ref
    if reference is None:
        return True
    own = claim.metadata
    return (reference.name, reference.namespace) == (own.name, own.namespace) and reference.uid in ("", own.uid)


def _same_kind(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return volume.spec.volume_mode == claim.spec.volume_mode and (
        (volume.spec.volume_attributes_class_name or "") == (claim.spec.volume_attributes_class_name or "")
    )


def _available(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector = claim.spec.selector
    return (
        volume.status.phase == "Available"
        and (selector is None or selector.matches(volume.metadata.labels))
        and class_of_volume(volume) == class_of_claim(claim)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
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
MIGRATED: Final = {migrated.plugin: migrated for migrated in (_EBS, _GCE, _AZURE, _CINDER, _PORTWORX)}


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
