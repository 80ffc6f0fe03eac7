"""How many nodes that are not there yet a workload needs: the smallest number with which all of it was placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import structs

from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.errors import UsageError
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.question.with_node_flag import FLAG, Addition, with_nodes
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import FitOptions, fit
from kubectl_dra.fit.result import FitAnswer, NodesNeeded
from kubectl_dra.fit.workload import WorkloadPods

Attempt = Callable[[int], FitAnswer]
"""Places the workloads with so many new nodes."""
MOST_SEARCHED: Final = 64
"""With more nodes than these nothing is tried."""


def fit_with_nodes(
    workloads: Sequence[WorkloadPods],
    snapshot: Snapshot,
    settings: Settings,
    options: FitOptions,
    progress: Progress,
    added: Sequence[Addition],
    notes: Sequence[Words] = (),
) -> FitAnswer:
    """Places the workloads on the cluster with new nodes; the smallest number of them, where nobody said how many.

    ``notes`` are what to say of the new nodes.

    Raises:
        UsageError: of several sorts of nodes nobody said how many.
    """
    searched = [addition for addition in added if addition.new.count is None and addition.countable]
    if len(searched) > 1:
        raise UsageError(f"{FLAG}: say count=N for all nodes but one; the number of that one is looked for")
    if not searched or options.most:
        answer = fit(workloads, with_nodes(snapshot, added, settings.scheduler), settings, options, progress)
        return structs.replace(answer, notes=(*notes, *answer.notes))
    tried: dict[int, FitAnswer] = {}

    def attempt(count: int) -> FitAnswer:
        if count not in tried:
            progress(f"placing the pods with {count} more nodes")
            there = with_nodes(snapshot, added, settings.scheduler, count)
            tried[count] = fit(workloads, there, settings, structs.replace(options, only_counts=True), progress)
        return tried[count]

    number = _smallest(attempt)
    there = with_nodes(snapshot, added, settings.scheduler, number)
    answer = fit(workloads, there, settings, options, progress)
    fewer = [(count, _placed(fit_answer)) for count, fit_answer in tried.items() if count < number]
    pods = sum(workload.pods for workload in answer.workloads)
    idle = any(workload.begin.lost for each in (answer, *tried.values()) for workload in each.workloads)
    known = (searched[0].new.text, number, _placed(answer), pods, max(fewer, default=None), max(tried))
    needed = NodesNeeded(*known, idle)
    return structs.replace(answer, needed=needed, notes=(*notes, *answer.notes))


def _smallest(attempt: Attempt) -> int:
    """The smallest number with which all fit; else the smallest of those tried with which most fit.

    More nodes are taken never to be worse: what is returned was tried, and so was one node less.
    """
    counts = [0]
    while not _fits(attempt(counts[-1])) and counts[-1] < MOST_SEARCHED and not _open(attempt(counts[-1])):
        counts.append(counts[-1] * 2 or 1)
    goal = _placed(attempt(counts[-1]))
    low = max((count for count in counts if _placed(attempt(count)) < goal), default=-1)
    high = min(count for count in counts if _placed(attempt(count)) >= goal)
    while high - low > 1:
        middle = (low + high) // 2
        if _placed(attempt(middle)) >= goal:
            high = middle
        else:
            low = middle
    return high


def _fits(answer: FitAnswer) -> bool:
    return all(workload.all_placed for workload in answer.workloads)


def _open(answer: FitAnswer) -> bool:
    return any(workload.unclear for workload in answer.workloads)


def _placed(answer: FitAnswer) -> int:
    return sum(workload.starting for workload in answer.workloads)
