"""Which PersistentVolume fits a claim that waits for its first pod, and on which nodes a volume can be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Final

from kubectl_dra.api.labels import InvalidNodeSelector
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import Node, NodeSelector, term_matches
from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.volumes import PersistentVolume, PersistentVolumeClaim
from kubectl_dra.api.wire import Amount
from kubectl_dra.scheduling.pod_claims import class_of_claim, class_of_volume

_STORAGE: Final = "storage"


def allows(affinity: NodeSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a volume with this required node affinity can be used on a node with these labels.

    Only labels count: a term over the node's name (``matchFields``) never holds, nor does an unparsable one.
    """
    if affinity is None:
        return True
    node = Node(ObjectMeta(labels=dict(labels)))
    for term in affinity.terms:
        try:
            if term_matches(term, node):
                return True
        except InvalidNodeSelector:
            continue
    return False


def usable_with(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    """Whether the volume can be used on a node with these labels."""
    affinity = volume.spec.node_affinity
    return allows(affinity.required if affinity is not None else None, labels)


def best_match(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    labels: Mapping[str, str],
    taken: Set[str],
) -> PersistentVolume | None:
    """The volume for the claim on a node with these labels: the one reserved for it, else the smallest that
    fits.

    ``volumes`` are those of the claim's class; ``taken`` are the names of those given to the pod's other
    claims.
    """
    wanted = stored(claim.spec.resources.requests)
    smallest: PersistentVolume | None = None
    for volume in volumes:
        if volume.metadata.name in taken or not _open_to(volume, claim):
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
