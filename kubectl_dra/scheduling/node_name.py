"""NodeName: the node named by the pod itself. Such a pod is never scheduled, but other checks use the result."""

from __future__ import annotations

from kubectl_dra.scheduling.framework import NodeState, Plugin
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection


class OtherNodeNamed(Reason, frozen=True):
    """The pod's ``spec.nodeName`` is another node."""

    node_name: str

    @property
    def words(self) -> str:
        return "node(s) didn't match the requested node name"


class NodeName(Plugin):
    """Refuses every node but the one in ``spec.nodeName``."""

    name = PluginName.NODE_NAME

    def filter(self, node: NodeState) -> Rejection | None:
        wanted = self.pod.node_name
        if wanted and wanted != node.name:
            return Rejection(self.name, (OtherNodeNamed(wanted),))
        return None
