"""The objects by which operators of vendors say whether what they install runs: NVIDIA's for GPUs and for networks."""

from __future__ import annotations

from typing import Annotated

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
