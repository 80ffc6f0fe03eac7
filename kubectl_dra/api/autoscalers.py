"""What is read of autoscalers: NodeClaims of Karpenter, and what cluster-autoscaler says of its node groups."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

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


# The text under ``status`` in ConfigMap cluster-autoscaler-status (clusterstate/api/types.go, from 1.30 on YAML).


class BackoffInfo(Struct, frozen=True, rename="camel"):
    """Why a group could not get a node."""

    error_code: str = ""
    error_message: str = ""


class ScaleUpStatus(Struct, frozen=True, rename="camel"):
    """``scaleUp`` of a group: NoActivity, InProgress or Backoff."""

    status: str = ""
    backoff_info: BackoffInfo = BackoffInfo()


class UnreadyCount(Struct, frozen=True, rename="camel"):
    """Nodes that are not ready; ``resource_unready`` of them for their devices, which are not published."""

    total: int = 0
    resource_unready: int = 0


class RegisteredCount(Struct, frozen=True, rename="camel"):
    """Nodes of a group that have joined the cluster."""

    total: int = 0
    ready: int = 0
    unready: UnreadyCount = UnreadyCount()


class NodeCounts(Struct, frozen=True, rename="camel"):
    """``nodeCounts`` of a group."""

    registered: RegisteredCount = RegisteredCount()


class GroupHealth(Struct, frozen=True, rename="camel"):
    """``health`` of a group: its nodes, how many it may have, and how many the cloud was asked for."""

    node_counts: NodeCounts = NodeCounts()
    cloud_provider_target: int = 0
    min_size: int = 0
    max_size: int = 0


class GroupStatus(Struct, frozen=True, rename="camel"):
    """A node group of cluster-autoscaler."""

    name: str = ""
    health: GroupHealth = GroupHealth()
    scale_up: ScaleUpStatus = ScaleUpStatus()


class AutoscalerStatus(Struct, frozen=True, rename="camel"):
    """The status of cluster-autoscaler, as far as it is about its groups."""

    node_groups: tuple[GroupStatus, ...] = ()
