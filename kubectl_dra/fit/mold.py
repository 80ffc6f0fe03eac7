"""The pods of a role as the cluster would have them: admitted, named, and with claims made from their templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct, json, structs

from kubectl_dra.admission.refusal import AdmissionPlugin
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import ClaimStatus, Pod
from kubectl_dra.api.volumes import ClaimTemplate, ClaimVolumeSource, EphemeralVolumeSource, PodVolume
from kubectl_dra.api.wire import convert
from kubectl_dra.cluster.applied_pod import are_alike
from kubectl_dra.cluster.relation import as_made_for
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.explain.question.new_pod import about_new_pod
from kubectl_dra.explain.question.resolve import ClaimEntry, Question, about_pod
from kubectl_dra.explain.scene.prepare import Settings
from kubectl_dra.fit.controllers import controller_of
from kubectl_dra.fit.ordinals import Ordinal, identity
from kubectl_dra.fit.workload import Role, WorkloadPods

VOLUME_CLAIM: Final = "PersistentVolumeClaim"


class NewPod(Struct, frozen=True):
    """One pod before it has a node. ``claims`` are those made for it. Pods of one ``likeness`` are scheduled alike.

    ``exists``: it is in the cluster already, and waits.
    ``refused``: the API server would not create it, for another reason than a quota.
    """

    pod: Pod
    claims: Mapping[Key, ResourceClaim]
    likeness: tuple[object, ...]
    workload: int
    role: int
    ordinal: Ordinal
    exists: bool = False
    refused: bool = False

    @property
    def group(self) -> tuple[str, str, str]:
        """The group that it is scheduled with: namespace, kind and name; empty texts where it is alone."""
        reference = self.pod.spec.workload_ref
        if reference is not None:
            replica = reference.pod_group_replica_key
            return self.pod.metadata.namespace, "Workload", f"{reference.name}/{reference.pod_group}/{replica}"
        name = self.pod.pod_group
        return (self.pod.metadata.namespace, "PodGroup", name) if name else ("", "", "")


class Mold:
    """Makes the pods of one role. ``question`` is about the first: what the API server says of it is in it."""

    def __init__(self, workload: WorkloadPods, number: int, role: int, snapshot: Snapshot, settings: Settings) -> None:
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
        assert self.question.pod is not None
        self._admitted = self.question.pod
        # What quotas leave changes with each pod.
        others = (one.plugin is not AdmissionPlugin.RESOURCE_QUOTA for one in self.question.refusals)
        self._refused = any(others)
        self._claims = [entry for entry in self.question.claims if entry.hypothetical and entry.claim is not None]
        own = identity(workload, self._role, self.first).own
        said = json.encode((self._admitted.spec.affinity, self._admitted.spec.topology_spread_constraints)).decode()
        self._tells_apart = any(f'"{label}"' in said for label in own)

    def make(self, ordinal: Ordinal, snapshot: Snapshot) -> NewPod:
        """One pod of the role with its claims. The snapshot tells which volume claims exist already."""
        admitted = self._admitted
        if self._tells_apart and ordinal != self.first:
            written = _named(self._workload, self._role, self._role.pod, ordinal)
            admitted = about_new_pod(written, snapshot, self._settings, self._role.written).pod or admitted
        pod = _with_volumes(_named(self._workload, self._role, admitted, ordinal), self._workload.raw, snapshot)
        volumes = tuple(entry.persistent_volume_claim for entry in pod.spec.volumes)
        if not any(entry.ephemeral for entry in pod.spec.volumes):
            pod = structs.replace(pod, metadata=structs.replace(pod.metadata, uid=f"fit:{pod.key}"))
        pod, claims = _with_claims(pod, self._claims)
        likeness: tuple[object, ...] = (self._number, self._place, volumes if any(volumes) else ())
        if self._tells_apart:
            likeness = (*likeness, tuple(identity(self._workload, self._role, ordinal).own.items()))
        return NewPod(pod, claims, likeness, self._number, self._place, ordinal, refused=self._refused)

    def is_as_written(self, pod: Pod) -> bool:
        """Whether a pod that exists is as one that would be made now."""
        return are_alike(pod.spec, self._admitted.spec)

    def keep(self, pod: Pod, ordinal: Ordinal, snapshot: Snapshot) -> NewPod:
        """A pod of the role that exists and waits, with what it has: claims that were made for it among others."""
        entries = about_pod(pod, snapshot, exists=True).claims
        kept, claims = _with_claims(pod, [entry for entry in entries if entry.hypothetical])
        own = [
            entry.claim for entry in entries if entry.template and entry.claim is not None and not entry.hypothetical
        ]
        likeness: tuple[object, ...] = (self._number, self._place, pod.key)
        if all(claim.allocation is None for claim in own):
            claims |= {(claim.metadata.namespace, claim.metadata.name): claim for claim in own}
            likeness = (self._number, self._place, json.encode((pod.spec, pod.metadata.labels)))
        return NewPod(kept, claims, likeness, self._number, self._place, ordinal, exists=True)

    def question_about(self, new: NewPod, snapshot: Snapshot, settings: Settings) -> Question:
        """The question about one of the pods in a cluster that others of them are in already."""
        if new.exists:
            known = snapshot.pods[new.pod.metadata.namespace, new.pod.metadata.name]
            alone = structs.replace(known.spec, scheduling_group=None, workload_ref=None)
            return about_pod(structs.replace(known, spec=alone), snapshot, exists=True)
        pod = _named(self._workload, self._role, self._role.pod, new.ordinal)
        spec = structs.replace(pod.spec, scheduling_group=None, workload_ref=None)
        pod = structs.replace(_with_volumes(pod, self._workload.raw, snapshot), spec=spec)
        return about_new_pod(pod, snapshot, settings, self._role.written)


def _with_claims(pod: Pod, entries: Iterable[ClaimEntry]) -> tuple[Pod, dict[Key, ResourceClaim]]:
    """The pod as soon as claims are made for these of its entries, and the claims."""
    claims, statuses = {}, list(pod.status.resource_claim_statuses)
    for entry in entries:
        if entry.claim is None:
            continue
        name = f"{pod.metadata.name}-{entry.entry}"
        claims[pod.metadata.namespace, name] = as_made_for(pod, entry.claim, name)
        statuses.append(ClaimStatus(entry.entry, name))
    # No filter reads the phase; who holds devices is told by it.
    status = structs.replace(pod.status, resource_claim_statuses=tuple(statuses), phase="Running")
    return structs.replace(pod, status=status), claims


def _named(workload: WorkloadPods, role: Role, pod: Pod, ordinal: Ordinal) -> Pod:
    name, shared, own = identity(workload, role, ordinal)
    labels = {**pod.metadata.labels, **shared, **own}
    owner = controller_of(workload)
    owners = pod.metadata.owners if owner is None else (owner,)
    return structs.replace(pod, metadata=structs.replace(pod.metadata, name=name, labels=labels, owners=owners))


def _with_volumes(pod: Pod, raw: Mapping[str, Any], snapshot: Snapshot) -> Pod:
    """The pod of a StatefulSet with its own volumes. A claim that does not exist yet is bound as one that is made for
    an ephemeral volume: with the pod."""
    templates = (raw.get("spec") or {}).get("volumeClaimTemplates") if raw.get("kind") == "StatefulSet" else ()
    if not templates:
        return pod
    known = snapshot.others.get(VOLUME_CLAIM, {})
    volumes = {entry.name: entry for entry in pod.spec.volumes}
    for each in templates:
        template = convert(each, ClaimTemplate)
        volume = template.metadata.name
        claim = f"{volume}-{pod.metadata.name}"
        if (pod.metadata.namespace, claim) in known:
            volumes[volume] = PodVolume(name=volume, persistent_volume_claim=ClaimVolumeSource(claim))
        else:
            volumes[volume] = PodVolume(name=volume, ephemeral=EphemeralVolumeSource(template))
    return structs.replace(pod, spec=structs.replace(pod.spec, volumes=tuple(volumes.values())))
