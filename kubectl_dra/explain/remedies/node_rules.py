"""What would let a pod onto a node that rejects it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from kubectl_dra.api.nodes import Node, NodeTaint, Toleration
from kubectl_dra.api.pods import Pod, owner_of
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.diagnosis import Remedy
from kubectl_dra.explain.holders import replicas_of_one
from kubectl_dra.explain.node_reasons import (
    AffinityDiffers,
    LabelDiffers,
    NodeCordoned,
    PodLimitReached,
    ResourceShort,
    Untolerated,
    plain,
)
from kubectl_dra.explain.phrase import Joined, Phrase, Words, say
from kubectl_dra.explain.remedies.claim_edits import (
    on_any_labels,
    place_to_edit,
    requesting,
    tolerating,
    without_label,
)
from kubectl_dra.explain.remedies.ending_pods import ending_pods
from kubectl_dra.explain.remedies.proof_result import ChangeStep, Price, StepKind, StepTarget
from kubectl_dra.explain.remedies.prove import Change, WhatIf
from kubectl_dra.manifests.values import scalar
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.simple_filters import CORDON

if TYPE_CHECKING:
    from fractions import Fraction

_NODES_NAMED: Final = 2


class RelaxNodeRule(Change, frozen=True):
    """Nodes that reject the pod for one reason accept it."""

    TEXT = "{what}"
    ASIDE = frozenset(("nodes", "place", "values"))
    COST = 2
    reason: Words
    nodes: tuple[str, ...]
    place: Words = ""
    """Where the rule is written."""
    values: tuple[str, ...] = ()
    """What nodes have where a label differs."""

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
        # Of many nodes the proof says which take it.
        there = "let the pod run on {nodes:some}: " if len(self.nodes) <= _NODES_NAMED else ""
        if isinstance(reason, Untolerated):
            text = "let the pod tolerate the node taint {taint}"
            if reason.is_condition:
                text = "get {nodes:some} ready again ({taint})"
            return say(text, nodes=self.nodes, taint=reason.taint)
        if isinstance(reason, NodeCordoned):
            return reason.ended_on(self.nodes)
        if isinstance(reason, LabelDiffers):
            have = say(" (there are nodes with {values:some 3})", values=self.values) if self.values else ""
            text = f"{there}leave {{entry}} out of {{place}}{{have}}"
            entry = f"{reason.key}={reason.value}"
            return say(text, nodes=self.nodes, entry=entry, place=self.place, have=have)
        if isinstance(reason, AffinityDiffers):
            text = f"{there}leave the required node affinity ({{affinity}}) out of {{place}}"
            return say(text, nodes=self.nodes, affinity=reason.affinity, place=self.place)
        return say(text, nodes=self.nodes, reason=reason)

    def made_in(self, what_if: WhatIf) -> WhatIf:
        if what_if.pod is None:
            return what_if
        edited = what_if.with_pod(self.in_template(what_if.pod))
        mended = what_if.cluster.editing(*self._mended(what_if.outcome.state))
        return edited.moved(mended).on_named(frozenset(self.nodes))

    def step(self, what_if: WhatIf) -> ChangeStep:
        reason = self.reason
        pods = (what_if.pod.key,) if what_if.pod is not None else ()
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

    def in_template(self, pod: Pod) -> Pod:
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


class LessOfNode(Change, frozen=True):
    """One container, of the pod and of its owner's other pods on these nodes, requests what is left for each."""

    TEXT = "{what}"
    ASIDE = frozenset(("nodes", "place"))
    COST = 2
    resource: str
    before: Quantity
    amount: Quantity
    container: str
    nodes: tuple[str, ...]
    place: Words
    """Where the request is written."""

    @property
    def about(self) -> Hashable:
        return "request", self.resource

    @property
    def what(self) -> Phrase:
        """What to do, without a full stop."""
        text = "lower {resource} from {before} to {amount} in {place}"
        return say(text, resource=self.resource, before=self.before, amount=self.amount, place=self.place)

    @property
    def least(self) -> Quantity:
        """The smallest amount that is worth asking for, as people would write it."""
        return _as_written(self.resource, -(-self.before.nanos // _LEAST_PART), self.before, up=True)

    def of(self, part: Fraction) -> Quantity:
        """A part of the amount, as people would write it."""
        return _as_written(self.resource, int(self.amount.nanos * part), self.before)

    def between(self, less: Quantity, more: Quantity) -> Quantity | None:
        """An amount between two, as people would write it; None where there is none."""
        middle = _as_written(self.resource, (less.nanos + more.nanos) // 2, self.before)
        if middle <= less:
            middle = _as_written(self.resource, less.nanos + 1, self.before, up=True)
        return middle if less < middle < more else None

    def made_in(self, what_if: WhatIf) -> WhatIf:
        if what_if.pod is None:
            return what_if
        others = [pod for name in self.nodes for pod in _replicas_on(name, what_if.pod, what_if.outcome.state)]
        edited = what_if.with_pod(self.in_template(what_if.pod))
        return edited.moved(what_if.cluster.editing(*map(self.in_template, others))).on_named(frozenset(self.nodes))

    def in_template(self, pod: Pod) -> Pod:
        return requesting(pod, self.container, self.resource, str(self.amount))

    def step(self, what_if: WhatIf) -> ChangeStep:
        field = f"containers[{self.container}].resources.requests[{self.resource}]"
        pods = (what_if.pod.key,) if what_if.pod is not None else ()
        target = StepTarget(pods=pods, nodes=self.nodes, field=field)
        return ChangeStep(StepKind.LOWER_REQUEST, target, str(self.before), str(self.amount))


MAX_NODE_REASONS = 3
_RULES = (AffinityDiffers, LabelDiffers, NodeCordoned, Untolerated)
"""What a change to only the pod's placement rules or the node removes."""
_LEAST_PART = 10
"""A request is lowered at most to this part of it: one tenth."""


def _replicas_on(node: str, pod: Pod, state: ClusterState) -> list[Pod]:
    """The pods on a node that change with the template of the pod's owner."""
    return [other for other in state.nodes[node].pods if replicas_of_one(other, pod)] if node in state.nodes else []


def _less_of_node(short: ResourceShort, nodes: Sequence[str], pod: Pod, state: ClusterState) -> LessOfNode | None:
    """The pod with a smaller request, where a single container asks for all of what the nodes are short of."""
    asking = [one.name for one in pod.containers if short.name in one.resources.effective()]
    whole = pod.spec.resources is not None and short.name in pod.spec.resources.effective()
    if "/" in short.name or len(asking) != 1 or whole or short.name in pod.spec.overhead:
        return None
    others = len(_replicas_on(nodes[0], pod, state))
    amount = _as_written(short.name, (short.left.nanos + others * short.needed.nanos) // (others + 1), short.needed)
    if amount.nanos * _LEAST_PART < short.needed.nanos or amount >= short.needed:
        return None
    (container,) = asking
    alone = owner_of(pod) is None and pod.metadata.uid
    place = "a new pod" if alone else place_to_edit(pod, f"containers[{container}].resources")
    return LessOfNode(short.name, short.needed, amount, container, tuple(nodes), place)


def _as_written(resource: str, nanos: int, written: Quantity, *, up: bool = False) -> Quantity:
    """An amount that people would write, in place of a written one: whole CPUs, or tenths of few, and bytes in Mi.

    It is rounded down, or ``up``.
    """
    unit = (10**9 << 20) if resource != "cpu" else 10**9 if nanos >= 10**10 else 10**8
    number = -(-nanos // unit) if up else nanos // unit
    if resource != "cpu":
        return Quantity.of(number << 20, written.format)
    return Quantity(number * (unit // 10**6), -3)


def changes_for(reason: Words, nodes: Sequence[str], what_if: WhatIf) -> Sequence[RelaxNodeRule | LessOfNode]:
    """The changes of the pod or of these nodes that let them accept it; empty where none is known.

    The end of one cordon is enough: there are several where several nodes are cordoned.
    """
    if isinstance(reason, ResourceShort) and what_if.pod is not None:
        less = _less_of_node(reason, nodes, what_if.pod, what_if.outcome.state)
        return () if less is None else (less,)
    if isinstance(reason, NodeCordoned):
        return [RelaxNodeRule(reason, (name,)) for name in nodes[:MAX_NODE_REASONS]]
    if isinstance(reason, LabelDiffers):
        known = {node.node.labels.get(reason.key, "") for node in what_if.outcome.state.nodes.values()}
        values = tuple(sorted(known - {"", reason.value}))
        return (replace(_relaxed(reason, nodes, what_if.pod), values=values),)
    return (_relaxed(reason, nodes, what_if.pod),) if isinstance(reason, _RULES) else ()


def rule_changes(nodes: Mapping[Words, Sequence[str]], what_if: WhatIf, *, room: bool) -> Iterator[Change]:
    """What lets nodes that a single reason keeps from running the pod, by this reason, accept it.

    ``room``: also a smaller request, unless the scheduler makes room by itself.
    """
    groups = [changes for reason, names in nodes.items() if (changes := changes_for(reason, names, what_if))]
    smaller = [change for group in groups for change in group if isinstance(change, LessOfNode)]
    less = max(smaller, key=lambda change: change.amount, default=None)
    kept = (group for group in groups if not isinstance(group[0], LessOfNode) or (room and group[0] is less))
    yield from (change for group in islice(kept, MAX_NODE_REASONS) for change in group)


def _relaxed(reason: Words, nodes: Sequence[str], pod: Pod | None) -> RelaxNodeRule:
    """The change that lets these nodes accept the pod."""
    field = "nodeSelector" if isinstance(reason, LabelDiffers) else "affinity"
    if pod is None or not isinstance(reason, LabelDiffers | AffinityDiffers):
        return RelaxNodeRule(reason, tuple(nodes))
    return RelaxNodeRule(reason, tuple(nodes), place_to_edit(pod, field))


def remedy(reason: Words, nodes: Sequence[str], what_if: WhatIf) -> Remedy | None:
    """What removes the reason of these nodes; without a proof where that is not enough. None if unknown."""
    if not nodes:
        return None
    if short := _shortages(reason):
        return _of_shortage(short, nodes, what_if)
    changes = changes_for(reason, nodes, what_if)
    if not changes:
        return _room(nodes, what_if)
    proofs = ((change, what_if.proof_with(change)) for change in changes)
    change, proof = next((tried for tried in proofs if tried[1] is not None), (changes[0], None))
    if proof is None and not _lets_onto(change, nodes, what_if):
        # Something else of these nodes refuses the pod all the same.
        return None
    words = say("{what:capital}.", what=change.what)
    if isinstance(reason, Untolerated) and not reason.is_condition and what_if.pod is not None:
        place = place_to_edit(what_if.pod, "tolerations")
        text = "Let the pod tolerate it: {place}: {toleration}"
        words = say(text, place=place, toleration=toleration_for(reason.taint))
    return Remedy(words, proof, offers=(change,))


def _of_shortage(short: Sequence[ResourceShort], nodes: Sequence[str], what_if: WhatIf) -> Remedy | None:
    """The largest request that fits there, unless room is made by a pod that does no work."""
    changes = tuple(change for shortage in short for change in changes_for(shortage, nodes, what_if))
    proof = what_if.with_all(changes).proof() if len(changes) == len(short) else None
    lacking = [shortage.name for shortage in short if not shortage.passes]
    room = _room(nodes, what_if) if not lacking else None
    if proof is not None and (room is None or room.price >= Price.END_RUNNING):
        what: Words = Joined(tuple(change.what for change in changes), ", and ") if changes[1:] else changes[0].what
        steps = tuple(change.step(what_if) for change in changes)
        words = say("{what:capital}.", what=what)
        return Remedy(words, proof, offers=changes, steps=steps)
    if lacking:
        names = "them" if lacking[1:] else "it"
        text = "Lower what the pod requests of {names}, or add nodes that have {what}."
        return Remedy(say(text, names=lacking, what=names))
    if room is None:
        left = [say("{left} {name}", left=plain(each.left), name=each.name) for each in short]
        text = "Lower what the pod requests of {names}, or add larger nodes: {node} has {left} left."
        names_of = [each.name for each in short]
        return Remedy(say(text, names=names_of, node=nodes[0], left=Joined(tuple(left), " and ")))
    return room


def _lets_onto(change: Change, nodes: Sequence[str], what_if: WhatIf) -> bool:
    """Whether nothing but devices keeps the pod off one of the nodes once the change is made."""
    after = what_if.with_all((change,)).outcome
    there = (after.state.nodes[name] for name in nodes if name in after.state.nodes)
    return any(after.others.filter(node) is None for node in there)


def best(reasons: Iterable[tuple[Words, Sequence[str]]], what_if: WhatIf) -> Remedy | None:
    """What removes one of several reasons, proved: the largest request that fits, else the first; else what may."""
    offered = [offer for reason, nodes in reasons if (offer := remedy(reason, nodes, what_if)) is not None]
    proved = [offer for offer in offered if offer.proof is not None]
    return max(proved or offered[:1], key=_amount, default=None)


def _amount(offer: Remedy) -> int:
    return max((change.amount.nanos for change in offer.offers if isinstance(change, LessOfNode)), default=0)


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


def _room(nodes: Sequence[str], what_if: WhatIf) -> Remedy | None:
    """Pods whose end makes room on one of these nodes, proved."""
    if what_if.pod is None:
        return None
    for change in ending_pods(what_if.outcome, nodes):
        if proof := what_if.proof_with(change):
            text = "{what:capital}." if change.ending else "It is enough that {pods} on {node} {count:ends|end}."
            return Remedy(say(text, what=change.what, **change.said), proof, offers=(change,))
    return None


def toleration_for(taint: NodeTaint) -> str:
    """The pod toleration for a node taint, as YAML flow text."""
    # What YAML would read as a boolean, a number or nothing is text all the same.
    plain = taint.value[:1].isalpha() and isinstance(scalar(taint.value), str)
    text = taint.value if plain else f'"{taint.value}"'
    operator = f"operator: Equal, value: {text}" if taint.value else "operator: Exists"
    return f"[{{key: {taint.key}, {operator}, effect: {taint.effect}}}]"
