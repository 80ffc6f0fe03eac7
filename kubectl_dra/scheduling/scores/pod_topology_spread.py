"""PodTopologySpread: constraints with ScheduleAnyway, or the scheduler's own for pods without constraints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState, NodeState, ScorePlugin
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.scores.normalize import MAX
from kubectl_dra.scheduling.spread_constraints import (
    HOSTNAME,
    comparing,
    constraints,
    has_keys,
    matching_pods,
    unread_selecting,
)


class PodTopologySpreadScore(ScorePlugin):
    """The plugin for one pod. Nodes that lack a label of the pod's own constraints get 0."""

    name = PluginName.POD_TOPOLOGY_SPREAD

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        self._constraints = constraints(pod, "ScheduleAnyway", state)
        self.skipped = not self._constraints
        self.inexact = unread_selecting(pod, state)
        self._all_keys = bool(pod.spec.topology_spread_constraints) or not state.profile.args.spread.system
        if self.skipped:
            return
        self._scored = [node for node in nodes if self._counts(node)]
        # A node without the label is in the domain of the empty value, as the scheduler counts it.
        self._domains: list[dict[str, int]] = [
            {} if entry.key == HOSTNAME else {node.node.labels.get(entry.key, ""): 0 for node in self._scored}
            for entry in self._constraints
        ]
        self._count_pods()

    def scores(self) -> Mapping[str, int]:
        sizes = [
            len(self._scored) if entry.key == HOSTNAME else len(domains)
            for entry, domains in zip(self._constraints, self._domains, strict=True)
        ]
        weights = [math.log(size + 2) for size in sizes]
        pods = {node.name: self._score(node, weights) for node in self._scored}
        least, most = min(pods.values(), default=0), max(pods.values(), default=0)
        out = dict.fromkeys((node.name for node in self.nodes), 0)
        for name, score in pods.items():
            out[name] = MAX * (most + least - score) // most if most else MAX
        return out

    def _counts(self, node: NodeState) -> bool:
        return not self._all_keys or has_keys(node.node.labels, self._constraints)

    def _count_pods(self) -> None:
        compares = comparing(self.state)
        for node in self.state.nodes.values():
            if not node.pods or not self._counts(node):
                continue
            for entry, domains in zip(self._constraints, self._domains, strict=True):
                value = node.node.labels.get(entry.key, "")
                if value in domains and entry.counts(self.pod, node.node, comparing=compares):
                    domains[value] += matching_pods(node.pods, entry.selector, self.pod.metadata.namespace)

    def _score(self, node: NodeState, weights: Sequence[float]) -> int:
        score = 0.0
        for entry, domains, weight in zip(self._constraints, self._domains, weights, strict=True):
            value = node.node.labels.get(entry.key)
            if value is None:
                continue
            if entry.key == HOSTNAME:
                count = matching_pods(node.pods, entry.selector, self.pod.metadata.namespace)
            else:
                count = domains[value]
            score += count * weight + (entry.max_skew - 1)
        # Go rounds halves up; Python would round them to even.
        return math.floor(score + 0.5)
