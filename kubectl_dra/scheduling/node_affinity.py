"""NodeAffinity: ``spec.nodeSelector`` and required node affinity, the pod's own and what the profile adds for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubectl_dra.api.nodes import Node, NodeSelector, NodeSelectorTerm
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin, ScorePlugin, share_of_best
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection

_NAME: Final = "metadata.name"


class NodeDoesNotMatch(Reason, frozen=True):
    """The node's labels or name do not meet the pod's requirements.

    ``selector``: the entries of nodeSelector that do not hold. ``affinity``: the required node affinity, if
    it does not hold.
    """

    TEXT = "node(s) didn't match Pod's node affinity/selector"
    selector: tuple[tuple[str, str], ...] = ()
    affinity: NodeSelector | None = None


class ProfileDoesNotMatch(Reason, frozen=True):
    """The node does not meet what the scheduler's profile requires for all its pods (addedAffinity)."""

    TEXT = "node(s) didn't match scheduler-enforced node affinity"
    SAID = "the scheduler's profile requires {affinity} (addedAffinity)"
    affinity: NodeSelector


class TermsConflict(Reason, frozen=True):
    """Every term of the required node affinity names several nodes at once, so no node can match."""

    TEXT = "pod affinity terms conflict"
    SAID = "each term of the node affinity names several nodes at once"


class NodeAffinityFilter(Plugin):
    """Refuses nodes that nodeSelector or required node affinity rule out.

    If every term names nodes (matchFields), only those are examined.
    """

    name = PluginName.NODE_AFFINITY

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._selector = pod.spec.node_selector
        self._required = required_affinity(pod)
        self._added = state.profile.args.node_affinity.added_affinity.required
        if self._required is None:
            self.skipped = not self._selector and self._added is None
            return
        named = _named_nodes(self._required.terms)
        if named is not None and not named:
            self.rejection = Rejection(self.name, (TermsConflict(),))
        else:
            self.nodes = named

    def filter(self, node: NodeState) -> Rejection | None:
        added = self._added
        if added is not None and not added.admits(node.node):
            return Rejection(self.name, (ProfileDoesNotMatch(added),))
        labels = node.node.labels
        wrong = tuple((key, value) for key, value in self._selector.items() if labels.get(key) != value)
        required = self._required
        unmet = required is not None and not required.admits(node.node)
        if not wrong and not unmet:
            return None
        return Rejection(self.name, (NodeDoesNotMatch(wrong, required if unmet else None),))


def required_affinity(pod: Pod) -> NodeSelector | None:
    """The pod's required node affinity."""
    return pod.spec.affinity.node_affinity.required if pod.spec.affinity else None


def matches_node(pod: Pod, node: Node) -> bool:
    """Whether a node meets the pod's nodeSelector and required node affinity."""
    if any(node.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    required = required_affinity(pod)
    return required is None or required.admits(node)


def _named_nodes(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """The nodes that the terms name; None if some term names none, or there are no terms."""
    if not terms:
        return None
    names: set[str] = set()
    for term in terms:
        named: set[str] | None = None
        for field in term.fields:
            if field.key == _NAME and field.operator == "In":
                named = set(field.values) if named is None else named & set(field.values)
        if named is None:
            return None
        names |= named
    return frozenset(names)


# NodeAffinity: the weights of the preferred terms that hold on the node.


class NodeAffinityScore(ScorePlugin):
    """The plugin for one pod."""

    name = PluginName.NODE_AFFINITY

    def __init__(self, pod: Pod, state: ClusterState, nodes: Sequence[NodeState]) -> None:
        super().__init__(pod, state, nodes)
        own = pod.spec.affinity.node_affinity.preferred if pod.spec.affinity else ()
        self._preferred = (*state.profile.args.node_affinity.added_affinity.preferred, *own)
        self.skipped = not self._preferred

    def scores(self) -> Mapping[str, int]:
        return share_of_best(
            {
                node.name: sum(wish.weight for wish in self._preferred if wish.preference.holds(node.node))
                for node in self.nodes
            }
        )
