"""From arguments to questions: the objects that they are about."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kubectl_dra.api.claims import ResourceClaim, ResourceClaimTemplate
from kubectl_dra.api.pods import Pod
from kubectl_dra.cli.explain import ExplainFlags, ExplainOutput
from kubectl_dra.cli.explain.reading import (
    applied,
    asked_settings,
    completed,
    read_cluster,
    read_manifest,
    with_what_decides,
)
from kubectl_dra.cli.explain.target import (
    LABELS,
    Looked,
    NotMade,
    StandIn,
    TypedTarget,
    find,
    has_made,
    targets_of,
    through_claim,
)
from kubectl_dra.cli.live import Progress, with_neighbours
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot, stand_in
from kubectl_dra.cluster.workload_pods import with_free_names
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.assumptions import AfterRollout, AskedByItself, OneOfItsPods, rules_notes
from kubectl_dra.explain.attributes_read import complete
from kubectl_dra.explain.causes.registry import all_kinds
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.new_pod import about_new_pod, check_selectors, with_refused_objects
from kubectl_dra.explain.question.resolve import Question, about_claim, about_pod, about_template
from kubectl_dra.explain.question.what_if_flag import (
    WhatIfChange,
    asking,
    suppose,
    supposed_to_end,
    users_of_freed,
    with_whole_name,
    without_effect,
)
from kubectl_dra.explain.settings import Settings
from kubectl_dra.explain.unread import if_none
from kubectl_dra.report.table import write
from kubectl_dra.text import page_of_causes

if TYPE_CHECKING:
    from kubectl_dra.explain.devices.inventory import Inventory
    from kubectl_dra.fit.result import FitAnswer, FitOptions, WorkloadFit


class Posed(NamedTuple):
    """A question ready to be answered, with its hypothetical changes and the cluster under them, and the manifest.

    ``stand_in``: what was asked about instead, a workload or a template. ``before`` are question and cluster without
    the changes, where there are any.
    """

    question: Question
    snapshot: Snapshot
    settings: Settings
    manifest: Snapshot | None = None
    stand_in: StandIn = None
    before: tuple[Question, Snapshot] | None = None


class Answers(NamedTuple):
    """The diagnoses, the workloads whose pods are counted, and the exit code.

    ``missing`` are namespaces that do not exist; the workloads suppose them. ``refused`` are the pods that are not
    created for that, of which text says no more.
    """

    diagnoses: Sequence[Diagnosis]
    workloads: Sequence[WorkloadFit] = ()
    code: int = 0
    missing: Sequence[str] = ()
    refused: Sequence[Diagnosis] = ()

    @classmethod
    def of(cls, diagnoses: Sequence[Diagnosis]) -> Answers:
        """Diagnoses by themselves."""
        return cls(diagnoses, (), max((diagnosis.exit_code for diagnosis in diagnoses), default=0))


def questions_of(flags: ExplainFlags, connection: ConnectionFlags, changes: Sequence[WhatIfChange]) -> list[Posed]:
    """The questions, with the cluster that they are about.

    Raises:
        DraError: arguments that name no object, unreadable input, or a cluster that does not answer.
    """
    targets = asked_targets(flags)
    given = read(flags, connection, targets)
    snapshot = given.snapshot
    if given.manifest is not None:
        snapshot = with_what_decides(snapshot, given.manifest, flags, connection)
    given = _with_makers(given._replace(snapshot=snapshot), targets, flags, connection)
    snapshot, questions = given.snapshot, _questions(flags, targets, given)
    snapshot = completed(
        snapshot, [question.pod for question, _ in questions if question.pod is not None], flags, connection
    )
    unchanged = snapshot
    changes = [with_whole_name(change, snapshot) for change in changes]
    settings = replace(asked_settings(flags, snapshot), supposed=tuple(changes))
    environment = settings.scheduler.environment
    if flags.with_nodes:
        changed = [asking(question, changes, environment) for question, _ in questions]
        snapshot, settings = _with_nodes(flags.with_nodes, changed, snapshot, settings)
    supposes = bool(settings.supposed)
    return [
        Posed(
            *suppose(question, snapshot, changes, environment),
            replace(
                settings,
                idle=without_effect(question, changes),
                ended=tuple(supposed_to_end(changes, unchanged, question.namespace)),
                freed=users_of_freed(changes, unchanged, question.namespace),
            ),
            given.manifest,
            picked,
            before=(question, unchanged) if supposes else None,
        )
        for question, picked in questions
    ]


def _with_nodes(
    texts: Sequence[str], questions: Sequence[Question], snapshot: Snapshot, settings: Settings
) -> tuple[Snapshot, Settings]:
    """The cluster with the new nodes, and the settings that say so."""
    from kubectl_dra.explain.question.with_node_flag import new_additions, with_nodes

    added = tuple(new_additions(texts, questions, snapshot, settings.scheduler))
    supposed = (*settings.supposed, *(addition.new.change for addition in added))
    after = with_nodes(snapshot, added, settings.scheduler)
    names = frozenset(after.nodes.keys() - snapshot.nodes.keys())
    return after, replace(settings, supposed=supposed, new_nodes=added, added=names)


def asked_targets(flags: ExplainFlags) -> tuple[TypedTarget, ...]:
    """What the command line names. Raises UsageError where that is nothing that can be explained."""
    if not flags.labels:
        return targets_of(flags.target) if flags.target else ()
    if flags.target or flags.manifests or flags.all_claims or flags.all_namespaces:
        raise UsageError("-l chooses among the pods of a namespace; leave other names, -f, --all and -A out")
    return (TypedTarget(LABELS, flags.labels),)


class Given(NamedTuple):
    """What is asked about: the state of the cluster with the manifest applied, each by itself, and the namespace meant.

    Without a manifest the state is that of the cluster.
    """

    snapshot: Snapshot
    cluster: Snapshot
    manifest: Snapshot | None
    namespace: str


def read(flags: ExplainFlags, connection: ConnectionFlags, targets: Sequence[TypedTarget] = ()) -> Given:
    """The cluster and the manifest."""
    cluster, namespace = read_cluster(flags, connection, targets)
    if not flags.manifests:
        return Given(cluster, cluster, None, namespace)
    manifest = read_manifest(flags, namespace, target=bool(flags.target))
    manifest = with_free_names(manifest, cluster)
    return Given(applied(cluster, manifest, flags), cluster, manifest, namespace)


def _with_makers(
    given: Given, targets: Sequence[TypedTarget], flags: ExplainFlags, connection: ConnectionFlags
) -> Given:
    """The live cluster with the workloads that are asked about and have no pods, which may be suspended."""
    if flags.snapshots:
        return given
    from kubectl_dra.neighbours.no_pod import MAKERS, maker_pointers

    wanted = [
        pointer
        for target in targets
        if target.kind in MAKERS and not any(has_made(pod, target) for pod in given.snapshot.pods.values())
        for pointer in maker_pointers(target.kind, target.name, given.namespace, given.snapshot)
    ]
    if not wanted:
        return given
    return given._replace(snapshot=with_neighbours(given.snapshot, lambda _: wanted, connection, flags.namespace))


def _questions(flags: ExplainFlags, targets: Sequence[TypedTarget], given: Given) -> list[tuple[Question, StandIn]]:
    """The questions, each with what it stands in for."""
    if not targets:
        return _of_manifest(flags, given)
    everywhere = bool(flags.snapshots) and not flags.namespace
    return [
        _about(find(target, given.namespace, given.snapshot, anywhere=everywhere), flags, given) for target in targets
    ]


def _about(looked: Looked, flags: ExplainFlags, given: Given) -> tuple[Question, StandIn]:
    item = looked.item
    if isinstance(item, ResourceClaim):
        return about_claim(item), None
    if isinstance(item, ResourceClaimTemplate):
        return about_template(item), looked.stand_in
    check_selectors(item)
    if isinstance(looked.stand_in, NotMade):
        return about_new_pod(item, given.snapshot, asked_settings(flags, given.snapshot)), looked.stand_in
    return _about_pod(item, given, asked_settings(flags, given.snapshot)), looked.stand_in


def _of_manifest(flags: ExplainFlags, given: Given) -> list[tuple[Question, StandIn]]:
    snapshot, manifest = given.snapshot, given.manifest
    assert manifest is not None
    settings = asked_settings(flags, snapshot)
    if manifest.pods:
        return [(_about_pod(pod, given, settings), None) for pod in manifest.pods.values()]
    if manifest.claims:
        found = [_about(through_claim(snapshot.claims[key], snapshot), flags, given) for key in manifest.claims]
        return [(with_refused_objects(question, snapshot, settings), stand_in) for question, stand_in in found]
    if manifest.templates:
        templates = [about_template(snapshot.templates[key]) for key in manifest.templates]
        return [(with_refused_objects(question, snapshot, settings), None) for question in templates]
    raise InputError(
        f"{', '.join(flags.manifests)} holds no pod, workload, ResourceClaim or ResourceClaimTemplate: "
        "nothing to explain"
    )


def _about_pod(pod: Pod, given: Given, settings: Settings) -> Question:
    """The question about a pod of the cluster, or of the manifest: one that exists keeps what it has."""
    key = (pod.metadata.namespace, pod.metadata.name)
    if key in given.cluster.pods and stand_in(pod) is None:
        return about_pod(given.snapshot.pods[key], given.snapshot, exists=True)
    assert given.manifest is not None
    return about_new_pod(pod, given.snapshot, settings, given.manifest.written.get(("Pod", *key)))


# ``explain --explain CODE``: the page of a cause.


def print_page(flags: ExplainFlags) -> int:
    """Print the page; return the exit code.

    Raises:
        UsageError: no such cause, or what does not go with it.
    """
    from kubectl_dra.cli.unknown_words import unknown_code
    from kubectl_dra.report.markdown_text import cause_json, write_page

    if flags.target or flags.manifests or flags.all_claims or flags.all_namespaces:
        raise UsageError("--explain prints a page about one cause; leave the pod, claim or manifest out")
    if flags.output is ExplainOutput.html:
        raise UsageError("--explain prints text, json or yaml, not html")
    known = {kind.code: kind for kind in all_kinds()}
    kind = known.get(flags.cause.lower())
    if kind is None:
        raise unknown_code("cause", flags.cause, known, f"{page_of_causes()} lists them")
    if flags.output is ExplainOutput.text:
        write_page(kind.page.text, flags.color)
    else:
        write(cause_json(kind), flags.output.value, sys.stdout, 0)
    return 0


# The devices in the picture of ``explain -o html``.


def fleet(question: Question | None, snapshot: Snapshot, settings: Settings) -> Inventory | None:
    """The devices of a cluster, of one node with ``--node``; None if they were not read.

    They are exact in what classes read, and the ``question`` if it is about one pod or claim.
    """
    from kubectl_dra.explain.devices.inventory import take_inventory
    from kubectl_dra.explain.devices.wanted import Wanted

    shown = complete(question, snapshot, settings).for_lists()
    wanted = Wanted(nodes=(settings.node,) if settings.node else ())
    try:
        return take_inventory(shown, settings.scheduler.cycle(shown), wanted, rules_notes(shown, settings))
    except InputError:
        return None


# What ``explain -f`` says of a workload: as ``fit`` does, how many of its pods fit, and what stops the first that
# does not.


def answered(posed: Sequence[Posed], diagnoses: Sequence[Diagnosis], flags: ExplainFlags) -> Answers:
    """The diagnoses, where those about pods that workloads of the manifest make are replaced by what comes of all.

    They stay where the question is about a part of the cluster or about changed requests of pods that differ, and where
    they are open.
    """
    alone = Answers.of(diagnoses)
    manifest = posed[0].manifest if posed else None
    reworded = len(posed) > 1 and any(not change.of_cluster for change in posed[0].settings.supposed)
    narrowed = flags.target or flags.labels or reworded or flags.node or flags.request
    if narrowed or manifest is None:
        return alone
    diagnoses = [_noted(diagnosis, posed) for diagnosis in diagnoses]
    alone = Answers.of(diagnoses)
    if not manifest.workloads:
        return alone
    # Whether a pod starts is known once all have their nodes.
    if any(
        answer.verdict is Verdict.UNDETERMINED
        and not (answer.not_starting or answer.refused or if_none(answer.unclear))
        for answer in diagnoses
    ):
        return alone
    from kubectl_dra.fit.result import FitOptions

    open_ = any(answer.verdict is Verdict.UNDETERMINED for answer in diagnoses)
    # That the first pod of each role can be judged is known, unless something else has to be.
    options = FitOptions(changes=False) if open_ else FitOptions(only_counts=True)
    fit_answer = _fitted(posed, manifest, options)
    if fit_answer is None:
        return alone
    shown: list[Diagnosis] = []
    refused: list[Diagnosis] = []
    codes: list[int] = []
    # Workloads of one manifest take devices from one another.
    several = [
        workload
        for workload in fit_answer.workloads
        if workload.pods != 1 or workload.exists or len(fit_answer.workloads) > 1
    ]
    of_pods = {
        (role.pod.metadata.namespace, role.stand_in): workload
        for workload in several
        for role in workload.workload.roles
    }
    seen: set[int] = set()
    for diagnosis in diagnoses:
        workload = of_pods.get((diagnosis.namespace, diagnosis.name))
        if workload is None:
            shown.append(diagnosis)
            codes.append(diagnosis.exit_code)
        elif id(workload) not in seen:
            seen.add(id(workload))
            missing = workload.workload.namespace in fit_answer.missing_namespaces
            codes.append(1 if missing else workload.verdict.exit_code)
            own = [
                diagnosis for diagnosis in diagnoses if of_pods.get((diagnosis.namespace, diagnosis.name)) is workload
            ]
            refused += map(_of_all, own if missing else ())
            by_itself = len(several) > 1 and not workload.running
            # One that does not fit is looked at after those before it were placed.
            shown.extend(
                _of_all(diagnosis, by_itself and not diagnosis.exit_code)
                for diagnosis in _shown(workload, own, _of(own[0], posed))
            )
    return Answers(shown, several, max(codes, default=0), fit_answer.missing_namespaces, refused)


def _of_all(diagnosis: Diagnosis, by_itself: bool = False) -> Diagnosis:
    """The diagnosis of one pod beside the answer about all of its workload; ``by_itself``: beside other workloads."""
    notes = [note for note in diagnosis.notes if not isinstance(note, OneOfItsPods)]
    return replace(diagnosis, notes=(*((AskedByItself(),) if by_itself else ()), *notes))


def _noted(diagnosis: Diagnosis, posed: Sequence[Posed]) -> Diagnosis:
    """The diagnosis, with a note where it is about a bare pod that is new, as are others of the manifest."""
    asked = [case.question for case in posed]
    pods = [pod for question in asked if (pod := question.pod) is not None and not (question.exists and pod.node_name)]
    bare = [pod.key for pod in pods if stand_in(pod) is None]
    if len(pods) < 2 or f"{diagnosis.namespace}/{diagnosis.name}" not in bare:
        return diagnosis
    return replace(diagnosis, notes=(AskedByItself(), *diagnosis.notes))


def _fitted(posed: Sequence[Posed], manifest: Snapshot, options: FitOptions) -> FitAnswer | None:
    """What comes of all pods of the workloads; None where there is but one pod, which does not exist yet."""
    from kubectl_dra.fit.answer import fit
    from kubectl_dra.fit.job_progress import is_new
    from kubectl_dra.fit.missing_namespaces import missing_namespaces
    from kubectl_dra.fit.workload import makers_of, without_stand_ins

    snapshot = posed[0].snapshot
    workloads = makers_of(manifest)
    cluster = without_stand_ins(snapshot)
    if sum(pods.replicas * pods.size for pods in workloads) == 1 and is_new(workloads[0], cluster):
        return None
    # What fits once they exist is worth more than that every pod is refused.
    missing = missing_namespaces(workloads, cluster)
    cluster = Cluster(cluster).adding_namespaces(missing).snapshot if missing else cluster
    with Progress() as progress:
        answer = fit(workloads, cluster, posed[0].settings, options, progress)
    return replace(answer, missing_namespaces=missing)


def _of(diagnosis: Diagnosis, posed: Sequence[Posed]) -> Posed:
    """The question that a diagnosis answers."""
    key = (diagnosis.namespace, diagnosis.name)
    return next((case for case in posed if (case.question.namespace, case.question.name) == key), posed[0])


def _shown(workload: WorkloadFit, own: Sequence[Diagnosis], posed: Posed) -> Sequence[Diagnosis]:
    """The diagnosis of the first pod that does not fit; of one that would be created, or runs, where all do."""
    if workload.stop is not None and workload.stop.diagnosis.exit_code:
        return (workload.stop.diagnosis,)
    agreeing = [diagnosis for diagnosis in own if bool(diagnosis.exit_code) == bool(workload.verdict.exit_code)]
    if workload.replaced and not workload.running and not workload.verdict.exit_code:
        # A node that a pod of the former template leaves is none that the pod gets beside it.
        given = {placed_pod.node for placed_pod in workload.placed_pods}
        agreeing = [answer for answer in agreeing if given <= {placement.node for placement in answer.placements}]
    if agreeing or not (workload.running or workload.replaced):
        return agreeing
    from kubectl_dra.fit.existing_pods import pods_of

    there = [pod for pod in pods_of(workload.workload, posed.snapshot) if pod.node_name]
    if not workload.running:
        # Those of the former template end for the new ones.
        after = Cluster(posed.snapshot).ending(there).snapshot
        diagnosis = diagnose(posed.question, after, posed.settings)
        return (replace(diagnosis, notes=(AfterRollout(), *diagnosis.notes)),)
    runs = there[0]
    return (diagnose(about_pod(runs, posed.snapshot, exists=True), posed.snapshot, posed.settings),)
