"""The pods of a workload: those that it would make, from its templates, and those that it has made."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, Final

from msgspec.structs import replace

from kubectl_dra.api.meta import EMPTY, convert, title
from kubectl_dra.api.neighbour_kinds import KUEUE_QUEUE
from kubectl_dra.api.pods import Owner, Pod, owner_of
from kubectl_dra.api.schema import path_text
from kubectl_dra.api.volumes import ClaimTemplate, EphemeralVolumeSource, PodVolume
from kubectl_dra.cluster.snapshot import Key, Snapshot, StandIn, stand_in
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.manifests.workloads import pod_templates


def pods_of(workload: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A pod for each template of a workload, named after the workload and, if there are several, the template.

    Raises InputError: what it is named, selected or labelled by has another type than an object.
    """
    templates = list(pod_templates(workload))
    if templates:
        _check("", workload, "metadata", ("labels", "annotations"))
        _check("spec.", workload.get("spec"), "selector", ("matchLabels",))
    for template in templates:
        _check("".join(f"{step}." for step in template.path), template.content, "metadata", ("labels", "annotations"))
    meta = workload.get("metadata") or EMPTY
    shared = set.intersection(*(set(template.path) for template in templates)) if templates else set()
    for template in templates:
        parts = [str(meta.get("name") or meta.get("generateName") or "pod").rstrip("-")]
        if len(templates) > 1:
            parts += [str(step).removesuffix("Template").lower() for step in template.path if step not in shared]
        fields = template.content.get("metadata") or EMPTY
        stands_for = StandIn(title(workload), path_text((*template.path, "spec")))
        annotations = {**(fields.get("annotations") or {}), **stands_for.annotations}
        if isinstance(queue := (meta.get("labels") or EMPTY).get(KUEUE_QUEUE), str):
            # Its pods are held back for that queue, and have not its label.
            annotations[KUEUE_QUEUE] = queue
        metadata: dict[str, Any] = {
            "name": "-".join(parts),
            "labels": fields.get("labels") or {},
            "annotations": annotations,
        }
        if meta.get("namespace"):
            metadata["namespace"] = meta["namespace"]
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.content["spec"]}


def free_name(stem: str, taken: Container[str], end: str = "") -> str:
    """A name that nothing has: the stem, or with a word more, before its ``end``."""
    stems = chain((stem, f"{stem}-new"), (f"{stem}-new-{tried}" for tried in count(2)))
    return next(name for begin in stems if (name := begin + end) not in taken)


def called(pod: Pod, name: str) -> Pod:
    """The pod under another name."""
    return replace(pod, metadata=replace(pod.metadata, name=name))


def own_volumes(workload: Mapping[str, Any], pod_name: str) -> Iterator[PodVolume]:
    """The volumes that a StatefulSet gives a pod of this name beside those of its template.

    Each is as an ephemeral one, since its claim is made for the pod, but that the claim has the name that it gets here.
    """
    templates = fields_at(workload, "spec").get("volumeClaimTemplates") if workload.get("kind") == "StatefulSet" else ()
    for written in templates if isinstance(templates, Sequence) else ():
        template = convert(written, ClaimTemplate)
        volume = template.metadata.name
        named = replace(template, metadata=replace(template.metadata, name=f"{volume}-{pod_name}"))
        yield PodVolume(name=volume, ephemeral=EphemeralVolumeSource(named))


def with_volumes(pod: Pod, volumes: Iterable[PodVolume]) -> Pod:
    """The pod with these volumes, which take the place of those that are called like them."""
    every = {volume.name: volume for volume in (*pod.spec.volumes, *volumes)}
    if len(every) == len(pod.spec.volumes) and tuple(every.values()) == pod.spec.volumes:
        return pod
    return replace(pod, spec=replace(pod.spec, volumes=tuple(every.values())))


def with_own_volumes(manifest: Snapshot) -> Snapshot:
    """The manifest, in which the pod that stands for those of a StatefulSet has the volumes of the first of them."""
    made_by = {title(raw): raw for raw in manifest.workloads if raw.get("kind") == "StatefulSet"}
    pods = dict(manifest.pods)
    for key, pod in manifest.pods.items():
        stands_for = stand_in(pod)
        workload = made_by.get(stands_for.workload) if stands_for is not None else None
        if workload is not None:
            pods[key] = with_volumes(pod, own_volumes(workload, f"{pod.metadata.name}-{_first_ordinal(workload)}"))
    return replace(manifest, pods=pods) if made_by else manifest


def _first_ordinal(workload: Mapping[str, Any]) -> int:
    start = fields_at(workload, "spec", "ordinals").get("start")
    return start if isinstance(start, int) else 0


def with_free_names(manifest: Snapshot, cluster: Snapshot) -> Snapshot:
    """The manifest, in which no pod that stands for those of a workload is called as one of the cluster."""
    pods: dict[Key, Pod] = {}
    written = dict(manifest.written)
    for key, pod in manifest.pods.items():
        if key in cluster.pods and stand_in(pod) is not None:
            space, known = key[0], ({*manifest.pods} | {*cluster.pods} | {*pods})
            name = free_name(key[1], {name for of, name in known if of == space})
            pod = called(pod, name)
            written["Pod", space, name] = written.pop(("Pod", *key))
            key = (space, name)
        pods[key] = pod
    return manifest if pods == manifest.pods else replace(manifest, pods=pods, written=written)


def _check(path: str, holder: Any, field: str, below: Sequence[str]) -> None:
    """Raises InputError where the field, or one below it, is there and is not an object."""
    value = holder.get(field) if isinstance(holder, Mapping) else None
    if not isinstance(value, Mapping | None):
        raise InputError(f"{path}{field} must be an object")
    for name in below if value else ():
        if not isinstance((value or EMPTY).get(name), Mapping | None):
            raise InputError(f"{path}{field}.{name} must be an object")


# The workloads that a pod belongs to.

MAKER_LABELS: Final[Mapping[str, str]] = {
    "jobset.sigs.k8s.io/jobset-name": "JobSet",
    "leaderworkerset.sigs.k8s.io/name": "LeaderWorkerSet",
}
"""Labels with which controllers name the workload above the one that controls a pod."""
_SUFFIXES: Final = (
    # A file may lack the labels. The letters are those of hashes (k8s.io/apimachinery, SafeEncodeString).
    ("ReplicaSet", "Deployment", re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{1,10}\Z")),
    ("Job", "CronJob", re.compile(r"-[0-9]+\Z")),
)
"""What a kind is called that another one makes: the name and a hash, or a time."""


def workloads_of(pod: Pod) -> frozenset[Owner]:
    """What made the pod: its controller, and what made that as far as names and labels tell."""
    direct, owner = pod.metadata.controller(), owner_of(pod)
    if direct is None or owner is None:
        return frozenset()
    labelled = (
        Owner(kind, pod.metadata.labels[label]) for label, kind in MAKER_LABELS.items() if label in pod.metadata.labels
    )
    above_machine = (Owner("VirtualMachine", direct.name),) if direct.kind == "VirtualMachineInstance" else ()
    by_name = (
        Owner(above, suffix.sub("", owner.name))
        for below, above, suffix in _SUFFIXES
        if owner.kind == below and suffix.search(owner.name)
    )
    return frozenset((Owner(direct.own_kind, direct.name), owner, *labelled, *above_machine, *by_name))


def made_by(pod: Pod) -> Owner | None:
    """What makes a pod, or would make it: the workload that it stands for, else its controller."""
    template = stand_in(pod)
    if template is None:
        return owner_of(pod)
    return Owner(template.kind, template.name)


def belongs_to(pod: Pod, workload: Owner | None) -> bool:
    """Whether a workload made the pod, by itself or through a ReplicaSet, Job or StatefulSet of its own."""
    return workload in workloads_of(pod)
