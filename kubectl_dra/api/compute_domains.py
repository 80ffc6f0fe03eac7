"""ComputeDomains of NVIDIA's driver: nodes whose GPUs share memory over NVLink, each with a daemon (IMEX).

From ``api/nvidia.com/resource/v1beta1`` of dra-driver-nvidia-gpu.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from kubectl_dra.api.meta import ObjectMeta, Wire


class ChannelTemplate(Wire, frozen=True):
    """The ResourceClaimTemplate that the driver's controller makes for the workload's pods."""

    name: Annotated[str, "template"] = ""


class ComputeDomainChannel(Wire, frozen=True):
    """``spec.channel`` of a ComputeDomain."""

    resource_claim_template: ChannelTemplate = ChannelTemplate()


class ComputeDomainSpec(Wire, frozen=True):
    """``spec`` of a ComputeDomain; ``num_nodes`` is deprecated, and 0 where nobody sets it."""

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
