"""Whether a workload that does not fit would if it was applied before the others of its manifest."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.explain.phrase import Joined, Words, say
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import fit
from kubectl_dra.fit.result import FitAnswer, FitOptions, WorkloadFit

_MOST_TRIED: Final = 3


def with_other_order(
    answer: FitAnswer, snapshot: Snapshot, settings: Settings, options: FitOptions, progress: Progress
) -> FitAnswer:
    """The answer with how many pods of the others fit where one that does not fit comes first.

    That is its fix where more of all fit then; else they compete, and the order decides who fits.
    """
    lacking = [number for number, each in enumerate(answer.workloads) if number and each.stop is not None]
    workloads = list(answer.workloads)
    for number in lacking[:_MOST_TRIED]:
        late = workloads[number]
        if late.stop is None or late.refused or late.workload.namespace in answer.missing_namespaces:
            continue
        if late.unclear and not late.may_fit:
            continue
        progress(f"placing {late.workload.title} first")
        order = [late, *(each for each in workloads if each is not late)]
        first, *others = _placed(order, snapshot, settings, options, progress)
        placed = sum(each.placed for each in others)
        if first.all_placed and first.placed + placed > sum(each.placed for each in workloads):
            stop = replace(late.stop, others_if_first=(placed, sum(each.pods for each in others)))
            workloads[number] = replace(late, stop=stop)
        elif first.placed > late.placed:
            fits = Joined(tuple(map(_fits, (first, *others))), " and ")
            text = "the order of the manifest was assumed, and decides: with this one first {fits} fit"
            workloads[number] = replace(late, stop=replace(late.stop, if_first=say(text, fits=fits)))
    return replace(answer, workloads=tuple(workloads))


def _fits(workload: WorkloadFit) -> Words:
    return say(
        "{number} of {pods:pod} of {title}", number=workload.placed, pods=workload.pods, title=workload.workload.title
    )


def _placed(
    order: list[WorkloadFit], snapshot: Snapshot, settings: Settings, options: FitOptions, progress: Progress
) -> tuple[WorkloadFit, ...]:
    counting = replace(options, only_counts=True)
    return fit([each.workload for each in order], snapshot, settings, counting, progress).workloads
