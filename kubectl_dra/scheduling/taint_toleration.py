"""TaintToleration: node taints with NoSchedule or NoExecute that the pod does not tolerate."""

from __future__ import annotations

from kubectl_dra.api.nodes import NodeTaint
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import TAINTS_NAMED
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection
from kubectl_dra.scheduling.tolerations import COMPARISON, untolerated


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
