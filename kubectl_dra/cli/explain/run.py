"""What ``explain`` does: read, find the objects asked about, diagnose, report."""

from __future__ import annotations

import gc
import shlex
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec.structs import replace

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.versions import UNTOLD
from kubectl_dra.cli.assumed import assumed
from kubectl_dra.cli.explain.flags import ExplainFlags
from kubectl_dra.cli.live import Progress
from kubectl_dra.cli.options import ConnectionFlags, cluster_flags
from kubectl_dra.cluster.overlay import overlay, with_kinds
from kubectl_dra.cluster.snapshot import ABSENT, Snapshot
from kubectl_dra.errors import ClusterError, InputError, UndeterminedError, UsageError
from kubectl_dra.explain.diagnosis import Diagnosis, Verdict
from kubectl_dra.explain.overview import pending
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.pod_selectors import check_selectors
from kubectl_dra.explain.question.resolve import Question, about_claim, about_pod
from kubectl_dra.explain.question.what_if_flag import Supposition, parse, suppose
from kubectl_dra.explain.scene.prepare import Settings
from kubectl_dra.names import nearest
from kubectl_dra.report.explain_words import Invocation
from kubectl_dra.scheduling.needs import kinds_needed, selecting_kinds
from kubectl_dra.scheduling.profile import default_profile
from kubectl_dra.wording import some

if TYPE_CHECKING:
    from kubectl_dra.api.versions import Release
    from kubectl_dra.explain.devices.inventory import Inventory
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
WATCH_SECONDS = 3.0
PASSING = frozenset((408, 429, 500, 502, 503, 504))


class NotThere(InputError):
    """The pod or claim asked about does not exist; ``subject`` names it."""

    def __init__(self, subject: str, message: str) -> None:
        super().__init__(message)
        self.subject = subject


def run(asked: ExplainFlags, connection: ConnectionFlags) -> int:
    """Explains and prints; returns the exit code.

    Raises:
        DraError: wrong usage, input that cannot be read, a cluster that does not answer.
    """
    output, color = asked.output.value, asked.color.value
    changes = [parse(text) for text in asked.what_if]
    # What is wrong with it is said before anything is read.
    _scheduler(asked, UNTOLD)
    if asked.everything:
        return _run_all(asked, connection, output, color)
    if output == "html":
        return _run_html(asked, connection, changes)
    if asked.watch:
        return _run_watch(asked, connection, output, color, changes)
    diagnoses = _answer(asked, connection, changes)
    _print(diagnoses, output, color, _invocation(asked, connection))
    return _code(diagnoses)


def _answer(asked: ExplainFlags, connection: ConnectionFlags, changes: Sequence[Supposition]) -> list[Diagnosis]:
    return [_diagnosed(one, asked) for one in _posed(asked, connection, changes)]


class Posed(NamedTuple):
    """A question as it is to be answered: with what is supposed, in the cluster as it would then be."""

    question: Question
    snapshot: Snapshot
    settings: Settings


def _posed(asked: ExplainFlags, connection: ConnectionFlags, changes: Sequence[Supposition]) -> list[Posed]:
    kind, name = _target(asked)
    snapshot, namespace, manifest = _read(asked, connection)
    if manifest is not None and not kind:
        snapshot = _with_admission(snapshot, manifest, asked, connection)
    questions = _questions(asked, kind, name, namespace, snapshot, manifest)
    snapshot = _completed(snapshot, [one.pod for one in questions if one.pod is not None], asked, connection)
    settings = replace(_settings(asked, snapshot), supposed=tuple(changes))
    return [Posed(*suppose(question, snapshot, changes), settings) for question in questions]


def _diagnosed(one: Posed, asked: ExplainFlags) -> Diagnosis:
    diagnosis = diagnose(one.question, one.snapshot, one.settings)
    if asked.trace:
        from kubectl_dra.explain.selector_trace import trace

        diagnosis = replace(diagnosis, traces=trace(one.question, one.snapshot, one.settings, asked.trace))
    if asked.verify:
        from kubectl_dra.explain.second_opinion import verify

        diagnosis = replace(diagnosis, second_opinion=verify(one.question, one.snapshot, one.settings))
    return diagnosis


def _run_html(asked: ExplainFlags, connection: ConnectionFlags, changes: Sequence[Supposition]) -> int:
    """Writes one page: each answer with the devices of the cluster that it was given for."""
    if asked.watch:
        raise UsageError("--watch answers again and again; -o html is one page")
    from kubectl_dra.cli.explain.drawn_devices import fleet
    from kubectl_dra.report.explain_html import MAX_FLEETS, to_html

    answers: list[tuple[Diagnosis, Inventory | None]] = []
    known: dict[int, Inventory | None] = {}
    for number, one in enumerate(_posed(asked, connection, changes)):
        pictured = number < MAX_FLEETS
        posed = one._replace(settings=replace(one.settings, with_devices=pictured))
        diagnosis = _diagnosed(posed, asked)
        if pictured and id(one.snapshot) not in known:
            known[id(one.snapshot)] = fleet(one.question, one.snapshot, one.settings)
        answers.append((diagnosis, known.get(id(one.snapshot)) if pictured else None))
    sys.stdout.write(to_html(answers, _invocation(asked, connection)))
    return _code([diagnosis for diagnosis, _ in answers])


def _code(diagnoses: Sequence[Diagnosis]) -> int:
    return max((diagnosis.verdict.exit_code for diagnosis in diagnoses), default=0)


def _run_watch(
    asked: ExplainFlags, connection: ConnectionFlags, output: str, color: str, changes: Sequence[Supposition]
) -> int:
    """Prints whenever the answer changes, until everything asked about is allocated, or has ended without.

    A server that does not answer for a while is asked again.
    """
    from kubectl_dra.report.paint import tell

    # This may take hours, and each answer leaves garbage.
    gc.enable()
    shown: list[Diagnosis] = []
    waiting, silent = False, ""
    while True:
        try:
            diagnoses = _answer(asked, connection, changes)
        except ClusterError as error:
            if not shown or not _passes(error):
                raise
            if str(error) != silent:
                silent = str(error)
                tell(f"note: {silent}; asking again")
            time.sleep(WATCH_SECONDS)
            continue
        except NotThere as error:
            if shown:
                raise InputError(f"{error.subject} was deleted while it was watched") from None
            raise
        silent = ""
        if diagnoses != shown:
            if shown and output == "text":
                sys.stdout.write("\n")
            _print(diagnoses, output, color, _invocation(asked, connection))
            sys.stdout.flush()
            shown = diagnoses
        if all(diagnosis.verdict is Verdict.ALLOCATED or diagnosis.ended for diagnosis in diagnoses):
            return _code(diagnoses)
        if not waiting:
            waiting = True
            tell(f"note: waiting for {'the snapshot' if asked.snapshots else 'the cluster'} to change; Ctrl-C ends it")
        time.sleep(WATCH_SECONDS)


def _passes(error: ClusterError) -> bool:
    """Whether a cluster that answered before may answer again."""
    from kubectl_dra.cluster.client import UNAUTHORIZED, Answered

    if isinstance(error, Answered):
        return error.status in PASSING
    return error.status != UNAUTHORIZED


def _run_all(asked: ExplainFlags, connection: ConnectionFlags, output: str, color: str) -> int:
    if asked.target or asked.manifests:
        raise UsageError("--all and -A explain every pending claim; leave the pod, claim or manifest out")
    more = ((asked.request, "--request"), (asked.verify, "--verify"))
    for given, flag in ((asked.what_if, "--what-if"), (asked.watch, "--watch"), (asked.trace, "--trace"), *more):
        if given:
            raise UsageError(f"{flag} needs one pod or claim; it does not go with --all or -A")
    if asked.with_devices and output == "text":
        raise UsageError("--devices with --all or -A needs -o json or yaml; as text, name one pod or claim")
    snapshot, namespace, _ = _read(asked, connection)
    with Progress() as progress:
        waiting = [pod for pod in snapshot.pods.values() if not pod.finished]
        snapshot = _completed(snapshot, waiting, asked, connection)
        settings = _settings(asked, snapshot)
        found = pending(snapshot, "" if asked.all_namespaces else namespace, settings, progress)
    invocation = _invocation(asked, connection)._replace(command="")
    if output == "text":
        from kubectl_dra.report.overview import write_overview

        write_overview(found, color, flags=_of_everything(asked) + invocation.where)
    elif output == "html":
        from kubectl_dra.report.explain_html import overview_html

        sys.stdout.write(overview_html(found, invocation))
    else:
        from kubectl_dra.report.explain_json import overview_json
        from kubectl_dra.report.structured import write

        write(overview_json(found, invocation), output, sys.stdout)
    return found.exit_code


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


def _read(asked: ExplainFlags, connection: ConnectionFlags) -> tuple[Snapshot, str, Snapshot | None]:
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


def _completed(snapshot: Snapshot, pods: Iterable[Pod], asked: ExplainFlags, connection: ConnectionFlags) -> Snapshot:
    """The live cluster with the further kinds that decide about these pods as long as they wait."""
    if asked.snapshots:
        return snapshot
    waiting = [pod for pod in pods if not pod.node_name]
    lowest = min((pod.priority for pod in snapshot.pods.values() if pod.node_name), default=None)
    settings = _settings(asked, snapshot)
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
        return _about_new_pods(manifest, snapshot, _settings(asked, snapshot))
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


def _settings(asked: ExplainFlags, snapshot: Snapshot) -> Settings:
    settings = assumed(snapshot, asked.release, asked.gates)
    return replace(
        settings,
        node=asked.node,
        request=asked.request,
        with_devices=asked.with_devices,
        scheduler=_scheduler(asked, settings.release),
    )


def _scheduler(asked: ExplainFlags, release: Release) -> SchedulerConfig | None:
    """What the scheduler runs with, where that is told."""
    if not asked.scheduler_config:
        return None
    from kubectl_dra.scheduling.scheduler_config import read_config

    return read_config(asked.scheduler_config, release)


def _invocation(asked: ExplainFlags, connection: ConnectionFlags) -> Invocation:
    """The command line without what only refines the output, to be repeated with other flags."""
    where = cluster_flags(asked.snapshots, connection)
    words = ["kubectl dra explain", "/".join(asked.target)]
    words += [f"-f {shlex.quote(path)}" for path in asked.manifests]
    words += [f"-n {asked.namespace}"] if asked.namespace else []
    words += [f"--what-if {shlex.quote(change)}" for change in asked.what_if]
    words += [f"--kubernetes-version {asked.release}"] if asked.release else []
    words += [f"--feature-gates {gates}" for gates in asked.gates]
    words += [f"--scheduler-config {shlex.quote(asked.scheduler_config)}"] if asked.scheduler_config else []
    return Invocation(" ".join(word for word in words if word) + where, where, bool(asked.snapshots))


def _of_everything(asked: ExplainFlags) -> str:
    """What --all was asked with and the question about one pod is to repeat, with a space before each."""
    words = [("--node", asked.node), ("--kubernetes-version", asked.release)]
    words += [("--scheduler-config", asked.scheduler_config)]
    words += [("--feature-gates", gates) for gates in asked.gates]
    return "".join(f" {flag} {shlex.quote(value)}" for flag, value in words if value)


def _print(diagnoses: Sequence[Diagnosis], output: str, color: str, invocation: Invocation) -> None:
    if output == "text":
        from kubectl_dra.report.explain_text import write_text

        write_text(diagnoses, color, invocation=invocation)
        return
    from kubectl_dra.report.explain_json import to_json
    from kubectl_dra.report.structured import write

    write(to_json(diagnoses, invocation), output, sys.stdout)
