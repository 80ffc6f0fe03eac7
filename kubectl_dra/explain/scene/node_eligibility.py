"""Which nodes a pod's own placement rules and the nodes' taints rule out, and how that is said.

The scheduler never asks for devices on a node that another filter rejects: ``filters`` asks all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kubectl_dra.api.affinity import Toleration
from kubectl_dra.api.labels import InvalidNodeSelector
from kubectl_dra.api.nodes import Node, NodeSelector, NodeTaint
from kubectl_dra.api.pods import Pod
from kubectl_dra.explain.phrase import Statement

_BLOCKING = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE = NodeTaint("node.kubernetes.io/unschedulable", "", "NoSchedule")
# The node controllers set and remove these; a pod that tolerates them ends up where it cannot run.
_CONDITIONS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


@dataclass(frozen=True)
class Cordoned(Statement):
    """Somebody cordoned the node."""

    TEXT = "node is cordoned (spec.unschedulable)"


@dataclass(frozen=True)
class Untolerated(Statement):
    """The node has a taint that the pod does not tolerate."""

    TEXT = "untolerated node taint {taint}"
    taint: NodeTaint

    @property
    def is_condition(self) -> bool:
        """Whether the taint stands for the state of the node, such as not-ready."""
        return self.taint.key.startswith(_CONDITIONS)


@dataclass(frozen=True)
class LabelDiffers(Statement):
    """The node has not the label that the pod's nodeSelector wants."""

    TEXT = "nodeSelector {key}={value} does not match"
    key: str
    value: str


@dataclass(frozen=True)
class AffinityDiffers(Statement):
    """The pod's required node affinity does not match."""

    TEXT = "node affinity requires {affinity}"
    affinity: str


@dataclass(frozen=True)
class AffinityBroken(Statement):
    """The pod's required node affinity cannot be parsed."""

    TEXT = "node affinity cannot be parsed: {problem}"
    problem: str


def rejections(pod: Pod, node: Node) -> Iterator[Statement]:
    """Why the pod cannot run on the node whatever devices it has, in the scheduler's order.

    What has one end is one reason: a cordon with the taint that goes with it, one node condition's taints.
    """
    tolerations = pod.spec.tolerations
    told: set[str] = set()
    if node.unschedulable and not _tolerated(_UNSCHEDULABLE, tolerations):
        told.add(_UNSCHEDULABLE.key)
        yield Cordoned()
    for taint in node.taints:
        if taint.effect not in _BLOCKING or taint.key in told or _tolerated(taint, tolerations):
            continue
        reason = Untolerated(taint)
        if reason.is_condition:
            told.add(taint.key)
        yield reason
    for key, value in pod.spec.node_selector.items():
        if node.labels.get(key) != value:
            yield LabelDiffers(key, value)
    affinity = pod.spec.affinity.node_affinity.required if pod.spec.affinity else None
    if affinity is not None:
        try:
            if not affinity.matches(node):
                yield AffinityDiffers(str(affinity))
        except InvalidNodeSelector as error:
            yield AffinityBroken(str(error))


def rejection(pod: Pod, node: Node) -> Statement | None:
    """The first reason of ``rejections``; None where nothing speaks against the node."""
    return next(rejections(pod, node), None)


def usable_on(selector: NodeSelector, node: Node) -> bool:
    """Whether an allocation with this selector can be used on the node; one that cannot be parsed holds nowhere."""
    try:
        return selector.matches(node)
    except InvalidNodeSelector:
        return False


def _tolerated(taint: NodeTaint, tolerations: Sequence[Toleration]) -> bool:
    return any(_tolerates(entry, taint) for entry in tolerations)


def _tolerates(toleration: Toleration, taint: NodeTaint) -> bool:
    effect, key = toleration.effect, toleration.key
    if (effect and effect != taint.effect) or (key and key != taint.key):
        return False
    operator = toleration.operator or "Equal"
    if operator == "Exists":
        return True
    if operator == "Equal":
        return bool(key) and toleration.value == taint.value
    return False
