"""How many replicas of a workload fit, which ``explain -f`` says before it explains one of its pods."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.cli.explain.flags import ExplainFlags
from kubectl_dra.cli.explain.questions import Posed
from kubectl_dra.cli.live import Progress
from kubectl_dra.explain.diagnosis import Diagnosis, Verdict


def headlines(posed: Sequence[Posed], diagnoses: Sequence[Diagnosis], asked: ExplainFlags) -> list[str]:
    """A sentence for each workload of the manifest that makes several pods; none where the answer is open, or is about
    a part of the cluster or another one."""
    narrowed = asked.target or asked.what_if or asked.node or asked.request
    if narrowed or not posed or not posed[0].snapshot.workloads:
        return []
    if any(diagnosis.verdict is Verdict.UNDETERMINED for diagnosis in diagnoses):
        return []
    from kubectl_dra.fit.answer import FitWish, fit
    from kubectl_dra.fit.workload import makers_of, without_stand_ins
    from kubectl_dra.report.fit_words import headline

    snapshot = posed[0].snapshot
    workloads = makers_of(snapshot)
    if all(workload.replicas * workload.size == 1 for workload in workloads):
        return []
    with Progress() as progress:
        wish = FitWish(only_counts=True)
        answer = fit(workloads, without_stand_ins(snapshot, workloads), posed[0].settings, wish, progress)
    return [headline(found) for found in answer.workloads if found.pods > 1]
