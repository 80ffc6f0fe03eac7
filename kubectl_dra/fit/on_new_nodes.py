"""What the places of pods suppose of nodes that are not there yet."""

from __future__ import annotations

from collections.abc import Sequence, Set

from msgspec import structs

from kubectl_dra.api.claims import devices_of
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.on_new_nodes import conditions
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.question.with_node_flag import Addition
from kubectl_dra.fit.result import FitAnswer, WorkloadFit


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
