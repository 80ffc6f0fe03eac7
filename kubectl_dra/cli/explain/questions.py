"""From arguments to questions: the objects, what to read for them, and what to assume."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cli.assumed import assumed
from kubectl_dra.cli.explain import ExplainFlags
from kubectl_dra.cli.explain.target import TypedTarget, find, target_of
from kubectl_dra.cli.live import Progress, read_saved
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.snapshot import MADE_BY, Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.explain.question.new_pod import check_selectors
from kubectl_dra.explain.question.resolve import Question, about_claim, about_pod
from kubectl_dra.explain.question.what_if_flag import Supposition, suppose
from kubectl_dra.explain.scene.prepare import Settings
from kubectl_dra.scheduling.kinds_to_read import kinds_needed, selecting_kinds
from kubectl_dra.scheduling.profile import default_profile

if TYPE_CHECKING:
    from kubectl_dra.api.releases import Release
    from kubectl_dra.cluster.apply import Server
    from kubectl_dra.explain.diagnosis import Diagnosis
    from kubectl_dra.fit.result import WorkloadFit
    from kubectl_dra.scheduling.scheduler_config import SchedulerConfig


class Posed(NamedTuple):
    """A question ready to be answered, with its hypothetical changes and the cluster under them, and the manifest."""

    question: Question
    snapshot: Snapshot
    settings: Settings
    manifest: Snapshot | None = None


class Answers(NamedTuple):
    """The diagnoses, the workloads whose pods are counted, and the exit code."""

    diagnoses: Sequence[Diagnosis]
    workloads: Sequence[WorkloadFit] = ()
    code: int = 0

    @classmethod
    def of(cls, diagnoses: Sequence[Diagnosis]) -> Answers:
        """Diagnoses by themselves."""
        return cls(diagnoses, (), max((diagnosis.exit_code for diagnosis in diagnoses), default=0))


def questions_of(asked: ExplainFlags, connection: ConnectionFlags, changes: Sequence[Supposition]) -> list[Posed]:
    """The questions, with the cluster that they are about.

    Raises:
        DraError: arguments that name no object, unreadable input, or a cluster that does not answer.
    """
    target = target_of(asked.target) if asked.target else None
    given = read(asked, connection, target)
    snapshot = given.snapshot
    if given.manifest is not None:
        snapshot = with_admission(snapshot, given.manifest, asked, connection)
    questions = _questions(asked, target, given._replace(snapshot=snapshot))
    snapshot = completed(snapshot, [one.pod for one in questions if one.pod is not None], asked, connection)
    settings = replace(settings_of(asked, snapshot), supposed=tuple(changes))
    return [Posed(*suppose(question, snapshot, changes), settings, given.manifest) for question in questions]


class Given(NamedTuple):
    """What is asked about: the state of the cluster with the manifest applied, each by itself, and the namespace meant.

    Without a manifest the state is that of the cluster.
    """

    snapshot: Snapshot
    cluster: Snapshot
    manifest: Snapshot | None
    namespace: str


def read(asked: ExplainFlags, connection: ConnectionFlags, target: TypedTarget | None = None) -> Given:
    """The cluster and the manifest."""
    cluster, namespace = read_cluster(asked, connection, target)
    if not asked.manifests:
        return Given(cluster, cluster, None, namespace)
    manifest = read_manifest(asked, namespace)
    return Given(applied(cluster, manifest, asked), cluster, manifest, namespace)


def applied(cluster: Snapshot, manifest: Snapshot, asked: ExplainFlags) -> Snapshot:
    """The cluster after its API server applied a manifest."""
    from kubectl_dra.cluster.overlay import overlay

    return overlay(cluster, manifest, _server(asked, cluster))


def _server(asked: ExplainFlags, snapshot: Snapshot) -> Server:
    from kubectl_dra.cluster.apply import Server

    settings = assumed(snapshot, asked.release, asked.gates)
    return Server(settings.release, settings.gates)


def read_cluster(
    asked: ExplainFlags, connection: ConnectionFlags, target: TypedTarget | None = None
) -> tuple[Snapshot, str]:
    """The snapshot and the namespace meant.

    Raises:
        NoDRA: the cluster does not serve resource.k8s.io.
    """
    if asked.snapshots:
        namespace = asked.namespace or "default"
        with Progress() as progress:
            snapshot = read_saved(asked, namespace, compact=True, progress=progress)
    else:
        from kubectl_dra.cli.live import read_live

        pod = target.name if target is not None and target.kind == "pod" else ""
        snapshot, namespace = read_live(connection, asked.namespace, compact=True, everything=asked.everything, pod=pod)
    snapshot.require_dra()
    return snapshot, namespace


def read_manifest(asked: ExplainFlags, namespace: str) -> Snapshot:
    """The objects of the manifest; what names no namespace is put into this one."""
    from kubectl_dra.cluster.files import read_snapshot

    return read_snapshot(list(asked.manifests), namespace=namespace, workloads=True)


def completed(snapshot: Snapshot, pods: Iterable[Pod], asked: ExplainFlags, connection: ConnectionFlags) -> Snapshot:
    """The live cluster with the further kinds that affect these pods while they wait."""
    if asked.snapshots:
        return snapshot
    waiting = [pod for pod in pods if not pod.node_name]
    lowest = min((pod.priority for pod in snapshot.pods.values() if pod.node_name), default=None)
    settings = settings_of(asked, snapshot)
    kinds: dict[tuple[str, str], None] = {}
    for pod in waiting:
        kinds.update(dict.fromkeys(("", kind) for kind in kinds_needed(pod, lowest)))
        profile = settings.profile_of(pod) or default_profile(settings.release)
        if not asked.everything or any(entry.required for entry in profile.args.spread.constraints):
            kinds.update(dict.fromkeys((pod.metadata.namespace, kind) for kind in selecting_kinds(pod, profile)))
    if not kinds:
        return snapshot
    from kubectl_dra.cli.live import read_kinds
    from kubectl_dra.cluster.overlay import with_kinds

    for space, entries in groupby(sorted(kinds), key=itemgetter(0)):
        names = tuple(kind for _, kind in entries)
        snapshot = with_kinds(
            snapshot, read_kinds(connection, asked.namespace, names, of=space), names, _server(asked, snapshot)
        )
    return snapshot


def with_admission(
    snapshot: Snapshot, manifest: Snapshot, asked: ExplainFlags, connection: ConnectionFlags
) -> Snapshot:
    """The live cluster with what decides whether the API server takes the pods of a manifest, by namespace."""
    if asked.snapshots:
        return snapshot
    from kubectl_dra.admission.admit import kinds_needed as kinds_to_admit
    from kubectl_dra.cli.live import read_kinds
    from kubectl_dra.cluster.overlay import with_kinds

    needed: dict[str, dict[str, None]] = {}
    for (space, _), pod in manifest.pods.items():
        needed.setdefault(space, {}).update(dict.fromkeys(kinds_to_admit(pod)))
    for space, kinds in needed.items():
        snapshot = with_kinds(
            snapshot, read_kinds(connection, asked.namespace, tuple(kinds), of=space), kinds, _server(asked, snapshot)
        )
    return snapshot


def _questions(asked: ExplainFlags, target: TypedTarget | None, given: Given) -> list[Question]:
    snapshot, manifest = given.snapshot, given.manifest
    if target is not None:
        found = find(target, given.namespace, snapshot, anywhere=bool(asked.snapshots) and not asked.namespace)
        if isinstance(found, ResourceClaim):
            return [about_claim(found)]
        check_selectors(found)
        return [_about_pod(found, given, settings_of(asked, snapshot))]
    assert manifest is not None
    if manifest.pods:
        settings = settings_of(asked, snapshot)
        return [_about_pod(pod, given, settings) for pod in manifest.pods.values()]
    if manifest.claims:
        return [about_claim(snapshot.claims[key]) for key in manifest.claims]
    if manifest.templates:
        made = (snapshot.templates[key] for key in manifest.templates)
        return [about_claim(one.claim(one.metadata.name, one.metadata.namespace)) for one in made]
    raise InputError(
        f"{', '.join(asked.manifests)} holds no pod, workload, ResourceClaim or ResourceClaimTemplate: "
        "nothing to explain"
    )


def _about_pod(pod: Pod, given: Given, settings: Settings) -> Question:
    """The question about a pod of the cluster, or of the manifest: one that exists keeps what it has."""
    key = (pod.metadata.namespace, pod.metadata.name)
    if key in given.cluster.pods and MADE_BY not in pod.metadata.annotations:
        return about_pod(given.snapshot.pods[key], given.snapshot, exists=True)
    assert given.manifest is not None
    from kubectl_dra.explain.question.new_pod import about_new_pod

    return about_new_pod(pod, given.snapshot, settings, given.manifest.written.get(("Pod", *key)))


def settings_of(asked: ExplainFlags, snapshot: Snapshot) -> Settings:
    """The release, gates and scheduler to assume, and which parts of the answer are requested."""
    settings = assumed(snapshot, asked.release, asked.gates)
    return replace(
        settings,
        node=asked.node,
        request=asked.request,
        with_devices=asked.with_devices,
        scheduler=scheduler_config(asked, settings.release),
    )


def scheduler_config(asked: ExplainFlags, release: Release) -> SchedulerConfig | None:
    """The scheduler's configuration, if given."""
    if not asked.scheduler_config:
        return None
    from kubectl_dra.scheduling.scheduler_config import read_config

    return read_config(asked.scheduler_config, release)
