"""From what was typed to questions: the objects meant, what is read for them, and what is assumed."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec.structs import replace

from kubectl_dra.api.pods import Pod
from kubectl_dra.cli.assumed import assumed
from kubectl_dra.cli.explain.flags import ExplainFlags
from kubectl_dra.cli.live import Progress
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.overlay import overlay, with_kinds
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.errors import InputError, UndeterminedError, UsageError
from kubectl_dra.explain.question.pod_selectors import check_selectors
from kubectl_dra.explain.question.resolve import Question, about_claim, about_pod
from kubectl_dra.explain.question.what_if_flag import Supposition, suppose
from kubectl_dra.explain.scene.prepare import Settings
from kubectl_dra.names import nearest
from kubectl_dra.scheduling.needs import kinds_needed, selecting_kinds
from kubectl_dra.scheduling.profile import default_profile
from kubectl_dra.wording import some

if TYPE_CHECKING:
    from kubectl_dra.api.versions import Release
    from kubectl_dra.scheduling.scheduler_config import SchedulerConfig


T = TypeVar("T")
KINDS = {
    "pod": "pod",
    "pods": "pod",
    "po": "pod",
    "claim": "claim",
    "claims": "claim",
    "resourceclaim": "claim",
    "resourceclaims": "claim",
    "resourceclaims.resource.k8s.io": "claim",
}
WORKLOADS = frozenset(
    f"{name}{end}"
    for name in ("deployment", "statefulset", "daemonset", "replicaset", "job", "cronjob")
    for end in ("", "s", "s.apps", "s.batch")
) | {"deploy", "sts", "ds", "rs", "cj"}
TEMPLATES = frozenset(("resourceclaimtemplate", "resourceclaimtemplates", "template", "templates"))


class NotThere(InputError):
    """The pod or claim asked about does not exist; ``subject`` names it."""

    def __init__(self, subject: str, message: str) -> None:
        super().__init__(message)
        self.subject = subject


class Posed(NamedTuple):
    """A question as it is to be answered: with what is supposed, in the cluster as it would then be."""

    question: Question
    snapshot: Snapshot
    settings: Settings


def questions_of(asked: ExplainFlags, connection: ConnectionFlags, changes: Sequence[Supposition]) -> list[Posed]:
    """The questions, with the cluster that they are about.

    Raises:
        DraError: words that name no object, input that cannot be read, a cluster that does not answer.
    """
    kind, name = _target(asked)
    snapshot, namespace, manifest = read(asked, connection)
    if manifest is not None and not kind:
        snapshot = _with_admission(snapshot, manifest, asked, connection)
    questions = _questions(asked, kind, name, namespace, snapshot, manifest)
    snapshot = completed(snapshot, [one.pod for one in questions if one.pod is not None], asked, connection)
    settings = replace(settings_of(asked, snapshot), supposed=tuple(changes))
    return [Posed(*suppose(question, snapshot, changes), settings) for question in questions]


def _target(asked: ExplainFlags) -> tuple[str, str]:
    if not asked.target:
        if not asked.manifests:
            raise UsageError(
                "say what to explain: pod/NAME, claim/NAME, or -f MANIFEST (see kubectl dra explain --help)"
            )
        return "", ""
    written = " ".join(asked.target)
    kind, slash, name = "/".join(asked.target).partition("/")
    if kind.lower() not in KINDS and _like_file(written):
        command = f"kubectl dra explain -f {shlex.quote(written)}"
        raise UsageError(f'"{written}" looks like a file, not a pod or claim; write: {command}')
    if not slash:
        word = shlex.quote(kind)
        raise UsageError(f'"{written}" is not of the form pod/NAME or claim/NAME; write pod/{word} or claim/{word}')
    if not name or "/" in name:
        hint = "; explain takes one at a time" if len(asked.target) > 1 else ""
        raise UsageError(f'"{written}" is not of the form pod/NAME or claim/NAME{hint}')
    known = KINDS.get(kind.lower())
    if known is None:
        near = nearest(kind, KINDS)
        hint = f"; did you mean {near[0]}/{name}?" if near else ""
        if kind.lower() in WORKLOADS:
            hint = "; name one of its pods (kubectl get pods), or explain its manifest with -f"
        elif kind.lower() in TEMPLATES:
            hint = "; name a claim that was made from it, or explain its manifest with -f"
        raise UsageError(f'explain knows pods and claims, not "{kind}"{hint}')
    return known, name


def _like_file(word: str) -> bool:
    """Whether a target is meant as a path: it ends like a manifest, or such a file is there."""
    return word.lower().endswith((".yaml", ".yml", ".json")) or Path(word).is_file()


def read(asked: ExplainFlags, connection: ConnectionFlags) -> tuple[Snapshot, str, Snapshot | None]:
    """The snapshot, the namespace meant, and the objects of the manifest alone."""
    from kubectl_dra.cluster.files import read_snapshot

    if asked.snapshots:
        namespace = asked.namespace or "default"
        with Progress() as progress:
            snapshot = read_snapshot(list(asked.snapshots), namespace=namespace, compact=True, progress=progress)
    else:
        from kubectl_dra.cli.live import read_live

        kind, name = _target(asked) if asked.target else ("", "")
        pod = name if kind == "pod" else ""
        everything = asked.everything or asked.all_namespaces
        snapshot, namespace = read_live(connection, asked.namespace, compact=True, everything=everything, pod=pod)
    if not asked.manifests:
        return snapshot, namespace, None
    manifest = read_snapshot(list(asked.manifests), namespace=namespace, workloads=True)
    return overlay(snapshot, manifest), namespace, manifest


def completed(snapshot: Snapshot, pods: Iterable[Pod], asked: ExplainFlags, connection: ConnectionFlags) -> Snapshot:
    """The live cluster with the further kinds that decide about these pods as long as they wait."""
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

    for space, entries in groupby(sorted(kinds), key=itemgetter(0)):
        names = tuple(kind for _, kind in entries)
        snapshot = with_kinds(snapshot, read_kinds(connection, asked.namespace, names, of=space), names)
    return snapshot


def _with_admission(
    snapshot: Snapshot, manifest: Snapshot, asked: ExplainFlags, connection: ConnectionFlags
) -> Snapshot:
    """The live cluster with what decides whether the API server takes the pods of a manifest, by namespace."""
    if asked.snapshots:
        return snapshot
    from kubectl_dra.admission.needs import kinds_needed as kinds_to_admit
    from kubectl_dra.cli.live import read_kinds

    needed: dict[str, dict[str, None]] = {}
    for (space, _), pod in manifest.pods.items():
        needed.setdefault(space, {}).update(dict.fromkeys(kinds_to_admit(pod)))
    for space, kinds in needed.items():
        snapshot = with_kinds(snapshot, read_kinds(connection, asked.namespace, tuple(kinds), of=space), kinds)
    return snapshot


def _questions(
    asked: ExplainFlags, kind: str, name: str, namespace: str, snapshot: Snapshot, manifest: Snapshot | None
) -> list[Question]:
    if kind:
        if kind == "pod":
            pod = _find(snapshot.pods, namespace, name, "Pod", snapshot)
            check_selectors(pod)
            exists = manifest is None or (namespace, name) not in manifest.pods
            return [about_pod(pod, snapshot, exists=exists)]
        claim = _find(snapshot.claims, namespace, name, "ResourceClaim", snapshot)
        return [about_claim(claim)]
    assert manifest is not None
    if manifest.pods:
        return _about_new_pods(manifest, snapshot, settings_of(asked, snapshot))
    if manifest.claims:
        return [about_claim(claim) for claim in manifest.claims.values()]
    if manifest.templates:
        return [
            about_claim(template.claim(template.metadata.name, space))
            for (space, _), template in manifest.templates.items()
        ]
    raise InputError(
        f"{', '.join(asked.manifests)} holds no pod, workload, ResourceClaim or ResourceClaimTemplate: "
        "nothing to explain"
    )


def _about_new_pods(manifest: Snapshot, snapshot: Snapshot, settings: Settings) -> list[Question]:
    """The questions about pods to be created, with what the API server would say of their fields."""
    from kubectl_dra.admission.refusal import Concerned, FieldRefused
    from kubectl_dra.explain.question.new_pod import about_new_pod
    from kubectl_dra.lint.server import check

    found = []
    for key, pod in manifest.pods.items():
        written = manifest.written.get(key)
        labels = {name: each.labels for name, each in snapshot.namespaces.items()}
        verdict = written and check(written, release=settings.release, features=settings.gates, namespaces=labels)
        concerned = Concerned("Pod", pod.metadata.name, pod.metadata.namespace)
        invalid = [FieldRefused(concerned, one.field, one.message) for one in (verdict.violations if verdict else ())]
        found.append(about_new_pod(pod, snapshot, written, invalid))
    return found


def _find(table: Mapping[tuple[str, str], T], namespace: str, name: str, kind: str, snapshot: Snapshot) -> T:
    found = table.get((namespace, name))
    if found is not None:
        return found
    gap = snapshot.missing(kind, namespace)
    if gap is not None and gap.reason != ABSENT:
        raise UndeterminedError(f"{kind} {namespace}/{name} could not be read: {gap}")
    elsewhere = sorted(space for space, other in table if other == name)
    other_kind = _of_other_kind(kind, namespace, name, snapshot)
    near = nearest(name, [other for space, other in table if space == namespace])
    hint = ""
    if other_kind:
        hint = f"; {other_kind}"
    elif elsewhere:
        hint = f"; there is one in namespace {elsewhere[0]} (use -n {elsewhere[0]})"
    elif near:
        hint = f"; nearest: {', '.join(near)}"
    elif not table:
        hint = f"; there are no objects of kind {kind} in {', '.join(snapshot.sources) or 'what was read'}"
    raise NotThere(f"{kind} {namespace}/{name}", f"{kind} {name} does not exist in namespace {namespace}{hint}")


def _of_other_kind(kind: str, namespace: str, name: str, snapshot: Snapshot) -> str:
    """What else has the name that was asked for, and how to ask about it."""
    key = (namespace, name)
    if kind == "Pod" and key in snapshot.claims:
        return f"there is a ResourceClaim of that name: write claim/{name}"
    if kind == "ResourceClaim" and key in snapshot.pods:
        return f"there is a Pod of that name: write pod/{name}"
    if kind != "ResourceClaim" or key not in snapshot.templates:
        return ""
    users = [
        f"pod/{pod.metadata.name}"
        for (space, _), pod in snapshot.pods.items()
        if space == namespace and any(entry.template_name == name for entry in pod.claims)
    ]
    ask = f"ask about a pod that uses it: {some(users)}" if users else "no pod uses it"
    return f"it is a ResourceClaimTemplate; {ask}"


def settings_of(asked: ExplainFlags, snapshot: Snapshot) -> Settings:
    """The release, gates and scheduler to assume, and what of the answer is asked for."""
    settings = assumed(snapshot, asked.release, asked.gates)
    return replace(
        settings,
        node=asked.node,
        request=asked.request,
        with_devices=asked.with_devices,
        scheduler=scheduler_config(asked, settings.release),
    )


def scheduler_config(asked: ExplainFlags, release: Release) -> SchedulerConfig | None:
    """What the scheduler runs with, where that is told."""
    if not asked.scheduler_config:
        return None
    from kubectl_dra.scheduling.scheduler_config import read_config

    return read_config(asked.scheduler_config, release)
