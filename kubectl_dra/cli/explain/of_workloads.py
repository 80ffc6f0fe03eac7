"""What ``explain -f`` says of a workload: as ``fit`` does, how many of its pods fit, and what stops the first that does
not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kubectl_dra.api.claims import Consumer, ResourceClaim
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.pods import ONLY_PLACED, Pod, PodStatus
from kubectl_dra.cli.explain import ExplainFlags
from kubectl_dra.cli.explain.questions import Answers, Posed
from kubectl_dra.cli.live import Progress
from kubectl_dra.cluster.cluster import Cluster, key_of
from kubectl_dra.cluster.snapshot import Key, Snapshot, stand_in
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.assumptions import (
    AfterOthers,
    AfterRollout,
    AskedByItself,
    BesideOthers,
    ClaimAfterOthers,
    OneOfItsPods,
)
from kubectl_dra.explain.diagnosis import Diagnosis, NodeDevices
from kubectl_dra.explain.outcomes import NoHelp
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import Question, about_pod
from kubectl_dra.explain.unread_kind import if_none

if TYPE_CHECKING:
    from kubectl_dra.api.pods import Pod
    from kubectl_dra.fit.place import PlacedPod
    from kubectl_dra.fit.result import FitAnswer, FitOptions, WorkloadFit
    from kubectl_dra.fit.workload import WorkloadPods

Ask = Callable[[Posed], Diagnosis]
"""Answers a question."""


def answered(posed: Sequence[Posed], diagnoses: Sequence[Diagnosis], flags: ExplainFlags, ask: Ask) -> Answers:
    """The diagnoses, where those about pods that workloads of the manifest make are replaced by what comes of all.

    They stay where the question is about a part of the cluster, and where they are open. ``ask`` answers a question.
    """
    alone = Answers.of(diagnoses)
    manifest = posed[0].manifest if posed else None
    if flags.labels or flags.node or flags.request or manifest is None:
        return alone
    if not manifest.pods:
        return Answers.of(_claims_in_turn(posed, diagnoses, ask))
    diagnoses = [_noted(diagnosis, posed) for diagnosis in diagnoses]
    alone = Answers.of(_after_those_that_wait(diagnoses, posed))
    pods = {_key(each.question) for each in posed if each.question.pod is not None}
    fits = any(_key(diagnosis) in pods and not diagnosis.exit_code for diagnosis in diagnoses)
    if not manifest.workloads and (len(manifest.pods) < 2 or not fits):
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
    # New nodes are asked about for what they serve by themselves.
    options = replace(options, others_asked=not posed[0].settings.added)
    fitted = _fitted(posed, manifest, options)
    if fitted is None:
        return alone
    fit_answer, needing = fitted
    shown: list[Diagnosis] = []
    refused: list[Diagnosis] = []
    codes: list[int] = []
    # Workloads of one manifest take devices from one another.
    by_name = {_key(diagnosis): diagnosis for diagnosis in diagnoses}
    bare = {
        key_of(pod): workload
        for workload in fit_answer.workloads
        if (pod := _bare_pod(workload.workload)) is not None and _says_as_much(workload, by_name)
    }
    several = [
        workload
        for workload in fit_answer.workloads
        if workload not in bare.values()
        and (workload.pods != 1 or workload.exists or len(fit_answer.workloads) > 1)
        and any((role.pod.metadata.namespace, role.stand_in) in by_name for role in workload.workload.roles)
    ]
    of_pods = {
        (role.pod.metadata.namespace, role.stand_in): workload
        for workload in several
        for role in workload.workload.roles
    }
    seen: set[int] = set()
    for diagnosis in diagnoses:
        workload = of_pods.get(_key(diagnosis))
        if workload is None:
            own_workload = bare.get(_key(diagnosis))
            diagnosis = _beside(diagnosis, own_workload)
            if own_workload is not None and not diagnosis.exit_code:
                by_itself = _without(AskedByItself, diagnosis)
                diagnosis = _beside_others(by_itself, _of(diagnosis, posed), own_workload, fit_answer, ask)
            shown.append(diagnosis)
            codes.append(diagnosis.exit_code)
        elif id(workload) not in seen:
            seen.add(id(workload))
            missing = workload.workload.namespace in fit_answer.missing_namespaces
            codes.append(1 if missing else workload.verdict.exit_code)
            own = [each for each in diagnoses if of_pods.get(_key(each)) is workload]
            refused += [_without(OneOfItsPods, each) for each in own if missing]
            case = _of(own[0], posed)
            if workload.may_fit:
                own = _after_those_that_wait(own, posed)
            for answer in _shown(workload, own, case):
                # One that does not fit is looked at after those before it were placed.
                beside = answer if workload.exists else _beside_others(answer, case, workload, fit_answer, ask)
                if any(workload is known for known in needing):
                    # What fits without them are not all of its pods.
                    beside = replace(beside, fits_already=())
                shown.append(_without(OneOfItsPods, beside))
    return Answers(shown, several, max(codes, default=0), fit_answer.missing_namespaces, refused)


def _after_those_that_wait(diagnoses: Sequence[Diagnosis], posed: Sequence[Posed]) -> list[Diagnosis]:
    """The diagnoses of pods that would be created, with what the pods that wait already leave for them."""
    from kubectl_dra.explain.rivals import with_rivals_of_new

    cases = [_of(diagnosis, posed) for diagnosis in diagnoses]
    return [
        diagnosis
        if case.settings.added
        else with_rivals_of_new(diagnosis, case.question, case.snapshot, case.settings, case.new_pods)
        for diagnosis, case in zip(diagnoses, cases, strict=True)
    ]


def _bare_pod(workload: WorkloadPods) -> Pod | None:
    """The pod, where the workload is nothing but one that the manifest has."""
    return workload.roles[0].pod if not workload.raw and len(workload.roles) == 1 and workload.unit == "pod" else None


def _says_as_much(workload: WorkloadFit, diagnoses: Mapping[Key, Diagnosis]) -> bool:
    """Whether the diagnosis of a bare pod, or of what stops it, says what comes of it: no other answer is needed."""
    own = diagnoses.get(key_of(workload.workload.roles[0].pod))
    if own is None or own.exit_code:
        return own is not None
    return not workload.verdict.exit_code or (workload.stop is not None and bool(workload.stop.diagnosis.exit_code))


def _beside(diagnosis: Diagnosis, workload: WorkloadFit | None) -> Diagnosis:
    """The diagnosis of a bare pod; of one that by itself fits and beside the others does not, why it does not."""
    if workload is None or diagnosis.exit_code or not workload.verdict.exit_code or workload.stop is None:
        return diagnosis
    stopped = workload.stop.diagnosis
    return replace(stopped, notes=(AfterOthers(), *stopped.notes))


def _without(kind: type, diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis without the notes of a kind, which say that it is about one of several."""
    return replace(diagnosis, notes=tuple(note for note in diagnosis.notes if not isinstance(note, kind)))


def _noted(diagnosis: Diagnosis, posed: Sequence[Posed]) -> Diagnosis:
    """The diagnosis, with a note where it is about a bare pod that is new, as are others of the manifest."""
    asked = [case.question for case in posed]
    pods = [each.pod for each in asked if each.pod is not None and not (each.exists and each.pod.node_name)]
    bare = [pod.key for pod in pods if stand_in(pod) is None]
    if len(pods) < 2 or f"{diagnosis.namespace}/{diagnosis.name}" not in bare:
        return diagnosis
    return replace(diagnosis, notes=(AskedByItself(), *diagnosis.notes))


def _fitted(
    posed: Sequence[Posed], manifest: Snapshot, options: FitOptions
) -> tuple[FitAnswer, list[WorkloadFit]] | None:
    """What comes of all pods of the workloads, and those that only fit with the new nodes.

    None where there is but one pod, which does not exist yet.
    """
    from kubectl_dra.fit.answer import fit
    from kubectl_dra.fit.existing_pods import is_new, missing_namespaces
    from kubectl_dra.fit.workload import each_of, without_stand_ins

    snapshot = posed[0].snapshot
    workloads = each_of(manifest)
    new = [snapshot.pods[key] for key in posed[0].new_pods if key in snapshot.pods]
    cluster = Cluster(without_stand_ins(snapshot)).ending(new).editing(*_reworded(posed)).snapshot
    settings = replace(posed[0].settings, supposed=posed[0].changes)
    if sum(pods.replicas * pods.size for pods in workloads) == 1 and is_new(workloads[0], cluster):
        return None
    # What fits once they exist is worth more than that every pod is refused.
    missing = missing_namespaces(workloads, cluster)
    cluster = Cluster(cluster).adding_namespaces(missing).snapshot if missing else cluster
    with Progress() as progress:
        answer = fit(workloads, cluster, settings, options, progress)
        if len(workloads) == 1 and answer.workloads[0].stop is not None:
            from kubectl_dra.fit.placed_again import with_counts

            (only,) = answer.workloads
            stop = answer.workloads[0].stop
            stopped = with_counts(only, stop.diagnosis, cluster, settings, progress)
            answer = replace(answer, workloads=(replace(only, stop=replace(stop, diagnosis=stopped)),))
        needing: list[WorkloadFit] = []
        if settings.added:
            before = replace(settings, new_nodes=(), added=frozenset())
            without = fit(workloads, cluster.real, before, replace(options, changes=True, only_counts=True), progress)
            pairs = zip(answer.workloads, without.workloads, strict=True)
            needing = [workload for workload, before_them in pairs if before_them.verdict.exit_code]
    return replace(answer, missing_namespaces=missing), needing


def _reworded(posed: Sequence[Posed]) -> Iterator[ResourceClaim]:
    """The claims that exist, or the manifest has, as they are supposed to ask."""
    for each in posed:
        for entry in each.question.claims:
            if entry.claim is not None and not entry.hypothetical:
                known = each.snapshot.claims.get(key_of(entry.claim))
                if known is not None and known != entry.claim:
                    yield entry.claim


def _key(about: Question | Diagnosis) -> Key:
    return about.namespace, about.name


def _of(diagnosis: Diagnosis, posed: Sequence[Posed]) -> Posed:
    """The question that a diagnosis answers."""
    return next((case for case in posed if _key(case.question) == _key(diagnosis)), posed[0])


def _shown(workload: WorkloadFit, own: Sequence[Diagnosis], posed: Posed) -> Sequence[Diagnosis]:
    """The diagnosis of the first pod that does not fit; of one that would be created, or runs, where all do."""
    if workload.stop is not None and workload.stop.diagnosis.exit_code:
        return (workload.stop.diagnosis,)
    agreeing = [
        diagnosis
        for diagnosis in own
        if bool(diagnosis.exit_code) == bool(workload.verdict.exit_code) or workload.may_fit
    ]
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


# What ``explain -f`` says of what fits, once the others of its manifest have their nodes and devices.


def _beside_others(diagnosis: Diagnosis, posed: Posed, workload: WorkloadFit, answer: FitAnswer, ask: Ask) -> Diagnosis:
    """The diagnosis of a pod that fits, as it is with the pods of other workloads on their nodes.

    Where new nodes are supposed it is about a pod that gets one, if any does: others take what there is already.
    """
    if diagnosis.exit_code or not workload.placed_pods:
        return diagnosis
    looked_at = next((pod for pod in workload.placed_pods if pod.node in posed.settings.added), None)
    own = workload.placed_pods if looked_at is not None else ()
    of_others = (pod for each in answer.workloads if each is not workload for pod in each.placed_pods)
    others = [pod for pod in (*of_others, *own) if pod is not looked_at]
    if not {pod.node for pod in others}.intersection(diagnosis.fitting):
        return diagnosis
    again = ask(posed._replace(snapshot=_with(others, Cluster(posed.snapshot)).snapshot, before=None))
    if again.exit_code:
        return diagnosis
    # New nodes that others take help, too.
    notes = [note for note in again.notes if not isinstance(note, NoHelp) or note in diagnosis.notes]
    return replace(again, notes=(BesideOthers(), *notes))


def _with(placed_pods: Iterable[PlacedPod], cluster: Cluster) -> Cluster:
    """The cluster with pods on their nodes, and without those that end for them."""
    for placed in placed_pods:
        bound = replace(placed.new.pod, node_name=placed.node)
        cluster = cluster.ending(placed.evicted).editing(bound, *placed.claims)
    return cluster


def _claims_in_turn(posed: Sequence[Posed], diagnoses: Sequence[Diagnosis], ask: Ask) -> list[Diagnosis]:
    """The diagnoses, where those about claims of the manifest are given with the devices that others of them take.

    Which is allocated first, nobody knows: a claim that fits on fewer nodes comes before one that fits on more.
    """
    out = list(diagnoses)
    waiting = [at for at, each in enumerate(posed) if _is_claim_of_manifest(each) and _can_be_had(diagnoses[at])]
    taken: list[ResourceClaim | Pod] = []
    for at in sorted(waiting, key=lambda number: len(diagnoses[number].fitting)):
        if taken:
            after = Cluster(posed[at].snapshot).editing(*taken).snapshot
            again = ask(posed[at]._replace(snapshot=after, before=None))
            if again.exit_code:
                from kubectl_dra.fit.changes import without_own

                # Nobody ends what is only supposed.
                users = {item.key for item in taken if isinstance(item, Pod)}
                again = without_own(again, users, after)
            if again.exit_code or again.placements != out[at].placements:
                out[at] = replace(again, notes=(ClaimAfterOthers(), *again.notes))
        if _can_be_had(out[at]):
            later = [diagnoses[other].fitting for other in waiting if other != at]
            for new in _least_wanted(out[at].placements, later).claims:
                taken += _in_use(new)
    return out


def _in_use(claim: ResourceClaim) -> tuple[ResourceClaim, Pod]:
    """The claim as a pod uses it, which is when it gets its devices, and the pod."""
    name = f"user-of-{claim.metadata.name}"
    meta = ObjectMeta(name=name, namespace=claim.metadata.namespace, uid=f"user:{claim.key}")
    pod = Pod(metadata=replace(meta, annotations={ONLY_PLACED: ""}), status=PodStatus(phase="Running"))
    return replace(claim, reserved_for=(Consumer("pods", name, meta.uid),)), pod


def _is_claim_of_manifest(posed: Posed) -> bool:
    question, manifest = posed.question, posed.manifest
    return question.pod is None and manifest is not None and _key(question) in manifest.claims


def _can_be_had(diagnosis: Diagnosis) -> bool:
    return diagnosis.verdict is Verdict.SCHEDULABLE and bool(diagnosis.placements)


def _least_wanted(placements: Sequence[NodeDevices], others: Sequence[Sequence[str]]) -> NodeDevices:
    """The place on the node on which the fewest others fit."""
    return min(placements, key=lambda place: sum(place.node in fitting for fitting in others))
