"""Number of new nodes that a workload needs: the smallest number with which all of it was placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from math import ceil
from typing import Final, NamedTuple

from msgspec import structs

from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.errors import FlagValueError
from kubectl_dra.explain.cause_kinds import Family
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.on_new_nodes import kept_off, unknown_labels
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.question.new_nodes import FLAG, MOST
from kubectl_dra.explain.question.with_node_flag import Addition, with_nodes
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import fit
from kubectl_dra.fit.placed_again import with_fixed_template
from kubectl_dra.fit.rests_on import resting_on, supposed_of
from kubectl_dra.fit.result import FitAnswer, FitOptions, NodesNeeded
from kubectl_dra.fit.workload import WorkloadPods

Attempt = Callable[[int], FitAnswer]
"""Places the workloads with so many new nodes."""
_IN_VAIN: Final = 64
"""So many nodes are tried where twice as many bring no more pods."""
_EXTRAPOLATED: Final = 8
"""So often the next number is what the last ones promise; after that it is twice as many at least."""


class Searched(NamedTuple):
    """The smallest ``number`` of nodes that was found, and the greatest that was tried; ``ended``: each further node
    brought pods, but no more nodes were tried.
    """

    number: int
    most: int
    ended: bool


def fit_with_nodes(
    workloads: Sequence[WorkloadPods],
    snapshot: Snapshot,
    settings: Settings,
    options: FitOptions,
    progress: Progress,
    added: Sequence[Addition],
    notes: Sequence[Words],
    views: Sequence[Words] = (),
) -> FitAnswer:
    """Places the workloads on the cluster with new nodes; the smallest number of them, where nobody said how many.

    ``notes`` are what to say of the new nodes, ``views`` what autoscalers make of them.

    Raises:
        FlagValueError: of several sorts of nodes nobody said how many.
    """
    options = structs.replace(options, others_apart=True)
    searched = [addition for addition in added if addition.new.count is None and addition.countable]
    given = {each.new.text: each.new.count or len(each.nodes) or 1 for each in added if each not in searched}
    if len(searched) > 1:
        *_, last = searched
        raise FlagValueError(
            f"{FLAG}: say count=N for all nodes but one; the number of that one is looked for",
            last.new.text,
            [("For example one of the last", f"{last.new.text},count=1")],
        )

    def why_not(answer: FitAnswer, there: Snapshot) -> Words:
        """Why the new nodes take none of the pods; empty where they take some, or all asked for have one."""
        new = there.nodes.keys() - snapshot.nodes.keys()
        placed = (placed_pod for workload in answer.workloads for placed_pod in workload.placed_pods)
        if (
            (_fits(answer) and not options.most)
            or _open(answer)
            or any(placed_pod.node in new for placed_pod in placed)
        ):
            return ""
        alone = fit(workloads, there.with_only(new), settings, structs.replace(options, only_counts=True), progress)
        return _refusal(alone.first_diagnosis, answer.first_diagnosis, new)

    if not searched or options.most:
        given |= {each.new.text: 1 for each in searched}
        there = with_nodes(snapshot, added, settings.scheduler)
        answer = fit(workloads, there, settings, options, progress)
        answer = with_fixed_template(answer, there, settings, options, progress)
        why = why_not(answer, there)
        answer = resting_on(answer, added, there)
        return structs.replace(answer, given=given, notes=(*notes, *answer.notes), views=tuple(views), unhelpful=why)
    tried: dict[int, FitAnswer] = {}
    after_others: dict[int, FitAnswer] = {}

    def attempt(count: int, known: dict[int, FitAnswer] = tried) -> FitAnswer:
        if count not in known:
            progress(f"placing the pods with {count} more nodes")
            there = with_nodes(snapshot, added, settings.scheduler, count)
            counting = structs.replace(options, only_counts=True, others_first=known is after_others)
            known[count] = fit(workloads, there, settings, counting, progress)
        return known[count]

    found = _smallest(attempt)
    number = found.number
    there = with_nodes(snapshot, added, settings.scheduler, number)
    answer = fit(workloads, there, settings, options, progress)
    unhelpful: Words = ""
    if not number and not _fits(answer):
        # With one of them the answer is the same, and tells why it takes no pod.
        there = with_nodes(snapshot, added, settings.scheduler, 1)
        with_one = fit(workloads, there, settings, options, progress)
        unhelpful = why_not(with_one, there)
        answer = with_one if unhelpful else answer
    if not _fits(answer):
        answer = with_fixed_template(answer, there, settings, options, progress)
    fewer = [(count, _placed(fit_answer)) for count, fit_answer in tried.items() if count < number]
    pods = sum(workload.pods for workload in answer.workloads)
    idle = any(workload.begin.lost for fit_answer in (answer, *tried.values()) for workload in fit_answer.workloads)
    known = (searched[0].new.text, number, _placed(answer), pods, max(fewer, default=None), found.most)
    provided = supposed_of(answer.workloads, added, there, each="each" if len(added) == 1 else "")
    domains = tuple(label for label in unknown_labels(searched) if label.wanted is None) if number else ()
    needed = NodesNeeded(*known, idle, provided=provided, ended=found.ended, domains=domains)
    if answer.first and needed.enough:
        after = _smallest(lambda count: attempt(count, after_others), number)
        enough = _fits(after_others[after.number])
        needed = structs.replace(
            needed, others=answer.first, after=after.number if enough else None, most=max(needed.most, after.most)
        )
        answer = structs.replace(answer, first=())
    answer = resting_on(answer, added, there, searched=True)
    notes = (*notes, *answer.notes)
    return structs.replace(answer, given=given, needed=needed, notes=notes, views=tuple(views), unhelpful=unhelpful)


def _refusal(alone: Diagnosis | None, all_nodes: Diagnosis | None, new: Set[str]) -> Words:
    """Why new nodes refuse the first pod: what their devices lack, else what the scheduler says of them."""
    first = next(iter(alone.findings), None) if alone is not None else None
    barred = kept_off(all_nodes, new) if all_nodes is not None else ()
    if first is not None and first.kind.family in (Family.REQUEST, Family.DEVICES) and not barred:
        return first.summary
    groups = all_nodes.nodes if all_nodes is not None else ()
    return next((group.reason for group in groups if not new.isdisjoint(group.nodes)), "")


def _smallest(attempt: Attempt, start: int = 0) -> Searched:
    """The smallest number with which all fit; else the smallest of those tried with which most fit.

    More nodes are taken never to be worse: what is returned was tried, and so was one node less.
    """
    counts = [start]
    while not _fits(attempt(counts[-1])) and counts[-1] < MOST and not _open(attempt(counts[-1])):
        gained = _gained(counts, attempt)
        if not gained and counts[-1] >= _IN_VAIN:
            break
        counts.append(_following(counts, gained, attempt))
    goal = _placed(attempt(counts[-1]))
    low = max((count for count in counts if _placed(attempt(count)) < goal), default=start - 1)
    high = min(count for count in counts if _placed(attempt(count)) >= goal)
    middle = high - 1
    while high - low > 1:
        if _placed(attempt(middle)) >= goal:
            high = middle
        else:
            low = middle
        middle = (low + high) // 2
    return Searched(high, counts[-1], ended=not _fits(attempt(high)) and bool(_gained(counts, attempt)))


def _gained(counts: Sequence[int], attempt: Attempt) -> int:
    """How many more pods the last number of nodes has brought than half of it, or the next smaller one tried."""
    half = max((count for count in counts if count <= counts[-1] // 2), default=counts[0])
    return _near(attempt(counts[-1])) - _near(attempt(half)) if len(counts) > 1 else 0


def _following(counts: Sequence[int], gained: int, attempt: Attempt) -> int:
    """The number to try next: where each node has brought as many pods, the one that brings all; else twice as many."""
    last = counts[-1]
    doubled = last * 2 or 1
    before = counts[-2] if len(counts) > 1 else last
    more = _near(attempt(last)) - _near(attempt(before))
    if not gained or more <= 0:
        return min(doubled, MOST)
    lacking = sum(workload.pods for workload in attempt(last).workloads) - _near(attempt(last))
    promised = last + max(1, ceil(lacking * (last - before) / more))
    return min(promised if len(counts) <= _EXTRAPOLATED else max(promised, doubled), MOST)


def _near(answer: FitAnswer) -> int:
    """How many pods start, or would if the rest of their group had a node."""
    waiting = (workload.stop.placed for workload in answer.workloads if workload.stop is not None)
    return _placed(answer) + sum(waiting)


def _fits(answer: FitAnswer) -> bool:
    return all(workload.all_placed for workload in answer.workloads)


def _open(answer: FitAnswer) -> bool:
    return any(workload.unclear and not workload.may_fit for workload in answer.workloads)


def _placed(answer: FitAnswer) -> int:
    return sum(workload.starting for workload in answer.workloads)
