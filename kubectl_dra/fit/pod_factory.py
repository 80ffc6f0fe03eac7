"""The pods of a role as the cluster would have them: admitted, named, and with claims made from their templates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final

from msgspec import Struct, json, structs

from kubectl_dra.admission.plugins import AdmissionPlugin
from kubectl_dra.admission.quantities import in_scope, quota_refusals, used_by
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import ONLY_PLACED, ClaimStatus, Pod
from kubectl_dra.api.policy import ResourceQuota
from kubectl_dra.api.volumes import ClaimVolumeSource, PodVolume
from kubectl_dra.cluster.apply import are_alike, has_all_of
from kubectl_dra.cluster.claim_relation import as_made_for
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.cluster.workload_pods import own_volumes, with_volumes
from kubectl_dra.explain.causes.claim_creation import (
    charged,
    only_written,
    short_of,
    to_create,
    wanted_by,
    without_admin_label,
)
from kubectl_dra.explain.causes.registry import of_question
from kubectl_dra.explain.question.new_pod import about_new_pod, refused_changes
from kubectl_dra.explain.question.resolve import ClaimEntry, Question, about_pod
from kubectl_dra.explain.question.what_if_flag import changes_for, reworded
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.pod_names import Ordinal, identity
from kubectl_dra.fit.workload import Role, WorkloadPods, controller_of, for_node

VOLUME_CLAIM: Final = "PersistentVolumeClaim"


class NewPod(Struct, frozen=True):
    """One pod before it has a node. ``claims`` are those made for it. Pods of one ``likeness`` are scheduled alike.

    ``exists``: it is in the cluster already, and waits.
    ``refused``: the API server would not create it, for another reason than a quota, or it gets no devices anywhere.
    ``held``: it does not come before the scheduler, whatever the devices.
    """

    pod: Pod
    claims: Mapping[Key, ResourceClaim]
    likeness: tuple[object, ...]
    workload: int
    role: int
    ordinal: Ordinal
    exists: bool = False
    refused: bool = False
    held: bool = False

    @property
    def group(self) -> tuple[str, str, str]:
        """The group that it is scheduled with: namespace, kind and name; empty texts where it is alone."""
        reference = self.pod.spec.workload_ref
        if reference is not None:
            replica = reference.pod_group_replica_key
            return self.pod.metadata.namespace, "Workload", f"{reference.name}/{reference.pod_group}/{replica}"
        name = self.pod.pod_group
        return (self.pod.metadata.namespace, "PodGroup", name) if name else ("", "", "")


class PodFactory:
    """Makes the pods of one role. ``question`` is about the first: what the API server says of it is in it."""

    def __init__(
        self,
        workload: WorkloadPods,
        number: int,
        role: int,
        snapshot: Snapshot,
        settings: Settings,
        names: dict[Key, tuple[str, str]],
    ) -> None:
        """``names`` are those of claims, each with the pod and the entry for which it is made, of all factories."""
        self._names = names
        self._workload = workload
        self._number = number
        self._place = role
        self._settings = settings
        self._role = workload.roles[role]
        self.first = Ordinal(0, 0)
        pod = _named(workload, self._role, self._role.pod, self.first)
        self.question = about_new_pod(
            _with_volumes(pod, workload.raw, snapshot), snapshot, settings, self._role.written
        )
        self.question = _supposed(self.question, settings)
        assert self.question.pod is not None
        self._admitted = self.question.pod
        # What quotas leave changes with each pod.
        others = (refusal.plugin is not AdmissionPlugin.RESOURCE_QUOTA for refusal in self.question.refusals)
        # The manifest means the pod of this name where it exists.
        there = self._role.exact and (pod.metadata.namespace, pod.metadata.name) in snapshot.pods
        self.unchangeable = tuple(refused_changes(structs.replace(self.question, exists=there), snapshot))
        # Of the rest, such as a quota or a template that is missing, each pod tells by itself.
        self._held = any(finding.kind.queued for finding in of_question(self.question, snapshot))
        # Nobody allocates for a pod that names its node itself.
        bound = bool(self._admitted.node_name and self.question.claims)
        self._refused = bound or any(others) or bool(self.unchangeable)
        self._claims = [
            claim_entry
            for claim_entry in self.question.claims
            if claim_entry.hypothetical and claim_entry.claim is not None
        ]
        own = identity(workload, self._role, self.first).own
        said = json.encode((self._admitted.spec.affinity, self._admitted.spec.topology_spread_constraints)).decode()
        self._tells_apart = bool(workload.nodes) or any(f'"{label}"' in said for label in own)

    def make(self, ordinal: Ordinal, snapshot: Snapshot) -> NewPod:
        """One pod of the role with its claims. The snapshot tells which volume claims exist already."""
        admitted = self._admitted
        if self._tells_apart and ordinal != self.first:
            written = _named(self._workload, self._role, self._role.pod, ordinal)
            admitted = about_new_pod(written, snapshot, self._settings, self._role.written).pod or admitted
        pod = _with_volumes(_named(self._workload, self._role, admitted, ordinal), self._workload.raw, snapshot)
        volumes = tuple(volume.persistent_volume_claim for volume in pod.spec.volumes)
        if not any(volume.ephemeral for volume in pod.spec.volumes):
            pod = structs.replace(pod, metadata=structs.replace(pod.metadata, uid=f"fit:{pod.key}"))
        notes = {**pod.metadata.annotations, ONLY_PLACED: ""}
        pod = structs.replace(pod, metadata=structs.replace(pod.metadata, annotations=notes))
        pod, claims = _with_claims(pod, self._claims, snapshot, self._names)
        likeness: tuple[object, ...] = (self._number, self._place, volumes if any(volumes) else ())
        if self._tells_apart:
            own = (
                *identity(self._workload, self._role, ordinal).own.items(),
                *self._workload.nodes[ordinal.replica :][:1],
            )
            likeness = (*likeness, own)
        refused, held = self._refused, self._held
        return NewPod(pod, claims, likeness, self._number, self._place, ordinal, refused=refused, held=held)

    def is_as_written(self, pod: Pod) -> bool:
        """Whether a pod that exists is as one that would be made now."""
        return self.made(pod) if pod.node_name else are_alike(pod.spec, self._admitted.spec)

    def made(self, pod: Pod) -> bool:
        """Whether a pod that exists may have been made from this template: others may have added to it."""
        if self._role.written and has_all_of(pod, self._role.written, self._admitted.spec.priority):
            return True
        return are_alike(pod.spec, self._admitted.spec)

    def keep(self, pod: Pod, ordinal: Ordinal, snapshot: Snapshot) -> NewPod:
        """A pod of the role that exists and waits, with what it has: claims that were made for it among others."""
        question = about_pod(pod, snapshot, exists=True)
        held = any(finding.under_way is None for finding in of_question(question, snapshot))
        entries = question.claims
        missing = [claim_entry for claim_entry in entries if claim_entry.hypothetical]
        kept, claims = _with_claims(pod, missing, snapshot, self._names)
        own = [
            claim_entry.claim
            for claim_entry in entries
            if claim_entry.template and claim_entry.claim is not None and not claim_entry.hypothetical
        ]
        likeness: tuple[object, ...] = (self._number, self._place, pod.key)
        if all(claim.allocation is None for claim in own):
            claims |= {(claim.metadata.namespace, claim.metadata.name): claim for claim in own}
            likeness = (self._number, self._place, json.encode((pod.spec, pod.metadata.labels)))
        return NewPod(kept, claims, likeness, self._number, self._place, ordinal, exists=True, held=held)

    def question_about(self, new: NewPod, snapshot: Snapshot, settings: Settings) -> Question:
        """The question about one of the pods in a cluster that others of them are in already."""
        if new.exists:
            known = snapshot.pods[new.pod.metadata.namespace, new.pod.metadata.name]
            alone = structs.replace(known.spec, scheduling_group=None, workload_ref=None)
            return about_pod(structs.replace(known, spec=alone), snapshot, exists=True)
        pod = _named(self._workload, self._role, self._role.pod, new.ordinal)
        pod = _with_volumes(pod, self._workload.raw, snapshot)
        pod = structs.replace(pod, spec=structs.replace(pod.spec, scheduling_group=None, workload_ref=None))
        return _supposed(about_new_pod(pod, snapshot, settings, self._role.written), settings)


def _supposed(question: Question, settings: Settings) -> Question:
    """The question with what is supposed of its requests; what is not of them is of other pods of the manifest."""
    for change in changes_for(question, settings.supposed):
        if change.of_requests:
            question = reworded(question, change)
    return question


def _with_claims(
    pod: Pod, entries: Iterable[ClaimEntry], snapshot: Snapshot, names: dict[Key, tuple[str, str]]
) -> tuple[Pod, dict[Key, ResourceClaim]]:
    """The pod as soon as claims are made for these of its entries, and the claims, called as none that exists, or is
    made for another pod or entry: ``names`` says for which.
    """
    claims, statuses = {}, list(pod.status.resource_claim_statuses)
    for claim_entry in entries:
        if claim_entry.claim is None:
            continue
        name = f"{pod.metadata.name}-{claim_entry.entry}"
        space, own = pod.metadata.namespace, (pod.metadata.name, claim_entry.entry)
        while (space, name) in snapshot.claims or names.setdefault((space, name), own) != own:
            name += "-new"
        claims[pod.metadata.namespace, name] = as_made_for(pod, claim_entry.claim, name)
        statuses.append(ClaimStatus(claim_entry.entry, name))
    # No filter reads the phase; who holds devices is told by it.
    status = structs.replace(pod.status, resource_claim_statuses=tuple(statuses), phase="Running")
    return structs.replace(pod, status=status), claims


def _named(workload: WorkloadPods, role: Role, pod: Pod, ordinal: Ordinal) -> Pod:
    name, shared, own = identity(workload, role, ordinal)
    labels = {**pod.metadata.labels, **shared, **own}
    owner = controller_of(workload)
    owners = pod.metadata.owners if owner is None else (owner,)
    if ordinal.replica < len(workload.nodes):
        pod = for_node(pod, workload.nodes[ordinal.replica])
    return structs.replace(pod, metadata=structs.replace(pod.metadata, name=name, labels=labels, owners=owners))


def _with_volumes(pod: Pod, raw: Mapping[str, Any], snapshot: Snapshot) -> Pod:
    """The pod of a StatefulSet with its own volumes. A claim that does not exist yet is bound as one that is made for
    an ephemeral volume: with the pod."""
    known = snapshot.others.get(VOLUME_CLAIM, {})
    volumes = []
    for volume in own_volumes(raw, pod.metadata.name):
        assert volume.ephemeral is not None
        claim = volume.ephemeral.volume_claim_template.metadata.name
        if (pod.metadata.namespace, claim) in known:
            volume = PodVolume(name=volume.name, persistent_volume_claim=ClaimVolumeSource(claim))
        volumes.append(volume)
    return with_volumes(pod, volumes)


# Whether the API server would create one more pod and its claims, with what quotas leave after the pods before.


class Denied(Enum):
    """What is not created."""

    POD = auto()
    CLAIM = auto()


class Creation(Struct, frozen=True):
    """What is denied, if anything, and the quotas after the pod was created; None where none changed."""

    denied: Denied | None = None
    quotas: Sequence[ResourceQuota] | None = None


def denied(new: NewPod, snapshot: Snapshot) -> Creation:
    """Whether the pod and its claims are created, and what becomes of the quotas of their namespace then."""
    space = new.pod.metadata.namespace
    if new.refused:
        return Creation(Denied.POD)
    names = [pod_claim.claim_name for pod_claim in new.pod.claims]
    named = [claim for name in names if (claim := snapshot.claims.get((space, name))) is not None]
    written = [claim for claim in named if only_written(claim)]
    if any(without_admin_label(claim, snapshot) for claim in (*new.claims.values(), *written)):
        return Creation(Denied.CLAIM)
    own = [quota for quota in snapshot.quotas if quota.metadata.namespace == space]
    if not own:
        return Creation()
    if any(True for _ in quota_refusals(new.pod, own)):
        return Creation(Denied.POD)
    # What the manifest brings was created before the pods, if there was room.
    lacking = [claim for claim in named if to_create(claim, snapshot)]
    wanted = wanted_by([*new.claims.values(), *lacking], snapshot)
    if any(short_of(quota, wanted) for quota in own):
        return Creation(Denied.CLAIM)
    usage = used_by(new.pod)
    after = []
    for quota in snapshot.quotas:
        if quota.metadata.namespace == space:
            more = [wanted, usage] if in_scope(new.pod, quota) else [wanted]
            quota = charged(quota, more)
        after.append(quota)
    return Creation(quotas=after)


def without(pods: Collection[Pod], snapshot: Snapshot) -> Snapshot:
    """The cluster after pods ended with the claims that were made for them, of which quotas count none any more."""
    return ended(pods, Cluster(snapshot)).snapshot


def ended(pods: Collection[Pod], cluster: Cluster) -> Cluster:
    """The same of a cluster that knows what changed."""
    there = cluster.ending(pods)
    quotas = []
    for quota in cluster.snapshot.quotas:
        space = quota.metadata.namespace
        own = [pod for pod in pods if pod.metadata.namespace == space]
        claims = [claim for key, claim in cluster.snapshot.claims.items() if key not in there.snapshot.claims]
        gone = [claim for claim in claims if claim.metadata.namespace == space]
        less = [used_by(pod) for pod in own if in_scope(pod, quota)]
        less.append(wanted_by(gone, cluster.snapshot))
        quotas.append(charged(quota, less, -1) if own else quota)
    return there.editing(*quotas) if pods and quotas else there
