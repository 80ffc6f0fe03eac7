"""NodeUnschedulable: cordoned nodes (``spec.unschedulable``)."""

from __future__ import annotations

from kubectl_dra.api.nodes import NodeTaint
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection
from kubectl_dra.scheduling.tolerations import COMPARISON, tolerated

CORDON = NodeTaint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class Cordoned(Reason, frozen=True):
    """The node is cordoned and the pod does not tolerate that."""

    @property
    def words(self) -> str:
        return "node(s) were unschedulable"


class NodeUnschedulable(Plugin):
    """Refuses cordoned nodes unless the pod tolerates the taint of a cordon."""

    name = PluginName.NODE_UNSCHEDULABLE

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._tolerates = tolerated(CORDON, pod.spec.tolerations, comparing=COMPARISON in state.gates)

    def filter(self, node: NodeState) -> Rejection | None:
        if node.node.unschedulable and not self._tolerates:
            return Rejection(self.name, (Cordoned(),))
        return None
