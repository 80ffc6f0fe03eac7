"""How many replicas of a workload fit, which ``explain -f`` says before it explains one of its pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubectl_dra.cli.explain.flags import ExplainFlags
from kubectl_dra.cli.explain.questions import Posed
from kubectl_dra.cli.live import Progress
from kubectl_dra.explain.diagnosis import Diagnosis, Verdict

if TYPE_CHECKING:
    from kubectl_dra.fit.result import WorkloadFit


def replicas_that_fit(posed: Sequence[Posed], diagnoses: Sequence[Diagnosis], asked: ExplainFlags) -> list[WorkloadFit]:
    """What comes of each workload of the manifest that makes several pods, in counts alone.

    There is none where the answer is open, or is about a part of the cluster or about a changed one.
    """
    narrowed = asked.target or asked.what_if or asked.node or asked.request
    if narrowed or not posed or not posed[0].snapshot.workloads:
        return []
    if any(diagnosis.verdict is Verdict.UNDETERMINED for diagnosis in diagnoses):
        return []
    from kubectl_dra.fit.answer import FitWish, fit
    from kubectl_dra.fit.workload import makers_of, without_stand_ins

    snapshot = posed[0].snapshot
    workloads = makers_of(snapshot)
    if all(workload.replicas * workload.size == 1 for workload in workloads):
        return []
    with Progress() as progress:
        wish = FitWish(only_counts=True)
        answer = fit(workloads, without_stand_ins(snapshot, workloads), posed[0].settings, wish, progress)
    return [found for found in answer.workloads if found.pods > 1]
