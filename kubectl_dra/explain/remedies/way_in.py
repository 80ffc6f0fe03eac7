"""What would let a pod onto a node that rejects it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kubectl_dra.api.nodes import NodeTaint
from kubectl_dra.explain.diagnosis import Remedy
from kubectl_dra.explain.phrase import Phrase, Words, say
from kubectl_dra.explain.remedies.prove import Change, Proof, World
from kubectl_dra.explain.scene.node_eligibility import AffinityDiffers, LabelDiffers, NodeCordoned, Untolerated
from kubectl_dra.explain.scene.node_resources import PodLimitReached, ResourceShort

_NOT_TEXT = frozenset(("true", "false", "yes", "no", "on", "off", "y", "n", "null"))


class LetIn(Change, frozen=True):
    """Nodes that reject the pod for one reason take it."""

    TEXT = "{what}"
    ASIDE = frozenset(("nodes",))
    reason: Words
    nodes: tuple[str, ...]

    @property
    def about(self) -> Hashable:
        return "nodes", self.reason

    @property
    def cost(self) -> int:
        return 2

    @property
    def what(self) -> Phrase:
        """What has to be done, without a full stop."""
        reason = self.reason
        text = "let the pod run on {nodes:some} ({reason})"
        if isinstance(reason, Untolerated):
            text = "let the pod tolerate the node taint {taint}"
            if reason.is_condition:
                text = "get {nodes:some} ready again ({taint})"
            return say(text, nodes=self.nodes, taint=reason.taint)
        if isinstance(reason, NodeCordoned):
            text = "uncordon {nodes:some}"
        elif isinstance(reason, ResourceShort | PodLimitReached):
            text = "make room on {nodes:some} ({reason})"
        return say(text, nodes=self.nodes, reason=reason)

    def made_in(self, world: World) -> World:
        return world.allowing(self.nodes)


def can_end(reason: Words) -> bool:
    """Whether a change to the pod or the node alone ends it: not where the pod asks for more than the node has in
    all, nor where other pods or volumes decide.
    """
    if isinstance(reason, ResourceShort):
        return reason.passes
    return isinstance(reason, AffinityDiffers | LabelDiffers | NodeCordoned | PodLimitReached | Untolerated)


def remedy(reason: Words, nodes: Sequence[str], proof: Proof | None) -> Remedy | None:
    """What ends the reason of these nodes, proved or not; None where that is not known to help."""
    ends = can_end(reason)
    if not nodes or (proof is None and ends) or not (ends or isinstance(reason, ResourceShort)):
        return None
    change = LetIn(reason, tuple(nodes))
    words = say("{what:capital}.", what=change.what)
    if isinstance(reason, Untolerated) and not reason.is_condition:
        words = say("Let the pod tolerate it: spec.tolerations: {toleration}", toleration=toleration_for(reason.taint))
    elif isinstance(reason, NodeCordoned) and len(nodes) == 1:
        words = say("When its maintenance is over: kubectl uncordon {node}", node=nodes[0])
    elif isinstance(reason, ResourceShort) and not ends:
        words = say("Lower what the pod requests of {name}, or add nodes that have it.", name=reason.name)
    return Remedy(words, proof, offers=(change,))


def toleration_for(taint: NodeTaint) -> str:
    """The pod toleration for a node taint, as YAML flow text."""
    # What YAML would read as a boolean, a number or nothing is text all the same.
    plain = taint.value[:1].isalpha() and taint.value.lower() not in _NOT_TEXT
    text = taint.value if plain else f'"{taint.value}"'
    operator = f"operator: Equal, value: {text}" if taint.value else "operator: Exists"
    return f"[{{key: {taint.key}, {operator}, effect: {taint.effect}}}]"
