"""Objects of operators: whether what NVIDIA's install runs, ComputeDomains, and Karpenter's nodes to come."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from kubectl_dra.api.meta import ObjectMeta, Wire
from kubectl_dra.api.pods import PodCondition


class OperatorPart(Wire, frozen=True):
    """A part of what the network operator installs: ready, notReady, ignore or error."""

    name: Annotated[str, "keep"] = ""
    state: Annotated[str, "keep"] = ""


class OperatorStatus(Wire, frozen=True):
    """``status``: ready, notReady or ignored, in conditions (GPU operator) or parts (network operator) why."""

    state: Annotated[str, "keep"] = ""
    conditions: tuple[PodCondition, ...] = ()
    applied_states: tuple[OperatorPart, ...] = ()


class OperatorPolicy(Wire, frozen=True):
    """A nvidia.com ClusterPolicy, or a mellanox.com NicClusterPolicy."""

    metadata: ObjectMeta = ObjectMeta()
    status: OperatorStatus = OperatorStatus()


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


class ChannelTemplate(Wire, frozen=True):
    """The ResourceClaimTemplate that the driver's controller makes for the workload's pods."""

    name: Annotated[str, "template"] = ""


class ComputeDomainChannel(Wire, frozen=True):
    """``spec.channel`` of a ComputeDomain."""

    resource_claim_template: ChannelTemplate = ChannelTemplate()


class ComputeDomainSpec(Wire, frozen=True):
    """``spec`` of a ComputeDomain; ``num_nodes`` is deprecated, and 0 by default."""

    num_nodes: int = 0
    channel: ComputeDomainChannel = ComputeDomainChannel()


class ComputeDomainNode(Wire, frozen=True):
    """A node that has joined. ``clique_id`` is its NVLink partition; empty: it has none."""

    name: Annotated[str, "node"] = ""
    clique_id: Annotated[str, "scrambled"] = field(default="", name="cliqueID")
    index: int = 0
    status: Annotated[str, "keep"] = ""


class ComputeDomainStatus(Wire, frozen=True):
    """``status`` of a ComputeDomain: Ready or NotReady."""

    status: Annotated[str, "keep"] = ""
    nodes: tuple[ComputeDomainNode, ...] = ()


class ComputeDomain(Wire, frozen=True):
    """A ComputeDomain."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ComputeDomainSpec = ComputeDomainSpec()
    status: ComputeDomainStatus = ComputeDomainStatus()


class CliqueDaemon(Wire, frozen=True):
    """The daemon of a node, as it reports itself."""

    node_name: Annotated[str, "node"] = ""
    clique_id: Annotated[str, "scrambled"] = field(default="", name="cliqueID")
    index: int = 0
    status: Annotated[str, "keep"] = ""


class ComputeDomainClique(Wire, frozen=True):
    """The daemons of a ComputeDomain in one NVLink partition; it is called UID.CLIQUE, in the driver's namespace."""

    metadata: ObjectMeta = ObjectMeta()
    daemons: tuple[CliqueDaemon, ...] = ()
