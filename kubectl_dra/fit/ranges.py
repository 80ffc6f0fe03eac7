"""From how many pods to how many have room, and what decides about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kubectl_dra.api.pods import Pod
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.phrase import Joined, Words, say
from kubectl_dra.fit.place import Placement
from kubectl_dra.fit.plan import FitPlan
from kubectl_dra.fit.result import WorkloadFit

_OF_ROOM: Final = (Verdict.SCHEDULABLE, Verdict.PARTLY, Verdict.UNSCHEDULABLE)


def counted(plans: Sequence[FitPlan], placement: Placement) -> list[int]:
    """Number of pods of each workload that have a node: those that run, and those that were placed."""
    placed = Counter(placed_pod.new.workload for placed_pod in placement.placed_pods)
    return [plan.running + placed[plan.number] for plan in plans]


def with_range(
    workload: WorkloadFit,
    plan: FitPlan,
    placement: Placement,
    chances: Collection[int],
    after_others: int | None,
    others: Sequence[Pod],
) -> WorkloadFit:
    """The result with the range; where all may fit and may not, it is undetermined.

    Args:
        workload: what comes of the workload by the choices that were made.
        plan: what is placed of it.
        placement: what came of all workloads.
        chances: the numbers of pods that other choices lead to, and its own.
        after_others: that with the ``others``, pods that wait already, placed first; None where there are none.
        others: these pods.
    """
    first = after_others is not None and after_others < min(chances)
    numbers = {*chances, after_others} if first and after_others is not None else chances
    depends = [*(_choices(plan, placement) if len(set(chances)) > 1 else ()), *([_who_waits(others)] if first else ())]
    fewest, greatest = min(numbers), max(numbers)
    workload = replace(workload, fewest=fewest, greatest=greatest, depends=Joined(tuple(depends), " and "))
    if workload.verdict not in _OF_ROOM or workload.refused or not fewest < greatest == workload.pods:
        return workload
    text = "{fewest} to {greatest} of {pods:pod} have room, depending on {depends}"
    why = say(text, fewest=fewest, greatest=greatest, pods=workload.pods, depends=workload.depends)
    return replace(workload, verdict=Verdict.UNDETERMINED, unclear=(why,))


def _choices(plan: FitPlan, placement: Placement) -> Iterator[Words]:
    """What is open that the scheduler and the controller decide."""
    if placement.nodes_open:
        yield "which nodes the scheduler takes"
    if len(plan.factories) > 1:
        yield "which of the pods come first"
    if placement.ends_open:
        yield "which of the old pods end first"


def _who_waits(others: Sequence[Pod]) -> Words:
    text = "whether {others:some 2}, which {count:waits|wait} already, {count:is|are} placed first"
    return say(text, others=[f"pod {pod.key}" for pod in others], count=len(others))
