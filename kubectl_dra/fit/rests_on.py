"""What an answer rests on: choices that are open, other pods that wait, and nodes that are not there yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence, Set
from typing import Final

from msgspec import Struct, structs
from msgspec.structs import replace

from kubectl_dra.allocation.budgets import RIVALS_STEPS, RIVALS_TRIED, RIVALS_WORK, Budget
from kubectl_dra.api.claims import devices_of
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.on_new_nodes import conditions
from kubectl_dra.explain.pending_alike import pods_waiting
from kubectl_dra.explain.phrase import Joined, Words, say
from kubectl_dra.explain.question.with_node_flag import Addition
from kubectl_dra.explain.rivals import Queue, Run
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.place import Placement
from kubectl_dra.fit.plan import FitPlan
from kubectl_dra.fit.result import FitAnswer, WorkloadFit
from kubectl_dra.scheduling.binding import Chance
from kubectl_dra.scheduling.framework import ClusterState

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


# Other pods that wait for devices, and that the scheduler may place before those of a workload.


def others_waiting(own: Set[str], snapshot: Snapshot, settings: Settings) -> int:
    """The number of pods that wait for devices, but the workloads' ``own``."""
    return sum(pod.is_queued and pod.key not in own for pod in pods_waiting(snapshot, settings))


class PodsWaiting(Struct, frozen=True):
    """The pods that wait, but those of the workloads and those that come after them by their priority."""

    queue: Queue
    pods: tuple[Pod, ...]
    settings: Settings

    @classmethod
    def beside(cls, own: Set[str], priority: int, snapshot: Snapshot, settings: Settings) -> PodsWaiting:
        """Those beside the workloads' ``own`` pods, as keys, of which the least important has this priority."""
        queue = Queue(snapshot, settings)
        pods = tuple(pod for pod in queue.pods if pod.key not in own and pod.priority >= priority)
        return cls(queue, pods, settings)

    def placed_in(self, state: ClusterState) -> tuple[Sequence[Pod], ClusterState]:
        """Those that get a node in a cluster, as far as they can be tried, and the cluster with them."""
        if not self.pods:
            return (), state
        there = self.settings.scheduler.sees(state.cluster, *self.pods)
        run = Run(self.queue, self.pods, None, Chance.of_try(0))
        size = len(there.nodes) + len(there.snapshot.slices)
        run.place(there, Budget(RIVALS_STEPS), min(RIVALS_TRIED, RIVALS_WORK // max(1, size)))
        return [pod for pod in self.pods if pod.key in run.served], state.moved(run.state.cluster)


# What the places of pods suppose of nodes that are not there yet.


def resting_on(answer: FitAnswer, added: Sequence[Addition], there: Snapshot, *, searched: bool = False) -> FitAnswer:
    """The answer with what it supposes of new nodes; that all fit is open where a label that is asked for is.

    How many were ``searched`` is said with what it supposes, so only what leaves it open is said again.
    """
    workloads = []
    for workload in answer.workloads:
        taking = {placed_pod.node for placed_pod in workload.placed_pods}
        doubtful = [each for each in added if each.around.unknown and any(map(each.has, taking & there.supposed))]
        provided = "" if searched and not doubtful else supposed_of(answer.workloads, added, there, taking)
        open_ = doubtful and workload.verdict is Verdict.SCHEDULABLE
        verdict = Verdict.UNDETERMINED if open_ else workload.verdict
        workloads.append(structs.replace(workload, provided=provided, verdict=verdict))
    return structs.replace(answer, workloads=tuple(workloads))


def supposed_of(
    workloads: Sequence[WorkloadFit],
    added: Sequence[Addition],
    there: Snapshot,
    nodes: Set[str] | None = None,
    each: str = "",
) -> Words:
    """What is supposed of the new nodes that take pods, of all or of some ``nodes``."""
    taken: dict[str, list[Pod]] = {}
    drivers: set[str] = set()
    for placed_pod in (each for workload in workloads for each in workload.placed_pods):
        if placed_pod.node in there.supposed and (nodes is None or placed_pod.node in nodes):
            taken.setdefault(placed_pod.node, []).append(placed_pod.new.pod)
            drivers.update(device.driver for device in devices_of(placed_pod.claims))
    part = [addition for addition in added if any(map(addition.has, taken))]
    return conditions(taken, sorted(drivers), part, there, each)
