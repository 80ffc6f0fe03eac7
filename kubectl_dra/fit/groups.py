"""What is not modelled about groups of pods, so that it is undetermined whether they fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.api.behaviour import GROUP_OF_ONE_PRIORITY
from kubectl_dra.api.policy import PodGroup
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.fit.mold import NewPod
from kubectl_dra.fit.place import Placement, Unplaced
from kubectl_dra.scheduling.gang_scheduling import Gang, gang_of, group_priority


def unclear_groups(pods: Sequence[NewPod], refused: Sequence[Unplaced], placement: Placement) -> Iterator[Words]:
    """Why it is open whether the pods of a group fit.

    Args:
        pods: one of each sort.
        refused: those of the workload that do not fit.
        placement: what was placed.
    """
    state = placement.ground
    for new in pods:
        if not new.group[2]:
            continue
        gang = gang_of(new.pod, state)
        if isinstance(gang, Gang) and gang.nested:
            yield say("the group {group} is part of a group of groups, which is not modelled", group=gang.name)
        group: PodGroup | None = state.others("PodGroup").get((new.pod.metadata.namespace, new.pod.pod_group))
        together = group is not None and state.release in GROUP_OF_ONE_PRIORITY
        if group is not None and together and group_priority(group, state) is None:
            text = "the priority of group {group} is not known: class {name} was not seen"
            yield say(text, group=new.pod.pod_group, name=group.spec.priority_class_name)
    for one in refused:
        preemption = one.outcome.preemption if one.outcome is not None and one.new.group[2] else None
        if preemption is not None and preemption.best:
            best = preemption.best[0]
            text = (
                "the scheduler may end pods of lower priority for the group, such as {victims:some 2} on {node}: whom "
                "it ends for several pods at a time is not modelled"
            )
            yield say(text, victims=[victim.key for victim in best.victims], node=best.node)
            return
