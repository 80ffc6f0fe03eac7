"""What is read of Karpenter's own objects (karpenter.sh/v1)."""

from __future__ import annotations

from typing import Annotated

from kubectl_dra.api.meta import ObjectMeta, Wire
from kubectl_dra.api.pods import PodCondition


class NodeClaimStatus(Wire, frozen=True):
    """``status`` of a NodeClaim: its node, once it has one, and how far it is."""

    node_name: Annotated[str, "node"] = ""
    conditions: tuple[PodCondition, ...] = ()


class NodeClaim(Wire, frozen=True):
    """A karpenter.sh/v1 NodeClaim: a node that Karpenter makes or has made."""

    metadata: ObjectMeta = ObjectMeta()
    status: NodeClaimStatus = NodeClaimStatus()

    def unmet(self) -> PodCondition | None:
        """The first step that is not done: launched, registered, initialized."""
        known = {condition.type: condition for condition in self.status.conditions}
        steps = (known.get(name) for name in ("Launched", "Registered", "Initialized"))
        return next((step for step in steps if step is not None and step.status != "True"), None)
