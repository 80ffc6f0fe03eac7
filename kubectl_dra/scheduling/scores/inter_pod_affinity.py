"""InterPodAffinity: preferred terms of the pod and of existing pods, and required affinity of existing pods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kubectl_dra.api.nodes import PodAffinityTerm
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.affinity_terms import Pair, is_about, namespace_labels, pair_of, preferred
from kubectl_dra.scheduling.framework import ClusterState, NodeState, ScorePlugin
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.scores.normalize import MAX


class InterPodAffinityScore(ScorePlugin):
    """The plugin for one pod."""

    name = PluginName.INTER_POD_AFFINITY

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        self._preferred = preferred(pod, state)
        self._labels = namespace_labels(pod, state)
        self._weights: dict[Pair, int] = defaultdict(int)
        args = state.profile.args.inter_pod_affinity
        self._required_weight = args.hard_pod_affinity_weight
        if args.ignore_preferred_terms_of_existing_pods and not self._preferred:
            self.skipped = True
            return
        for node in state.nodes.values() if self._preferred else state.nodes_with_affinity:
            for other in node.pods if self._preferred else node.pods_with_affinity:
                self._add(other, node)
        self.skipped = not self._weights
        if state.unknown("Namespace") and any(map(_by_namespace_labels, self._terms())):
            self.inexact = "Namespace"

    def _terms(self) -> Iterator[PodAffinityTerm]:
        """The terms that may count: the pod's preferred ones, and all of existing pods."""
        own = self.pod.spec.affinity
        if own is not None:
            yield from (entry.term for entry in (*own.pod_affinity.preferred, *own.pod_anti_affinity.preferred))
        for node in self.state.nodes_with_affinity:
            for other in node.pods_with_affinity:
                affinity = other.spec.affinity
                if affinity is not None:
                    weighted = (*affinity.pod_affinity.preferred, *affinity.pod_anti_affinity.preferred)
                    yield from (*affinity.pod_affinity.required, *(entry.term for entry in weighted))

    def scores(self) -> Mapping[str, int]:
        sums = {node.name: sum(self._weights.get(pair, 0) for pair in node.node.labels.items()) for node in self.nodes}
        least, most = min(sums.values(), default=0), max(sums.values(), default=0)
        if most == least:
            return dict.fromkeys(sums, 0)
        return {name: int(MAX * ((score - least) / (most - least))) for name, score in sums.items()}

    def _add(self, other: Pod, node: NodeState) -> None:
        for own in self._preferred:
            if own.means(other):
                self._weigh(own.key, node, own.weight)
        affinity = other.spec.affinity
        if affinity is None:
            return
        for term in affinity.pod_affinity.required if self._required_weight else ():
            self._weigh_theirs(term, other, node, self._required_weight)
        for near in affinity.pod_affinity.preferred:
            self._weigh_theirs(near.term, other, node, near.weight)
        for far in affinity.pod_anti_affinity.preferred:
            self._weigh_theirs(far.term, other, node, -far.weight)

    def _weigh_theirs(self, term: PodAffinityTerm, other: Pod, node: NodeState, weight: int) -> None:
        if is_about(term, other, self.pod, self._labels):
            self._weigh(term.topology_key, node, weight)

    def _weigh(self, key: str, node: NodeState, weight: int) -> None:
        pair = pair_of(key, node.node)
        if pair is not None:
            self._weights[pair] += weight


def _by_namespace_labels(term: PodAffinityTerm) -> bool:
    return term.namespace_selector is not None and not term.namespace_selector.empty
