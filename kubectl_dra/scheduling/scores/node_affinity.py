"""NodeAffinity: the weights of the preferred terms that hold on the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubectl_dra.api.labels import InvalidNodeSelector
from kubectl_dra.api.nodes import Node, term_matches
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState, NodeState, ScorePlugin
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.scores.normalize import share_of_best


class NodeAffinityScore(ScorePlugin):
    """The plugin for one pod."""

    name = PluginName.NODE_AFFINITY

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        own = pod.spec.affinity.node_affinity.preferred if pod.spec.affinity else ()
        self._preferred = (*state.profile.args.node_affinity.added_affinity.preferred, *own)
        self.skipped = not self._preferred

    def scores(self) -> Mapping[str, int]:
        return share_of_best({node.name: self._score(node.node) for node in self.nodes})

    def _score(self, node: Node) -> int:
        score = 0
        for entry in self._preferred:
            try:
                score += entry.weight if term_matches(entry.preference, node) else 0
            except InvalidNodeSelector:
                continue
        return score
