"""The pods of a role as the cluster would have them: admitted, named, and with claims made from their templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, json, structs

from kubectl_dra.admission.refusal import AdmissionPlugin, Concerned, FieldRefused
from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import ClaimStatus, Pod
from kubectl_dra.api.volumes import ClaimTemplate, ClaimVolumeSource, EphemeralVolumeSource, PodVolume
from kubectl_dra.api.wire import convert
from kubectl_dra.cluster.relation import as_made_for
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.explain.question.new_pod import about_new_pod
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.scene.prepare import Settings
from kubectl_dra.fit.controllers import controller_of
from kubectl_dra.fit.ordinals import Ordinal, identity
from kubectl_dra.fit.workload import Role, WorkloadPods
from kubectl_dra.lint.server import check

VOLUME_CLAIM: Final = "PersistentVolumeClaim"


class NewPod(Struct, frozen=True):
    """One pod before it has a node. ``claims`` are those made for it. Pods of one ``likeness`` are scheduled alike.

    ``refused``: the API server would not create it, for another reason than a quota.
    """

    pod: Pod
    claims: Mapping[Key, ResourceClaim]
    likeness: tuple[object, ...]
    workload: int
    role: int
    ordinal: Ordinal
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
        self.question = asked(_with_volumes(pod, workload.raw, snapshot), self._role.written, snapshot, settings)
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
            admitted = asked(written, self._role.written, snapshot, self._settings).pod or admitted
        pod = _with_volumes(_named(self._workload, self._role, admitted, ordinal), self._workload.raw, snapshot)
        volumes = tuple(entry.persistent_volume_claim for entry in pod.spec.volumes)
        if not any(entry.ephemeral for entry in pod.spec.volumes):
            pod = structs.replace(pod, metadata=structs.replace(pod.metadata, uid=f"fit:{pod.key}"))
        claims, statuses = {}, []
        for entry in self._claims:
            assert entry.claim is not None
            name = f"{pod.metadata.name}-{entry.entry}"
            claims[pod.metadata.namespace, name] = as_made_for(pod, entry.claim, name)
            statuses.append(ClaimStatus(entry.entry, name))
        # No filter reads the phase; who holds devices is told by it.
        status = structs.replace(pod.status, resource_claim_statuses=tuple(statuses), phase="Running")
        likeness: tuple[object, ...] = (self._number, self._place, volumes if any(volumes) else ())
        if self._tells_apart:
            likeness = (*likeness, tuple(identity(self._workload, self._role, ordinal).own.items()))
        made = structs.replace(pod, status=status)
        return NewPod(made, claims, likeness, self._number, self._place, ordinal, self._refused)

    def question_about(self, new: NewPod, snapshot: Snapshot, settings: Settings) -> Question:
        """The question about one of the pods in a cluster that others of them are in already."""
        pod = _named(self._workload, self._role, self._role.pod, new.ordinal)
        spec = structs.replace(pod.spec, scheduling_group=None, workload_ref=None)
        pod = structs.replace(_with_volumes(pod, self._workload.raw, snapshot), spec=spec)
        return asked(pod, self._role.written, snapshot, settings)


def asked(pod: Pod, written: Mapping[str, Any], snapshot: Snapshot, settings: Settings) -> Question:
    """The question about a pod to be created, with what the API server would say of its fields."""
    labels = {name: each.labels for name, each in snapshot.namespaces.items()}
    found = check(written, release=settings.release, features=settings.gates, namespaces=labels) if written else None
    concerned = Concerned("Pod", pod.metadata.name, pod.metadata.namespace)
    invalid = [FieldRefused(concerned, one.field, one.message) for one in (found.violations if found else ())]
    return about_new_pod(pod, snapshot, written or None, invalid)


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
