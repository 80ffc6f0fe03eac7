"""InterPodAffinity: required pod affinity and anti-affinity, of the pod itself and of existing pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from kubectl_dra.api.nodes import Node, PodAffinityTerm
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.affinity_terms import (
    Pair,
    is_about,
    means_all,
    namespace_labels,
    pair_of,
    pairs_of,
    required_affinity,
    required_anti_affinity,
)
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Reason, Rejection


class AffinityNotMet(Reason, frozen=True):
    """The node's domain has no pod that the pod requires; ``value`` None: the node is in no domain."""

    key: str
    value: str | None

    @property
    def words(self) -> str:
        return "node(s) didn't match pod affinity rules"


class AntiAffinityBroken(Reason, frozen=True):
    """The node's domain has a pod that the pod must avoid."""

    key: str
    value: str

    @property
    def words(self) -> str:
        return "node(s) didn't match pod anti-affinity rules"


class ExistingAntiAffinityBroken(Reason, frozen=True):
    """A pod in the node's domain must avoid this pod."""

    key: str
    value: str

    @property
    def words(self) -> str:
        return "node(s) didn't satisfy existing pods anti-affinity rules"


class InterPodAffinity(Plugin):
    """The plugin for one pod. Pods are counted per domain once; each node is then judged by its labels alone."""

    name = PluginName.INTER_POD_AFFINITY

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._affinity = required_affinity(pod, state)
        self._anti_affinity = required_anti_affinity(pod, state)
        self._labels = namespace_labels(pod, state)
        if state.unknown("Namespace") and (key := _key_by_namespace_labels(pod, state)):
            # Which pods the term is about, or whether it is about this one, depends on labels that nobody read.
            self.rejection = Rejection(self.name, (NotRead("Namespace", AntiAffinityBroken(key, "")),))
            return
        self._near: Counter[Pair] = Counter()
        self._far: Counter[Pair] = Counter()
        self._refusing: Counter[Pair] = Counter()
        for node in state.nodes_with_required_anti_affinity:
            _count(self._refusing, self._refused_by(node.pods_with_required_anti_affinity, node.node))
        if self._affinity or self._anti_affinity:
            for node in state.nodes.values():
                _count(self._near, self._wanted(node.pods, node.node) if self._affinity else ())
                _count(self._far, self._unwanted(node.pods, node.node))
        self.skipped = not self._refusing and not self._affinity and not self._anti_affinity

    def filter(self, node: NodeState) -> Rejection | None:
        near = self._change(node, self._wanted)
        unmet = self._unmet(node.node, near)
        if unmet is not None:
            return Rejection(self.name, (unmet,))
        far = self._change(node, self._unwanted)
        for term in self._anti_affinity:
            pair = term.pair(node.node)
            if pair is not None and self._far[pair] + far[pair] > 0:
                return Rejection(self.name, (AntiAffinityBroken(*pair),), resolvable=True)
        refusing = self._change(node, self._refused_by)
        if self._refusing or refusing:
            for pair in node.node.labels.items():
                if self._refusing[pair] + refusing[pair] > 0:
                    return Rejection(self.name, (ExistingAntiAffinityBroken(*pair),), resolvable=True)
        return None

    def _unmet(self, node: Node, change: Counter[Pair]) -> AffinityNotMet | None:
        """The first affinity term that does not hold.

        If no existing pod matches the terms and the pod itself does, it may be the first.
        """
        pairs = [(term, term.pair(node)) for term in self._affinity]
        nowhere = next((term for term, pair in pairs if pair is None), None)
        if nowhere is not None:
            return AffinityNotMet(nowhere.key, None)
        near = self._near
        alone = next((pair for _, pair in pairs if pair is not None and near[pair] + change[pair] <= 0), None)
        if alone is None:
            return None
        anywhere = any(near[pair] + change[pair] for pair in (*change, *near))
        return None if not anywhere and means_all(self._affinity, self.pod) else AffinityNotMet(*alone)

    def _change(self, node: NodeState, pairs: Callable[[Iterable[Pod], Node], Iterator[Pair]]) -> Counter[Pair]:
        """How counts differ if pods are assumed to be on the node or gone."""
        out: Counter[Pair] = Counter()
        if node.added or node.removed:
            _count(out, pairs(node.added, node.node))
            _count(out, pairs(node.removed, node.node), -1)
        return out

    def _wanted(self, pods: Iterable[Pod], node: Node) -> Iterator[Pair]:
        """The domains of pods that all affinity terms select."""
        for other in pods:
            if means_all(self._affinity, other):
                yield from pairs_of(self._affinity, node)

    def _unwanted(self, pods: Iterable[Pod], node: Node) -> Iterator[Pair]:
        """The domains of pods that an anti-affinity term selects, per term."""
        for term in self._anti_affinity:
            for other in pods:
                if term.means(other) and (pair := term.pair(node)) is not None:
                    yield pair

    def _refused_by(self, pods: Iterable[Pod], node: Node) -> Iterator[Pair]:
        """The domains of pods whose anti-affinity selects this pod, per term."""
        for other in pods:
            if other.spec.affinity is not None:
                for term in other.spec.affinity.pod_anti_affinity.required:
                    if is_about(term, other, self.pod, self._labels):
                        pair = pair_of(term.topology_key, node)
                        if pair is not None:
                            yield pair


def _count(into: Counter[Pair], pairs: Iterable[Pair], each: int = 1) -> None:
    for pair in pairs:
        into[pair] += each


def _key_by_namespace_labels(pod: Pod, state: ClusterState) -> str | None:
    """The topology key of a required term that selects namespaces by labels and may select the pod."""
    affinity = pod.spec.affinity
    if affinity is not None:
        for term in (*affinity.pod_affinity.required, *affinity.pod_anti_affinity.required):
            if _by_namespace_labels(term):
                return term.topology_key
    if pod.metadata.namespace in state.namespaces:
        return None
    for term in _existing_anti_affinity(state):
        selector = term.label_selector
        if _by_namespace_labels(term) and selector is not None and selector.matches(pod.metadata.labels):
            return term.topology_key
    return None


def _existing_anti_affinity(state: ClusterState) -> Iterator[PodAffinityTerm]:
    for node in state.nodes_with_required_anti_affinity:
        for other in node.pods_with_required_anti_affinity:
            if other.spec.affinity is not None:
                yield from other.spec.affinity.pod_anti_affinity.required


def _by_namespace_labels(term: PodAffinityTerm) -> bool:
    return term.namespace_selector is not None and not term.namespace_selector.empty
