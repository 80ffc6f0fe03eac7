"""How it is said that a pod's own placement rules or a node's taints rule out the node; ``filters`` asks which do."""

from __future__ import annotations

from kubectl_dra.api.nodes import NodeTaint
from kubectl_dra.explain.phrase import Statement

# The node controllers set and remove these; a pod that tolerates them ends up where it cannot run.
_CONDITIONS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


class NodeCordoned(Statement, frozen=True):
    """Somebody cordoned the node."""

    TEXT = "node is cordoned (spec.unschedulable)"


class Untolerated(Statement, frozen=True):
    """The node has a taint that the pod does not tolerate."""

    TEXT = "untolerated node taint {taint}"
    taint: NodeTaint

    @property
    def is_condition(self) -> bool:
        """Whether the taint stands for the state of the node, such as not-ready."""
        return self.taint.key.startswith(_CONDITIONS)


class LabelDiffers(Statement, frozen=True):
    """The node has not the label that the pod's nodeSelector wants."""

    TEXT = "nodeSelector {key}={value} does not match"
    key: str
    value: str


class AffinityDiffers(Statement, frozen=True):
    """The pod's required node affinity does not match."""

    TEXT = "node affinity requires {affinity}"
    affinity: str
