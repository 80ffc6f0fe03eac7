"""Terms of pod affinity and anti-affinity, matched like the scheduler does: namespaces and labels of other pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.behaviour import NAMESPACES_READ_ONCE
from kubectl_dra.api.labels import LabelSelector
from kubectl_dra.api.nodes import Affinity, Node, PodAffinityTerm
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState

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
    return [_resolved(entry, pod, state) for entry in _affinity(pod).pod_affinity.required]


def required_anti_affinity(pod: Pod, state: ClusterState) -> list[Term]:
    """The terms that the pod's node must not meet."""
    return [_resolved(entry, pod, state) for entry in _affinity(pod).pod_anti_affinity.required]


def preferred(pod: Pod, state: ClusterState) -> list[Term]:
    """The preferred terms with their weights; those of anti-affinity are negative."""
    affinity = _affinity(pod)
    return [
        *(replace(_resolved(entry.term, pod, state), weight=entry.weight) for entry in affinity.pod_affinity.preferred),
        *(
            replace(_resolved(entry.term, pod, state), weight=-entry.weight)
            for entry in affinity.pod_anti_affinity.preferred
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
    found = state.namespaces.get(pod.metadata.namespace)
    return found.labels if found is not None else {}


def _affinity(pod: Pod) -> Affinity:
    return pod.spec.affinity or _NO_AFFINITY


def _resolved(entry: PodAffinityTerm, pod: Pod, state: ClusterState) -> Term:
    """The term with its namespace selector resolved to the namespaces that it matches.

    Before 1.37 the scheduler also evaluates a resolved selector on no labels at all, so a selector that only
    excludes labels means every namespace.
    """
    named, chosen = entry.namespaces, entry.namespace_selector
    if chosen is None:
        return Term(entry.topology_key, entry.label_selector, frozenset(named or (pod.metadata.namespace,)))
    again = state.release not in NAMESPACES_READ_ONCE
    if chosen.empty or (again and chosen.matches({})):
        return Term(entry.topology_key, entry.label_selector, None)
    found = (name for name, meta in state.namespaces.items() if chosen.matches(meta.labels))
    return Term(entry.topology_key, entry.label_selector, frozenset((*named, *found)))
