"""Ways to end pods without their owner replacing them: fewer replicas, or a suspended Job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kubectl_dra.api.pods import Owner, Pod
from kubectl_dra.explain.phrase import Phrase, say
from kubectl_dra.neighbours.decider import is_queued_by_kueue
from kubectl_dra.text import whole_number

STATEFUL: Final = "StatefulSet"
SUSPENDED: Final = ("Job", "JobSet")
_SCALED: Final = ("Deployment", "ReplicaSet", STATEFUL, "ReplicationController", "Rollout")


class FewerReplicas(Struct, frozen=True):
    """So many ``replicas`` of an owner that the pods ``ended`` end; 0 of a Job or JobSet: it is suspended.

    ``stays``: the owner ends none of them by itself, because it waits for a pod that does not run. ``first``: its pods
    are alike to it, and the one to end has to be told.
    """

    owner: Owner
    replicas: int
    ended: tuple[Pod, ...]
    stays: bool = False
    first: bool = False

    @property
    def what(self) -> Phrase:
        """The change in words."""
        text = "lower the replicas of {owner} to {replicas}, which ends {pods}"
        if self.owner.kind in SUSPENDED:
            text = "suspend {owner}, which ends {pods}"
        elif self.owner.kind == STATEFUL and self.replicas:
            text += " (the highest number goes first)"
        keys = [pod.key for pod in self.ended]
        pods = say("pod {keys}" if len(keys) == 1 else "pods {keys:some 3}", keys=keys)
        return say(text, owner=str(self.owner), replicas=self.replicas, pods=pods)


def by_number(pods: Sequence[Pod]) -> Sequence[Pod]:
    """The pods of a StatefulSet by their numbers; none where one is missing, so that no count leaves known pods."""
    numbered = {whole_number(pod.metadata.name.rpartition("-")[2]): pod for pod in pods}
    return [numbered[number] for number in range(len(pods))] if numbered.keys() == {*range(len(pods))} else ()


def fewer_replicas(owner: Owner, pods: Sequence[Pod], alike: Sequence[Pod]) -> FewerReplicas | None:
    """The most replicas without these pods, of the owner's pods ``alike``; None where no number of them does that, or
    it is not known which pods end: amid a rollout, whose ReplicaSets share the number.
    """
    # Who is being deleted counts only for a StatefulSet, which makes it anew.
    every = tuple(pod for pod in alike if owner.kind == STATEFUL or not pod.metadata.deletion_timestamp)
    keys = {pod.key for pod in pods if owner.kind == STATEFUL or not pod.metadata.deletion_timestamp}
    if not keys or not keys <= {pod.key for pod in every}:
        return None
    if owner.kind in SUSPENDED:
        # Kueue resumes what others suspend.
        return None if any(map(is_queued_by_kueue, every)) else FewerReplicas(owner, 0, every)
    if owner.kind not in _SCALED or len({pod.metadata.controller() for pod in every}) > 1:
        return None
    runs = all(pod.phase == "Running" for pod in every)
    if owner.kind == STATEFUL:
        ordered = by_number(every)
        left = next((number for number, pod in enumerate(ordered) if pod.key in keys), 0)
        return FewerReplicas(owner, left, tuple(ordered[left:]) or every, stays=bool(left) and not runs)
    # Pods that do not run go first, whatever their cost.
    if len(keys) == 1 < len(every) and runs:
        ended = tuple(pod for pod in every if pod.key in keys)
        return FewerReplicas(owner, len(every) - 1, ended, first=True)
    return FewerReplicas(owner, 0, every)


def fewer_for(owner: Owner, pods: Sequence[Pod], keep: Pod) -> Sequence[FewerReplicas]:
    """Fewer and fewer replicas of a StatefulSet with these pods, as long as they leave one of them."""
    ordered = by_number(pods) if owner.kind == STATEFUL else ()
    first = next((number for number, pod in enumerate(ordered) if pod.key == keep.key), len(ordered))
    numbers = range(len(ordered) - 1, first, -1)
    return [FewerReplicas(owner, number, tuple(ordered[number:]), stays=True) for number in numbers]
