"""VolumeBinding: whether a pod's claims have volumes that the node can use, or can get such volumes there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubectl_dra.scheduling.framework import MAX, ClusterState, NodeState, Plugin, ScorePlugin, along
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Reason, Rejection
from kubectl_dra.scheduling.volumes import (
    CLAIM,
    ClaimOfAnotherPod,
    VolumeClaim,
    allows,
    best_match,
    claim_not_found,
    class_of_claim,
    class_of_volume,
    fully_bound,
    in_nanos,
    migrated_affinity,
    owned_by,
    persistent_volume,
    served_by_driver,
    storage_class,
    stored,
    type_of_source,
    usable_with,
    volume_claims,
    waits_for_consumer,
)

_VOLUME: Final = "PersistentVolume"
_CLASS: Final = "StorageClass"
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_GIGA: Final = 1_000_000_000


class EphemeralClaimNotMade(Reason, frozen=True):
    """The controller has not yet made the claim of an ephemeral volume."""

    TEXT = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "{claim}"'
    SAID = "PersistentVolumeClaim {claim} of an ephemeral volume is not made yet"
    claim: str


class ClaimLost(Reason, frozen=True):
    """The volume of a claim is gone for good."""

    TEXT = 'persistentvolumeclaim "{claim}" bound to non-existent persistentvolume "{volume}"'
    SAID = "PersistentVolumeClaim {claim} is bound to volume {volume}, which is gone"
    claim: str
    volume: str


class ClaimEnding(Reason, frozen=True):
    """A claim is being deleted."""

    TEXT = 'persistentvolumeclaim "{claim}" is being deleted'
    SAID = "PersistentVolumeClaim {claim} is being deleted"
    claim: str


class UnboundImmediateClaims(Reason, frozen=True):
    """Claims that do not wait for a pod have no volume yet."""

    TEXT = "pod has unbound immediate PersistentVolumeClaims"
    SAID = "nothing is bound to PersistentVolumeClaim {claims}, which waits for no pod"
    claims: tuple[str, ...]


class ClassOfClaimMissing(UnboundImmediateClaims, frozen=True):
    """The class that would provide a volume for a claim does not exist: it then counts as one that waits for no pod."""

    SAID = "StorageClass {storage_class} of PersistentVolumeClaim {claim} does not exist"
    claim: str
    storage_class: str


class NoDefaultClass(UnboundImmediateClaims, frozen=True):
    """A claim names no class, and none takes the claims that name none."""

    SAID = "PersistentVolumeClaim {claim} names no StorageClass, and none is the default"
    claim: str


class VolumeElsewhere(Reason, frozen=True):
    """The volume of a claim cannot be used on the node."""

    TEXT = "node(s) didn't match PersistentVolume's node affinity"
    SAID = "volume {volume} of PersistentVolumeClaim {claim} cannot be used there"
    claim: str
    volume: str


class NoVolumeToBind(Reason, frozen=True):
    """No existing volume serves these claims on the node, and none can be created for it."""

    TEXT = "node(s) didn't find available persistent volumes to bind"
    SAID = "no volume for PersistentVolumeClaim {claims} can be used or made there"
    claims: tuple[str, ...]


class NotEnoughStorage(Reason, frozen=True):
    """The driver reports too little room for a claim's volume that the node could use."""

    TEXT = "node(s) did not have enough free storage"
    SAID = "storage class {storage_class} has too little room there for volume claim {claim}"
    claim: str
    storage_class: str


class VolumeMissing(Reason, frozen=True):
    """A claim is bound to a volume that does not exist."""

    TEXT = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    SAID = "volume {volume} of PersistentVolumeClaim {claim} does not exist"
    claim: str
    volume: str


class StorageClassNotFound(Reason, frozen=True):
    """The storage class that should provision a volume does not exist."""

    TEXT = 'failed to find storage class "{storage_class}"'
    SAID = "StorageClass {storage_class} does not exist"
    storage_class: str


class Provisioned(Struct, frozen=True):
    """A volume that would be created: its claim, and the capacity that the driver reports there."""

    claim: PersistentVolumeClaim
    capacity: CSIStorageCapacity | None


class PodVolumes(Struct):
    """The result of binding the pod's claims on a node: existing volumes and volumes to create, or reasons."""

    matched: list[tuple[PersistentVolumeClaim, PersistentVolume]] = field(default_factory=list)
    provisioned: list[Provisioned] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    error: bool = False


class VolumeBinding(Plugin):
    """The plugin for one pod."""

    name = PluginName.VOLUME_BINDING

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        entries = list(volume_claims(pod, state))
        self.skipped = not entries
        self._bound: list[PersistentVolumeClaim] = []
        self._delayed: list[PersistentVolumeClaim] = []
        reason = next(filter(None, map(self._unusable, entries)), None) or self._sort(entries)
        if reason is not None:
            self.rejection = Rejection(self.name, (reason,))

    def filter(self, node: NodeState) -> Rejection | None:
        placement = self.placement(node)
        return Rejection(self.name, tuple(placement.reasons), error=placement.error) if placement.reasons else None

    def placement(self, node: NodeState) -> PodVolumes:
        """The volumes that the pod's claims would get on the node."""
        out = PodVolumes()
        bound = self._check_bound(node)
        delayed: list[Reason] = []
        if self._delayed:
            delayed = self._bind_delayed(node, out)
        if out.error:
            out.reasons = delayed
            return out
        # The scheduler's order: volumes elsewhere, nothing to bind, no room, volumes that are missing.
        elsewhere = [reason for reason in bound if isinstance(reason, VolumeElsewhere)]
        out.reasons = [*elsewhere, *delayed, *(reason for reason in bound if reason not in elsewhere)]
        return out

    def _unusable(self, volume_claim: VolumeClaim) -> Reason | None:
        claim = volume_claim.claim
        if claim is None:
            if volume_claim.ephemeral:
                missing = EphemeralClaimNotMade(volume_claim.name)
                return self.state.unless_unread(CLAIM, missing, self.pod.metadata.namespace)
            return claim_not_found(self.state, self.pod.metadata.namespace, volume_claim.name)
        if claim.status.phase == "Lost":
            return ClaimLost(volume_claim.name, claim.spec.volume_name)
        if claim.metadata.deletion_timestamp:
            return ClaimEnding(volume_claim.name)
        if volume_claim.ephemeral and not owned_by(claim, self.pod):
            return ClaimOfAnotherPod(self.pod.metadata.namespace, volume_claim.name, self.pod.metadata.name)
        return None

    def _sort(self, entries: Sequence[VolumeClaim]) -> Reason | None:
        """Split claims into bound ones and those that wait for the pod; a reason if others remain."""
        unbound = []
        for volume_claim in entries:
            claim = volume_claim.claim
            assert claim is not None
            if fully_bound(claim):
                self._bound.append(claim)
            elif not claim.spec.volume_name and waits_for_consumer(claim, self.state):
                self._delayed.append(claim)
            else:
                unbound.append(volume_claim.name)
        if not unbound:
            return None
        reason = UnboundImmediateClaims(tuple(unbound))
        assumed = any(volume_claim.assumed for volume_claim in entries if volume_claim.name in unbound)
        without = next((why for each in entries if (why := self._without_class(each, tuple(unbound)))), None)
        if without is not None:
            # A class that is not there makes claims immediate; a volume that somebody made may still be theirs.
            if self.state.unknown(_CLASS):
                return NotRead(_CLASS, without)
            return self.state.unless_unread(_VOLUME, without) if assumed else without
        # The volume of a claim that is not there yet is made before the pod has a node, and nobody knows where.
        return NotRead(_VOLUME, reason) if assumed else reason

    def _without_class(self, entry: VolumeClaim, unbound: tuple[str, ...]) -> Reason | None:
        """Why no volume is made for a claim that has none, and none that is there can be its own."""
        claim = entry.claim
        if claim is None or entry.name not in unbound or claim.spec.volume_name:
            return None
        name = class_of_claim(claim)
        if storage_class(self.state, name) is not None or (not name and claim.spec.storage_class_name is not None):
            return None
        volumes = [each for each in self.state.others(_VOLUME).values() if class_of_volume(each) == name]
        if any(best_match(claim, volumes, node.node.labels, set()) for node in self.state.nodes.values()):
            return None
        return ClassOfClaimMissing(unbound, entry.name, name) if name else NoDefaultClass(unbound, entry.name)

    def _check_bound(self, node: NodeState) -> list[Reason]:
        """The first bound claim whose volume is missing or elsewhere."""
        for claim in self._bound:
            name = claim.spec.volume_name
            volume = persistent_volume(self.state, name)
            if volume is None:
                return [self.state.unless_unread(_VOLUME, VolumeMissing(claim.metadata.name, name))]
            if not self._usable(volume, node):
                return [VolumeElsewhere(claim.metadata.name, name)]
        return []

    def _usable(self, volume: PersistentVolume, node: NodeState) -> bool:
        migrated = type_of_source(volume.spec)
        if migrated is not None:
            csi_node: CSINode | None = self.state.others("CSINode").get(("", node.name))
            if served_by_driver(migrated[0], csi_node):
                return allows(migrated_affinity(migrated[0], volume), node.node.labels)
        return usable_with(volume, node.node.labels)

    def _bind_delayed(self, node: NodeState, out: PodVolumes) -> list[Reason]:
        to_match, to_make = [], []
        for claim in self._delayed:
            selected = claim.metadata.annotations.get(_SELECTED_NODE)
            if selected is None:
                to_match.append(claim)
            elif selected == node.name:
                to_make.append(claim)
            else:
                return [NoVolumeToBind((claim.metadata.name,))]
        matched: set[str] = set()
        for claim in sorted(to_match, key=lambda waiting: stored(waiting.spec.resources.requests)):
            volume = best_match(claim, self._volumes.get(class_of_claim(claim), ()), node.node.labels, matched)
            if volume is None:
                to_make.append(claim)
            else:
                matched.add(volume.metadata.name)
                out.matched.append((claim, volume))
        return self._make(to_make, node, out)

    def _make(self, claims: Sequence[PersistentVolumeClaim], node: NodeState, out: PodVolumes) -> list[Reason]:
        """Reasons why a volume cannot be created for the claims on the node; stops at the first."""
        for claim in claims:
            name = class_of_claim(claim)
            kind = storage_class(self.state, name)
            if kind is None:
                out.error = True
                return [StorageClassNotFound(name)]
            if kind.provisioner in ("", _NO_PROVISIONER) or not _allowed(kind, node):
                return [self.state.unless_unread(_VOLUME, NoVolumeToBind((claim.metadata.name,)))]
            full = NotEnoughStorage(claim.metadata.name, name)
            driver: CSIDriver | None = self.state.others("CSIDriver").get(("", kind.provisioner))
            if driver is None and self.state.unknown("CSIDriver"):
                return [NotRead("CSIDriver", full)]
            if driver is None or not driver.spec.storage_capacity or "storage" not in claim.spec.resources.requests:
                out.provisioned.append(Provisioned(claim, None))
                continue
            room = self._room(claim, kind, node)
            if room is None:
                return [self.state.unless_unread("CSIStorageCapacity", full)]
            out.provisioned.append(Provisioned(claim, room))
        return []

    def _room(self, claim: PersistentVolumeClaim, kind: StorageClass, node: NodeState) -> CSIStorageCapacity | None:
        """The reported capacity that has room for the claim's volume."""
        wanted = _bytes(stored(claim.spec.resources.requests))
        reported: Iterable[CSIStorageCapacity] = self.state.others("CSIStorageCapacity").values()
        for capacity in reported:
            limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
            if (
                capacity.storage_class_name == kind.metadata.name
                and limit is not None
                and _bytes(in_nanos(limit)) >= wanted
                and (capacity.node_topology is not None and capacity.node_topology.matches(node.node.labels))
            ):
                return capacity
        return None

    @cached_property
    def _volumes(self) -> dict[str, list[PersistentVolume]]:
        """Volumes by class, for the classes of waiting claims."""
        out: dict[str, list[PersistentVolume]] = {class_of_claim(claim): [] for claim in self._delayed}
        for volume in self.state.others(_VOLUME).values():
            name = class_of_volume(volume)
            if name in out:
                out[name].append(volume)
        return out


def _allowed(kind: StorageClass, node: NodeState) -> bool:
    """Whether the class creates volumes for the node's topology (``allowedTopologies``: one whole term must hold)."""
    labels = node.node.labels
    terms = kind.allowed_topologies
    return not terms or any(
        term.requirements
        and all(labels.get(requirement.key) in requirement.values for requirement in term.requirements)
        for term in terms
    )


# VolumeBinding: nodes whose storage would have more left score higher (gate StorageCapacityScoring).

_GATE: Final = "StorageCapacityScoring"
_LESS_IS_BETTER: Final = [(0, MAX), (100, 0)]


class VolumeBindingScore(ScorePlugin):
    """The plugin for one pod."""

    name = PluginName.VOLUME_BINDING

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        self._binding = VolumeBinding(pod, state)
        self.skipped = _GATE not in state.gates or self._binding.skipped or self._binding.rejection is not None

    def scores(self) -> Mapping[str, int]:
        written = self.state.profile.args.volume_binding.shape
        shape = [(point.utilization, point.score * 10) for point in written] or _LESS_IS_BETTER
        return {node.name: _score(self._binding.placement(node), shape) for node in self.nodes}


def _score(placement: PodVolumes, shape: Sequence[tuple[int, int]]) -> int:
    """The mean over storage classes of what would be left, in percent."""
    requested: dict[str, int] = {}
    capacity: dict[str, int] = {}
    if placement.matched:
        for claim, volume in placement.matched:
            name = volume.spec.storage_class_name
            requested[name] = requested.get(name, 0) + _bytes(stored(claim.spec.resources.requests))
            capacity[name] = capacity.get(name, 0) + _bytes(stored(volume.spec.capacity))
    else:
        for provisioned in placement.provisioned:
            if provisioned.capacity is not None:
                name = class_of_claim(provisioned.claim)
                requested[name] = requested.get(name, 0) + _bytes(stored(provisioned.claim.spec.resources.requests))
                # One pool serves all claims of a class.
                capacity[name] = _bytes(in_nanos(provisioned.capacity.capacity))
    if not requested:
        return 0
    shares = [along(shape, _used(requested[name], capacity[name])) for name in requested]
    return math.floor(sum(shares) / len(shares) + 0.5)


def _used(requested: int, capacity: int) -> int:
    return MAX if not capacity or requested > capacity else requested * MAX // capacity


def _bytes(nano: int) -> int:
    return -(-nano // _GIGA)
