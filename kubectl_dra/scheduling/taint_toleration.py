"""TaintToleration: node taints with NoSchedule or NoExecute that the pod does not tolerate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kubectl_dra.api.defects import TAINTS_NAMED
from kubectl_dra.api.nodes import NodeTaint, Toleration
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin, ScorePlugin, share_of_best
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection

# Which node taints a pod tolerates (core/v1, KEP-5471).

COMPARISON: Final = "TaintTolerationComparisonOperators"
"""The feature gate of the operators Lt and Gt."""
COMPARING: Final = ("Lt", "Gt")
_BLOCKING: Final = ("NoSchedule", "NoExecute")
_INTEGER: Final = re.compile(r"(?:0|-?[1-9][0-9]{0,18})\Z")
_INT64: Final = 1 << 63


def proved_by_pods(pod: Pod, snapshot: Snapshot) -> frozenset[str]:
    """The gate of the operators that a pod uses, where a pod of the cluster shows that it is on: where it is off, the
    server refuses them.
    """
    both_compare = _compares(pod) and any(_compares(other) for other in snapshot.pods.values())
    return frozenset((COMPARISON,)) if both_compare else frozenset()


def _compares(pod: Pod) -> bool:
    return any(toleration.operator in COMPARING for toleration in pod.spec.tolerations)


def untolerated(
    taints: Iterable[NodeTaint], tolerations: Sequence[Toleration], *, comparing: bool = False
) -> NodeTaint | None:
    """The first taint that keeps a pod with these tolerations off a node; None if there is none.

    ``comparing``: the operators Lt and Gt are supported.
    """
    for taint in taints:
        if taint.effect in _BLOCKING and not tolerated(taint, tolerations, comparing=comparing):
            return taint
    return None


def tolerated(taint: NodeTaint, tolerations: Iterable[Toleration], *, comparing: bool = False) -> bool:
    """Whether one of the tolerations covers the taint."""
    return any(tolerates(toleration, taint, comparing=comparing) for toleration in tolerations)


def tolerates(toleration: Toleration, taint: NodeTaint, *, comparing: bool = False) -> bool:
    """Whether a toleration covers a taint. An empty effect or key matches any."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator or "Equal"
    if operator == "Exists":
        return True
    if operator == "Equal":
        return toleration.value == taint.value
    if operator in COMPARING and comparing:
        bound, value = _integer(toleration.value), _integer(taint.value)
        if bound is None or value is None:
            return False
        return value < bound if operator == "Lt" else value > bound
    return False


def _integer(text: str) -> int | None:
    if not _INTEGER.match(text):
        return None
    value = int(text)
    return value if -_INT64 <= value < _INT64 else None


class UntoleratedTaint(Reason, frozen=True):
    """The node's first taint that the pod does not tolerate. ``named``: the release's message names it."""

    taint: NodeTaint
    named: bool = False

    @property
    def words(self) -> str:
        if self.named:
            return f"node(s) had untolerated taint {{{self.taint.key}: {self.taint.value}}}"
        return "node(s) had untolerated taint(s)"


class TaintToleration(Plugin):
    """Refuses nodes with a taint that the pod does not tolerate."""

    name = PluginName.TAINT_TOLERATION

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._comparing = COMPARISON in state.gates
        self._named = TAINTS_NAMED.affects(state.release, state.patch) is True

    def filter(self, node: NodeState) -> Rejection | None:
        taint = untolerated(node.node.taints, self.pod.spec.tolerations, comparing=self._comparing)
        return None if taint is None else Rejection(self.name, (UntoleratedTaint(taint, self._named),))


# TaintToleration: nodes with fewer untolerated PreferNoSchedule taints score higher.

_PREFERRED = "PreferNoSchedule"


class TaintTolerationScore(ScorePlugin):
    """The plugin for one pod."""

    name = PluginName.TAINT_TOLERATION

    def scores(self) -> Mapping[str, int]:
        tolerations = [toleration for toleration in self.pod.spec.tolerations if toleration.effect in ("", _PREFERRED)]
        comparing = COMPARISON in self.state.gates
        return share_of_best(
            {
                node.name: sum(
                    taint.effect == _PREFERRED and not tolerated(taint, tolerations, comparing=comparing)
                    for taint in node.node.taints
                )
                for node in self.nodes
            },
            reverse=True,
        )
