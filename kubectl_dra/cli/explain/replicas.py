"""What ``explain -f`` says of a workload: as ``fit`` does, how many of its pods fit, and what stops the first that
does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubectl_dra.cli.explain import ExplainFlags
from kubectl_dra.cli.explain.questions import Answers, Posed
from kubectl_dra.cli.live import Progress
from kubectl_dra.explain.diagnosis import Diagnosis, Verdict
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_pod

if TYPE_CHECKING:
    from kubectl_dra.cluster.snapshot import Snapshot
    from kubectl_dra.fit.result import FitAnswer, WorkloadFit


def answered(posed: Sequence[Posed], diagnoses: Sequence[Diagnosis], asked: ExplainFlags) -> Answers:
    """The diagnoses, where those about pods that workloads of the manifest make are replaced by what comes of all.

    They stay where the question is about a part of the cluster or about a changed one, and where they are open.
    """
    alone = Answers.of(diagnoses)
    manifest = posed[0].manifest if posed else None
    narrowed = asked.target or asked.what_if or asked.node or asked.request
    if narrowed or manifest is None or not manifest.workloads:
        return alone
    if any(diagnosis.verdict is Verdict.UNDETERMINED for diagnosis in diagnoses):
        return alone
    found = _fitted(posed, manifest)
    if found is None:
        return alone
    shown: list[Diagnosis] = []
    codes: list[int] = []
    several = [one for one in found.workloads if one.pods > 1 or one.running]
    of_pods = {
        (role.pod.metadata.namespace, role.pod.metadata.name): one for one in several for role in one.workload.roles
    }
    told: set[int] = set()
    for diagnosis in diagnoses:
        workload = of_pods.get((diagnosis.namespace, diagnosis.name))
        if workload is None:
            shown.append(diagnosis)
            codes.append(diagnosis.exit_code)
        elif id(workload) not in told:
            told.add(id(workload))
            codes.append(workload.verdict.exit_code)
            own = [one for one in diagnoses if of_pods.get((one.namespace, one.name)) is workload]
            shown.extend(_shown(workload, own, posed[0]))
    return Answers(shown, several, max(codes, default=0))


def _fitted(posed: Sequence[Posed], manifest: Snapshot) -> FitAnswer | None:
    """What comes of all pods of the workloads; None where each has but one, which does not exist yet."""
    from kubectl_dra.fit.answer import FitWish, fit
    from kubectl_dra.fit.existing import pods_of
    from kubectl_dra.fit.workload import makers_of, without_stand_ins

    snapshot = posed[0].snapshot
    workloads = makers_of(manifest)
    cluster = without_stand_ins(snapshot)
    if all(one.replicas * one.size == 1 and not pods_of(one, cluster) for one in workloads):
        return None
    with Progress() as progress:
        return fit(workloads, cluster, posed[0].settings, FitWish(only_counts=True), progress)


def _shown(found: WorkloadFit, own: Sequence[Diagnosis], posed: Posed) -> Sequence[Diagnosis]:
    """The diagnosis of the first pod that does not fit; of one that would be created, or runs, where all do."""
    if found.stop is not None and found.stop.diagnosis.exit_code:
        return (found.stop.diagnosis,)
    agreeing = [diagnosis for diagnosis in own if bool(diagnosis.exit_code) == bool(found.verdict.exit_code)]
    if agreeing or not found.running:
        return agreeing
    from kubectl_dra.fit.existing import pods_of

    runs = next(pod for pod in pods_of(found.workload, posed.snapshot) if pod.node_name)
    return (diagnose(about_pod(runs, posed.snapshot, exists=True), posed.snapshot, posed.settings),)
