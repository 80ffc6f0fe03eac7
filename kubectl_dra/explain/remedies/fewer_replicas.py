"""Fewer replicas of a StatefulSet, whose pods end in a known order: the one with the highest number first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubectl_dra.api.pods import Owner, Pod
from kubectl_dra.explain.phrase import Phrase, say
from kubectl_dra.explain.remedies.ending_pods import EndPods
from kubectl_dra.text import whole_number

STATEFUL: Final = "StatefulSet"


class FewerReplicas(EndPods, frozen=True):
    """So many replicas of a StatefulSet that these pods end and nothing makes them again."""

    owner: Owner
    replicas: int

    @property
    def what(self) -> Phrase:
        text = "lower the replicas of {owner} to {replicas}, which ends {pods}: the highest number goes first"
        return say(text, owner=str(self.owner), replicas=self.replicas, pods=self.pods)


def by_number(pods: Sequence[Pod]) -> Sequence[Pod]:
    """The pods of a StatefulSet by their numbers; none where one is missing, so that no count leaves known pods."""
    numbered = {whole_number(pod.metadata.name.rpartition("-")[2]): pod for pod in pods}
    return [numbered[number] for number in range(len(pods))] if numbered.keys() == {*range(len(pods))} else ()


def fewer_replicas(owner: Owner, pods: Sequence[Pod], keep: Pod) -> Sequence[FewerReplicas]:
    """Fewer and fewer replicas of a StatefulSet with these pods, as long as they leave one of them."""
    ordered = by_number(pods) if owner.kind == STATEFUL else ()
    first = next((number for number, pod in enumerate(ordered) if pod.key == keep.key), len(ordered))
    return [_of(owner, replicas, ordered[replicas:]) for replicas in range(len(ordered) - 1, first, -1)]


def _of(owner: Owner, replicas: int, ended: Sequence[Pod]) -> FewerReplicas:
    nodes = tuple(dict.fromkeys(pod.node_name for pod in ended if pod.node_name))
    return FewerReplicas(ended[0].node_name, tuple(pod.key for pod in ended), tuple(ended), nodes, "", owner, replicas)
