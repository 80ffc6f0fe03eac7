"""Number of new nodes that a workload needs: the smallest number with which all of it was placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Final

from msgspec import structs

from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.errors import UsageError
from kubectl_dra.explain.cause_kinds import Family
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.on_new_nodes import kept_off
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.question.new_nodes import FLAG
from kubectl_dra.explain.question.with_node_flag import Addition, with_nodes
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import fit
from kubectl_dra.fit.result import FitAnswer, FitOptions, NodesNeeded
from kubectl_dra.fit.workload import WorkloadPods

Attempt = Callable[[int], FitAnswer]
"""Places the workloads with so many new nodes."""
Supposing = Callable[[Sequence[Sequence[Pod]]], Words]
"""What is supposed of new nodes by the pods that each of them takes."""
MOST_SEARCHED: Final = 64
"""With more nodes than these nothing is tried."""


def fit_with_nodes(
    workloads: Sequence[WorkloadPods],
    snapshot: Snapshot,
    settings: Settings,
    options: FitOptions,
    progress: Progress,
    added: Sequence[Addition],
    notes: Sequence[Words],
    supposing: Supposing,
) -> FitAnswer:
    """Places the workloads on the cluster with new nodes; the smallest number of them, where nobody said how many.

    ``notes`` are what to say of the new nodes, ``supposing`` says what a yes supposes of each.

    Raises:
        UsageError: of several sorts of nodes nobody said how many.
    """
    searched = [addition for addition in added if addition.new.count is None and addition.countable]
    if len(searched) > 1:
        raise UsageError(f"{FLAG}: say count=N for all nodes but one; the number of that one is looked for")

    def why_not(answer: FitAnswer, there: Snapshot) -> Words:
        """Why the new nodes take none of the pods; empty where they take some, or all have a node."""
        new = there.nodes.keys() - snapshot.nodes.keys()
        placed = (placed_pod for workload in answer.workloads for placed_pod in workload.placed_pods)
        if _fits(answer) or _open(answer) or any(placed_pod.node in new for placed_pod in placed):
            return ""
        alone = fit(workloads, there.with_only(new), settings, structs.replace(options, only_counts=True), progress)
        return _refusal(alone.first_diagnosis, answer.first_diagnosis, new)

    if not searched or options.most:
        there = with_nodes(snapshot, added, settings.scheduler)
        answer = fit(workloads, there, settings, options, progress)
        return structs.replace(answer, notes=(*notes, *answer.notes), unhelpful=why_not(answer, there))
    tried: dict[int, FitAnswer] = {}
    after_others: dict[int, FitAnswer] = {}

    def attempt(count: int, known: dict[int, FitAnswer] = tried) -> FitAnswer:
        if count not in known:
            progress(f"placing the pods with {count} more nodes")
            there = with_nodes(snapshot, added, settings.scheduler, count)
            counting = structs.replace(options, only_counts=True, others_first=known is after_others)
            known[count] = fit(workloads, there, settings, counting, progress)
        return known[count]

    number = _smallest(attempt)
    there = with_nodes(snapshot, added, settings.scheduler, number)
    answer = fit(workloads, there, settings, options, progress)
    unhelpful: Words = ""
    if not number and not _fits(answer):
        # With one of them the answer is the same, and tells why it takes no pod.
        there = with_nodes(snapshot, added, settings.scheduler, 1)
        with_one = fit(workloads, there, settings, options, progress)
        unhelpful = why_not(with_one, there)
        answer = with_one if unhelpful else answer
    fewer = [(count, _placed(fit_answer)) for count, fit_answer in tried.items() if count < number]
    pods = sum(workload.pods for workload in answer.workloads)
    idle = any(workload.begin.lost for fit_answer in (answer, *tried.values()) for workload in fit_answer.workloads)
    known = (searched[0].new.text, number, _placed(answer), pods, max(fewer, default=None), max(tried))
    taken = _taken(answer, there.nodes.keys() - snapshot.nodes.keys())
    needed = NodesNeeded(*known, idle, provided=supposing(taken))
    if answer.first and needed.enough:
        after = _smallest(lambda count: attempt(count, after_others), number)
        enough = _fits(after_others[after])
        needed = structs.replace(needed, others=answer.first, after=after if enough else None)
        answer = structs.replace(answer, first=())
    return structs.replace(answer, needed=needed, notes=(*notes, *answer.notes), unhelpful=unhelpful)


def _taken(answer: FitAnswer, new: Set[str]) -> list[list[Pod]]:
    """The pods that each of the new nodes takes."""
    taken: dict[str, list[Pod]] = {}
    for placed_pod in (pod for workload in answer.workloads for pod in workload.placed_pods):
        if placed_pod.node in new:
            taken.setdefault(placed_pod.node, []).append(placed_pod.new.pod)
    return list(taken.values())


def _refusal(alone: Diagnosis | None, all_nodes: Diagnosis | None, new: Set[str]) -> Words:
    """Why new nodes refuse the first pod: what their devices lack, else what the scheduler says of them."""
    first = next(iter(alone.findings), None) if alone is not None else None
    barred = kept_off(all_nodes, new) if all_nodes is not None else ()
    if first is not None and first.kind.family in (Family.REQUEST, Family.DEVICES) and not barred:
        return first.summary
    groups = all_nodes.nodes if all_nodes is not None else ()
    return next((group.reason for group in groups if not new.isdisjoint(group.nodes)), "")


def _smallest(attempt: Attempt, start: int = 0) -> int:
    """The smallest number with which all fit; else the smallest of those tried with which most fit.

    More nodes are taken never to be worse: what is returned was tried, and so was one node less.
    """
    counts = [start]
    while not _fits(attempt(counts[-1])) and counts[-1] < MOST_SEARCHED and not _open(attempt(counts[-1])):
        counts.append(counts[-1] * 2 or 1)
    goal = _placed(attempt(counts[-1]))
    low = max((count for count in counts if _placed(attempt(count)) < goal), default=start - 1)
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
