"""What a pod is to a claim: does it name it, is it listed in ``status.reservedFor``, does it use the devices?

Sources: the claim controller (pkg/controller/resourceclaim: which entries are stale, what it clears), and the package
resourceclaim of k8s.io/dynamic-resource-allocation, by which scheduler and kubelet tell who is listed and who owns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, auto
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.claims import Consumer, ResourceClaim
from kubectl_dra.api.meta import OwnerReference
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Key, Snapshot

PODGROUPS: Final = "podgroups"


class ClaimRelation(Enum):
    """What a pod, or an entry of ``status.reservedFor``, is to a claim."""

    NONE = auto()
    """The pod neither names the claim nor is listed."""
    NAMES = auto()
    """It names the claim, in its spec or its status, and is not listed."""
    NAMED = auto()
    """The same of a pod that has ended, and so will never use the claim."""
    NOT_OWNER = auto()
    """It names a claim that was made from a template for another pod: the scheduler leaves the pod out."""
    BINDING = auto()
    """Listed, without a node yet."""
    STARTING = auto()
    """Listed, on its node, and not known to run yet."""
    RUNNING = auto()
    """Listed, and running; or its node is lost (phase Unknown), so that the devices may be in use."""
    ENDING = auto()
    """Listed, on its node and being deleted: it has the devices until it is gone."""
    FINISHED = auto()
    """Listed, Succeeded or Failed."""
    NEVER_RAN = auto()
    """Listed, and deleted before it had a node."""
    REPLACED = auto()
    """The entry means an earlier pod of that name."""
    GONE = auto()
    """The entry means a pod that does not exist any more."""
    UNSEEN = auto()
    """The entry means a pod that is not among those that were read."""
    GROUP = auto()
    """The entry means a PodGroup; of a pod: its group is listed."""
    FOREIGN = auto()
    """The entry is not a pod's, and is kept for ever."""

    @property
    def listed(self) -> bool:
        """Whether ``status.reservedFor`` has an entry for it."""
        return self not in _UNLISTED

    @property
    def stale(self) -> bool:
        """Whether kube-controller-manager removes the entry by itself, within seconds."""
        return self in _STALE

    @property
    def of_pod(self) -> bool:
        """Whether it is that of a pod, and not of a group of pods or something else."""
        return self not in (ClaimRelation.GROUP, ClaimRelation.FOREIGN)


_UNLISTED: Final = frozenset((ClaimRelation.NONE, ClaimRelation.NAMES, ClaimRelation.NAMED, ClaimRelation.NOT_OWNER))
_STALE: Final = frozenset((ClaimRelation.FINISHED, ClaimRelation.NEVER_RAN, ClaimRelation.REPLACED, ClaimRelation.GONE))


def relation_of(
    claim: ResourceClaim, user: Pod | Consumer, pod: Pod | None = None, *, complete: bool = False, groups: bool = True
) -> ClaimRelation:
    """What a pod is to a claim, or an entry of its ``status.reservedFor``.

    Args:
        claim: the claim.
        user: the pod, or the entry.
        pod: for an entry, the pod that has its name now; None if none has that was read.
        complete: all pods of the claim's namespace were read.
        groups: the feature gate DRAWorkloadResourceClaims is on; only then are there claims of PodGroups.
    """
    if isinstance(user, Consumer):
        return _of_entry(claim, user, pod, complete=complete)
    own_entry = next((consumer for consumer in claim.reserved_for if _means(claim, consumer, user)), None)
    if own_entry is not None:
        return _of_entry(claim, own_entry, user, complete=complete)
    group = user.pod_group if groups and user.metadata.namespace == claim.metadata.namespace else ""
    if group and any(consumer.resource == PODGROUPS and consumer.name == group for consumer in claim.reserved_for):
        return ClaimRelation.GROUP
    return _naming(claim, user, group)


def claims_of(pod: Pod, snapshot: Snapshot) -> list[ResourceClaim]:
    """The claims that list a pod."""
    return [claim for claim in snapshot.claims.values() if relation_of(claim, pod).listed]


def _of_entry(claim: ResourceClaim, consumer: Consumer, pod: Pod | None, *, complete: bool) -> ClaimRelation:
    if not consumer.is_pod:
        return ClaimRelation.GROUP if consumer.resource == PODGROUPS else ClaimRelation.FOREIGN
    if pod is None:
        return ClaimRelation.GONE if complete else ClaimRelation.UNSEEN
    if not _means(claim, consumer, pod):
        return ClaimRelation.REPLACED
    if pod.finished:
        return ClaimRelation.FINISHED
    if pod.metadata.deletion_timestamp:
        return ClaimRelation.ENDING if pod.node_name else ClaimRelation.NEVER_RAN
    if pod.phase in ("Running", "Unknown"):
        return ClaimRelation.RUNNING
    return ClaimRelation.STARTING if pod.node_name else ClaimRelation.BINDING


def _naming(claim: ResourceClaim, pod: Pod, group: str) -> ClaimRelation:
    name = claim.metadata.name
    if pod.metadata.namespace != claim.metadata.namespace or name not in pod.claim_names:
        return ClaimRelation.NONE
    if pod.finished:
        return ClaimRelation.NAMED
    by_name = any(pod_claim.claim_name == name for pod_claim in pod.claims)
    return ClaimRelation.NAMES if by_name or made_for(claim, pod, group) else ClaimRelation.NOT_OWNER


def _means(claim: ResourceClaim, consumer: Consumer, pod: Pod) -> bool:
    """Whether an entry means this pod."""
    meta = pod.metadata
    named = consumer.is_pod and (consumer.name, claim.metadata.namespace) == (meta.name, meta.namespace)
    return named and same_uid(consumer.uid, meta.uid)


def same_uid(uid: str, other: str) -> bool:
    """Whether two objects of one name are the same: they are where one of them was saved without its UID."""
    return uid == other or not uid or not other


def made_for(claim: ResourceClaim, pod: Pod, group: str = "") -> bool:
    """Whether a claim was made from a template for this pod, or for its PodGroup of this name.

    A pod that was saved without its UID may have claims that were saved without their owners.
    """
    owner = claim.metadata.controller()
    if owner is None:
        return not pod.metadata.uid
    if owner.kind == "PodGroup":
        return bool(group) and owner.name == group
    return owner.name == pod.metadata.name and same_uid(owner.uid, pod.metadata.uid)


def as_made_for(pod: Pod, claim: ResourceClaim, name: str) -> ResourceClaim:
    """The claim of a template as the claim controller makes it for a pod, which owns it."""
    owner = OwnerReference("Pod", pod.metadata.name, pod.metadata.uid, controller=True, api_version="v1")
    return replace(claim, metadata=replace(claim.metadata, name=name, owners=(owner,)))


class PodSet:
    """Some pods, as claims name them: in ``status.reservedFor`` and as their owner."""

    def __init__(self) -> None:
        self._uids: dict[Key, set[str]] = {}

    def add(self, namespace: str, name: str, uid: str) -> None:
        """With one more pod; without a UID it is any pod of that name."""
        self._uids.setdefault((namespace, name), set()).add(uid)

    def has(self, namespace: str, name: str, uid: str) -> bool:
        """Whether a pod is among them."""
        return any(same_uid(uid, known) for known in self._uids.get((namespace, name), ()))


class ListedConsumer(Struct, frozen=True):
    """An entry of ``status.reservedFor``: ``pod`` is the pod that it means, None if it means none that was read."""

    entry: Consumer
    pod: Pod | None
    relation: ClaimRelation


class Consumers(Struct, frozen=True):
    """All entries of a claim's ``status.reservedFor``, in their order."""

    claim: ResourceClaim
    entries: tuple[ListedConsumer, ...]

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods that are listed, as far as they were read."""
        return tuple(use.pod for use in self.entries if use.pod is not None)

    def end_with(self, ended: PodSet) -> bool:
        """Whether no entry is left when these pods are gone: then the controller clears the allocation."""
        space = self.claim.metadata.namespace
        return all(
            use.relation.stale or (use.relation.of_pod and ended.has(space, use.entry.name, use.entry.uid))
            for use in self.entries
        )


def consumers_of(claim: ResourceClaim, pods: Mapping[Key, Pod], *, complete: bool = False) -> Consumers:
    """The consumers that are listed in a claim. ``complete``: ``pods`` are all pods of the claim's namespace."""
    consumers: list[ListedConsumer] = []
    for consumer in claim.reserved_for:
        pod = pods.get((claim.metadata.namespace, consumer.name)) if consumer.is_pod else None
        relation = relation_of(claim, consumer, pod, complete=complete)
        consumers.append(ListedConsumer(consumer, pod if relation is not ClaimRelation.REPLACED else None, relation))
    return Consumers(claim, tuple(consumers))


def all_pods_known(snapshot: Snapshot, namespace: str) -> bool:
    """Whether a pod of the namespace that is not in the snapshot does not exist.

    Objects that people saved may be any part of a cluster.
    """
    return snapshot.whole and snapshot.missing("Pod", namespace) is None


def waiting_for(claim: ResourceClaim, snapshot: Snapshot) -> list[Pod]:
    """The pods that use a claim or are going to: listed or not, and not ended."""
    over = (ClaimRelation.NONE, ClaimRelation.NAMED)
    own = (pod for (namespace, _), pod in snapshot.pods.items() if namespace == claim.metadata.namespace)
    return [pod for pod in own if (relation := relation_of(claim, pod)) not in over and not relation.stale]


def placed_unreserved(claim: ResourceClaim, pods: Iterable[Pod]) -> list[Pod]:
    """Pods of an allocated claim that is reserved for no one, which have a node and do not run.

    Schedulers that do not know claims place pods like that; nobody reserves the claim afterwards.
    """
    if claim.allocation is None or claim.reserved_for:
        return []
    return [pod for pod in pods if pod.node_name and pod.phase != "Running" and not pod.finished]
