"""InterPodAffinity: required pod affinity and anti-affinity, of the pod itself and of existing pods."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.behaviour import NAMESPACES_READ_ONCE
from kubectl_dra.api.labels import LabelSelector
from kubectl_dra.api.nodes import Affinity, Node, PodAffinityTerm
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import MAX, ClusterState, NodeState, Plugin, ScorePlugin
from kubectl_dra.scheduling.reasons import NotRead, PluginName, Reason, Rejection

# Terms of pod affinity and anti-affinity, matched like the scheduler does: namespaces and labels of other pods.

Pair = tuple[str, str]
"""A topology key and one of its values: one domain."""
_NO_AFFINITY: Final = Affinity()


class Term(Struct, frozen=True):
    """One affinity term of the pod to be scheduled: the pods it selects, and the node label whose domains
    count.

    ``namespaces`` None means every namespace. ``weight`` is 0 for a required term.
    """

    key: str
    selector: LabelSelector | None
    namespaces: frozenset[str] | None
    weight: int = 0

    def means(self, pod: Pod) -> bool:
        """Whether the term selects the pod."""
        meta = pod.metadata
        if self.selector is None or (self.namespaces is not None and meta.namespace not in self.namespaces):
            return False
        return self.selector.matches(meta.labels)

    def pair(self, node: Node) -> Pair | None:
        """The node's domain; None if it is in none."""
        return pair_of(self.key, node)


def required_affinity(pod: Pod, state: ClusterState) -> list[Term]:
    """The terms that the pod's node must meet."""
    return [_resolved(term, pod, state) for term in _affinity(pod).pod_affinity.required]


def required_anti_affinity(pod: Pod, state: ClusterState) -> list[Term]:
    """The terms that the pod's node must not meet."""
    return [_resolved(term, pod, state) for term in _affinity(pod).pod_anti_affinity.required]


def kept_apart_by(
    pod: Pod, reason: AntiAffinityBroken | ExistingAntiAffinityBroken, state: ClusterState
) -> Iterator[Pod]:
    """The pods because of which a domain is refused: those that the pod excludes there, or that exclude it."""
    terms = required_anti_affinity(pod, state)
    labels = namespace_labels(pod, state)
    for node in state.nodes.values():
        for other in node.pods if node.node.labels.get(reason.key) == reason.value else ():
            if isinstance(reason, AntiAffinityBroken):
                repelled = any(term.key == reason.key and term.means(other) for term in terms)
            else:
                own = (term for term in other.required_anti_affinity if term.topology_key == reason.key)
                repelled = any(is_about(term, other, pod, labels) for term in own)
            if repelled:
                yield other


def preferred(pod: Pod, state: ClusterState) -> list[Term]:
    """The preferred terms with their weights; those of anti-affinity are negative."""
    affinity = _affinity(pod)
    return [
        *(
            replace(_resolved(preference.term, pod, state), weight=preference.weight)
            for preference in affinity.pod_affinity.preferred
        ),
        *(
            replace(_resolved(preference.term, pod, state), weight=-preference.weight)
            for preference in affinity.pod_anti_affinity.preferred
        ),
    ]


def means_all(terms: Sequence[Term], pod: Pod) -> bool:
    """Whether there are terms and all of them select the pod."""
    return bool(terms) and all(term.means(pod) for term in terms)


def is_about(term: PodAffinityTerm, owner: Pod, pod: Pod, labels: Mapping[str, str]) -> bool:
    """Whether a term of an existing pod selects the pod, whose namespace has these labels."""
    selector, chosen = term.label_selector, term.namespace_selector
    namespace = pod.metadata.namespace
    if selector is None:
        return False
    if chosen is None:
        within = namespace in term.namespaces if term.namespaces else namespace == owner.metadata.namespace
    else:
        within = namespace in term.namespaces or chosen.matches(labels)
    return within and selector.matches(pod.metadata.labels)


def pair_of(key: str, node: Node) -> Pair | None:
    """The node's domain for a topology key; None if it is in none."""
    value = node.metadata.labels.get(key)
    return None if value is None else (key, value)


def pairs_of(terms: Iterable[Term], node: Node) -> list[Pair]:
    """The node's domains for the terms, without terms for which it is in none."""
    return [pair for term in terms if (pair := term.pair(node)) is not None]


def namespace_labels(pod: Pod, state: ClusterState) -> Mapping[str, str]:
    """The labels of the pod's namespace."""
    metadata = state.namespaces.get(pod.metadata.namespace)
    return metadata.labels if metadata is not None else {}


def _affinity(pod: Pod) -> Affinity:
    return pod.spec.affinity or _NO_AFFINITY


def _resolved(term: PodAffinityTerm, pod: Pod, state: ClusterState) -> Term:
    """The term with its namespace selector resolved to the namespaces that it matches.

    Before 1.37 the scheduler also evaluates a resolved selector on no labels at all, so a selector that only
    excludes labels means every namespace.
    """
    named, chosen = term.namespaces, term.namespace_selector
    if chosen is None:
        return Term(term.topology_key, term.label_selector, frozenset(named or (pod.metadata.namespace,)))
    again = state.release not in NAMESPACES_READ_ONCE
    if chosen.empty or (again and chosen.matches({})):
        return Term(term.topology_key, term.label_selector, None)
    matching = (name for name, meta in state.namespaces.items() if chosen.matches(meta.labels))
    return Term(term.topology_key, term.label_selector, frozenset((*named, *matching)))


class AffinityNotMet(Reason, frozen=True):
    """The node's domain has no pod that the pod requires; ``value`` None: the node is in no domain."""

    TEXT = "node(s) didn't match pod affinity rules"
    key: str
    value: str | None


class AntiAffinityBroken(Reason, frozen=True):
    """The node's domain has a pod that the pod must avoid."""

    TEXT = "node(s) didn't match pod anti-affinity rules"
    key: str
    value: str


class ExistingAntiAffinityBroken(Reason, frozen=True):
    """A pod in the node's domain must avoid this pod."""

    TEXT = "node(s) didn't satisfy existing pods anti-affinity rules"
    key: str
    value: str


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
        """Difference in counts if pods are assumed to be on the node or gone."""
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
            for term in other.required_anti_affinity:
                if is_about(term, other, self.pod, self._labels):
                    pair = pair_of(term.topology_key, node)
                    if pair is not None:
                        yield pair


def _count(into: Counter[Pair], pairs: Iterable[Pair], weight: int = 1) -> None:
    for pair in pairs:
        into[pair] += weight


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
            yield from other.required_anti_affinity


def _by_namespace_labels(term: PodAffinityTerm) -> bool:
    return term.namespace_selector is not None and not term.namespace_selector.empty


# InterPodAffinity: preferred terms of the pod and of existing pods, and required affinity of existing pods.


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
            yield from (
                preference.term for preference in (*own.pod_affinity.preferred, *own.pod_anti_affinity.preferred)
            )
        for node in self.state.nodes_with_affinity:
            for other in node.pods_with_affinity:
                affinity = other.spec.affinity
                if affinity is not None:
                    weighted = (*affinity.pod_affinity.preferred, *affinity.pod_anti_affinity.preferred)
                    yield from (*affinity.pod_affinity.required, *(preference.term for preference in weighted))

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
