"""What of groups of pods is not modelled, so that nobody can say whether they fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kubectl_dra.api.policy import PodGroup
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.fit.mold import NewPod
from kubectl_dra.fit.place import Placement, Unplaced
from kubectl_dra.scheduling.gang_scheduling import Gang, gang_of

_OF_ONE_PRIORITY: Final = 37


def unclear_groups(pods: Sequence[NewPod], refused: Sequence[Unplaced], placement: Placement) -> Iterator[Words]:
    """Why it is open whether the pods of a group fit.

    Args:
        pods: one of each sort.
        refused: those of the workload that do not fit.
        placement: what was placed.
    """
    state = placement.ground.state
    for new in pods:
        if not new.group[2]:
            continue
        gang = gang_of(new.pod, state)
        if isinstance(gang, Gang) and gang.nested:
            yield say("the group {group} is part of a group of groups, which is not modelled", group=gang.name)
        group: PodGroup | None = state.others("PodGroup").get((new.pod.metadata.namespace, new.pod.pod_group))
        if group is not None and state.release.at_least(_OF_ONE_PRIORITY) and not _of_its_priority(new, group):
            text = "the priority of pod {pod} is not that of its group {group}, which the scheduler refuses"
            yield say(text, pod=new.pod.key, group=new.pod.pod_group)
    for one in refused:
        preemption = one.outcome.preemption if one.outcome is not None and one.new.group[2] else None
        if preemption is not None and preemption.best:
            yield "the scheduler may end pods of lower priority for the group, which is not tried"
            return


def _of_its_priority(new: NewPod, group: PodGroup) -> bool:
    if group.spec.priority is not None:
        return group.spec.priority == new.pod.priority
    named = group.spec.priority_class_name
    return named == new.pod.spec.priority_class_name if named else not new.pod.priority
