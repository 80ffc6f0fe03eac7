"""What would let a pod onto a node that rejects it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from kubectl_dra.api.nodes import Node, NodeTaint, Toleration
from kubectl_dra.api.pods import Pod
from kubectl_dra.command import CommandEffect, CommandLine, kubectl
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.diagnosis import Remedy
from kubectl_dra.explain.node_reasons import (
    AffinityDiffers,
    LabelDiffers,
    NodeCordoned,
    PodLimitReached,
    ResourceShort,
    Untolerated,
)
from kubectl_dra.explain.phrase import Joined, Phrase, Words, say
from kubectl_dra.explain.remedies.claim_edits import on_any_labels, tolerating, without_label
from kubectl_dra.explain.remedies.ending_pods import ending_pods
from kubectl_dra.explain.remedies.proof import ChangeStep, Price, StepKind, StepTarget
from kubectl_dra.explain.remedies.prove import Change, WhatIf
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.simple_filters import CORDON

_NOT_TEXT = frozenset(("true", "false", "yes", "no", "on", "off", "y", "n", "null"))


class RelaxNodeRule(Change, frozen=True):
    """Nodes that reject the pod for one reason accept it."""

    TEXT = "{what}"
    ASIDE = frozenset(("nodes", "place"))
    COST = 2
    reason: Words
    nodes: tuple[str, ...]
    place: Words = ""
    """Where the rule is written."""

    @property
    def about(self) -> Hashable:
        return "nodes", self.reason

    @property
    def price(self) -> Price:
        if isinstance(self.reason, Untolerated) and not self.reason.is_condition:
            return Price.TOLERATE
        return Price.WAIT if isinstance(self.reason, NodeCordoned | Untolerated) else Price.EDIT

    @property
    def of_nodes(self) -> bool:
        """Whether it is the nodes that change, and not the pod."""
        return isinstance(self.reason, NodeCordoned) or (
            isinstance(self.reason, Untolerated) and self.reason.is_condition
        )

    @property
    def what(self) -> Phrase:
        """What to do, without a full stop."""
        reason = self.reason
        text = "let the pod run on {nodes:some} ({reason})"
        if isinstance(reason, Untolerated):
            text = "let the pod tolerate the node taint {taint}"
            if reason.is_condition:
                text = "get {nodes:some} ready again ({taint})"
            return say(text, nodes=self.nodes, taint=reason.taint)
        if isinstance(reason, NodeCordoned):
            text = "uncordon {nodes:some}"
        elif isinstance(reason, LabelDiffers):
            text = "let the pod run on {nodes:some}: leave {entry} out of {place}"
            return say(text, nodes=self.nodes, entry=f"{reason.key}={reason.value}", place=self.place)
        elif isinstance(reason, AffinityDiffers):
            text = "let the pod run on {nodes:some}: leave the required node affinity ({affinity}) out of {place}"
            return say(text, nodes=self.nodes, affinity=reason.affinity, place=self.place)
        return say(text, nodes=self.nodes, reason=reason)

    def made_in(self, world: WhatIf) -> WhatIf:
        if world.pod is None:
            return world
        edited = world.with_pod(self._edited(world.pod))
        mended = world.cluster.editing(*self._mended(world.outcome.state))
        return edited.moved(mended).on_named(frozenset(self.nodes))

    def step(self, world: WhatIf) -> ChangeStep:
        reason = self.reason
        pods = (world.pod.key,) if world.pod is not None else ()
        of_pod = StepTarget(pods=pods, nodes=self.nodes)
        of_nodes = StepTarget(nodes=self.nodes)
        if isinstance(reason, Untolerated):
            if reason.is_condition:
                return ChangeStep(StepKind.MEND_NODES, of_nodes, str(reason.taint))
            target = replace(of_pod, field="tolerations")
            return ChangeStep(StepKind.TOLERATE_NODE_TAINT, target, None, str(reason.taint))
        if isinstance(reason, LabelDiffers):
            target = replace(of_pod, field=f"nodeSelector[{reason.key}]")
            return ChangeStep(StepKind.DROP_NODE_SELECTOR, target, reason.value)
        if isinstance(reason, AffinityDiffers):
            field = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            return ChangeStep(StepKind.DROP_NODE_AFFINITY, replace(of_pod, field=field), str(reason.affinity))
        return ChangeStep(StepKind.UNCORDON_NODES, replace(of_nodes, field="unschedulable"))

    def _edited(self, pod: Pod) -> Pod:
        """The pod that does not mind the reason, where it is the pod that has to change."""
        reason = self.reason
        if isinstance(reason, Untolerated) and not reason.is_condition:
            taint = reason.taint
            operator = "Equal" if taint.value else "Exists"
            return tolerating(pod, Toleration(taint.key, operator, taint.value, taint.effect))
        if isinstance(reason, LabelDiffers):
            return without_label(pod, reason.key)
        return on_any_labels(pod) if isinstance(reason, AffinityDiffers) else pod

    def _mended(self, state: ClusterState) -> Iterator[Node]:
        """The nodes without the reason, where it is they that have to change."""
        reason = self.reason
        cordoned = isinstance(reason, NodeCordoned)
        key = CORDON.key if isinstance(reason, NodeCordoned) else ""
        if isinstance(reason, Untolerated) and reason.is_condition:
            key = reason.taint.key
        for name in self.nodes if key else ():
            if name in state.nodes:
                node = state.nodes[name].node
                taints = tuple(taint for taint in node.spec.taints if taint.key != key)
                unschedulable = node.spec.unschedulable and not cordoned
                yield replace(node, spec=replace(node.spec, taints=taints, unschedulable=unschedulable))


def relaxed(reason: Words, nodes: Sequence[str], pod: Pod | None) -> RelaxNodeRule:
    """The change that lets these nodes accept the pod."""
    from kubectl_dra.explain.place_to_edit import place_to_edit

    field = "nodeSelector" if isinstance(reason, LabelDiffers) else "affinity"
    if pod is None or not isinstance(reason, LabelDiffers | AffinityDiffers):
        return RelaxNodeRule(reason, tuple(nodes))
    return RelaxNodeRule(reason, tuple(nodes), place_to_edit(pod, field))


def can_end(reason: Words) -> bool:
    """Whether a change to only the pod's placement rules or the node removes the reason."""
    return isinstance(reason, AffinityDiffers | LabelDiffers | NodeCordoned | Untolerated)


def remedy(reason: Words, nodes: Sequence[str], world: WhatIf) -> Remedy | None:
    """What removes the reason of these nodes, proved; None if unknown."""
    if not nodes:
        return None
    short = _shortages(reason)
    if short and not all(each.passes for each in short):
        names = [each.name for each in short if not each.passes]
        what = "them" if names[1:] else "it"
        return Remedy(
            say("Lower what the pod requests of {names}, or add nodes that have {what}.", names=names, what=what)
        )
    if not can_end(reason):
        return _room(nodes, world)
    change = relaxed(reason, nodes, world.pod)
    proof = world.proof_with(change)
    if proof is None:
        return None
    words = say("{what:capital}.", what=change.what)
    commands: tuple[CommandLine, ...] = ()
    if isinstance(reason, Untolerated) and not reason.is_condition and world.pod is not None:
        from kubectl_dra.explain.place_to_edit import place_to_edit

        place = place_to_edit(world.pod, "tolerations")
        text = "Let the pod tolerate it: {place}: {toleration}"
        words = say(text, place=place, toleration=toleration_for(reason.taint))
    elif isinstance(reason, NodeCordoned) and len(nodes) == 1:
        words = say("Uncordon node {node} when its maintenance is over.", node=nodes[0])
        commands = (kubectl("uncordon", nodes[0], others=(nodes[0],), effect=CommandEffect.WRITES),)
    return Remedy(words, proof, offers=(change,), commands=commands)


def best(reasons: Iterable[tuple[Words, Sequence[str]]], world: WhatIf) -> Remedy | None:
    """What removes the first of several reasons for which that is proved; else what may remove one."""
    offered = [offer for reason, nodes in reasons if (offer := remedy(reason, nodes, world)) is not None]
    return next((offer for offer in offered if offer.proof is not None), next(iter(offered), None))


def look_at(reason: Words, nodes: Sequence[str]) -> NextStep | None:
    """What shows more about a reason why nodes refuse the pod, or None."""
    if nodes and (_shortages(reason) or isinstance(reason, PodLimitReached)):
        return NextStep(Look.ONE_NODE, nodes[0])
    if isinstance(reason, AffinityDiffers | LabelDiffers):
        return NextStep(Look.LABELS_OF_NODES)
    return None


def _shortages(reason: Words) -> tuple[ResourceShort, ...]:
    """The resources of which a node has too little, where that is all that is said of it."""
    parts = reason.parts if isinstance(reason, Joined) else (reason,)
    short = tuple(part for part in parts if isinstance(part, ResourceShort))
    return short if len(short) == len(parts) else ()


def _room(nodes: Sequence[str], world: WhatIf) -> Remedy | None:
    """Pods whose end makes room on one of these nodes, proved."""
    if world.pod is None:
        return None
    for change in ending_pods(world.outcome, nodes):
        if proof := world.proof_with(change):
            text = "{what:capital}." if change.ending else "It is enough that {pods} on {node} {count:ends|end}."
            return Remedy(say(text, what=change.what, **change.said), proof, offers=(change,))
    return None


def toleration_for(taint: NodeTaint) -> str:
    """The pod toleration for a node taint, as YAML flow text."""
    # What YAML would read as a boolean, a number or nothing is text all the same.
    plain = taint.value[:1].isalpha() and taint.value.lower() not in _NOT_TEXT
    text = taint.value if plain else f'"{taint.value}"'
    operator = f"operator: Equal, value: {text}" if taint.value else "operator: Exists"
    return f"[{{key: {taint.key}, {operator}, effect: {taint.effect}}}]"
