"""What cluster-autoscaler says of its node groups: the text under ``status`` in ConfigMap cluster-autoscaler-status.

It is YAML from 1.30 on (clusterstate/api/types.go); before, it was a text for people.
"""

from __future__ import annotations

from msgspec import Struct, ValidationError, convert

from kubectl_dra.data.drivers import parsed

_LONGEST = 1_000_000


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


def groups_in(text: str) -> tuple[GroupStatus, ...]:
    """The node groups that a status tells of; none where it has another form."""
    if not text or len(text) > _LONGEST:
        return ()
    from yaml import YAMLError

    try:
        return convert(parsed(text), AutoscalerStatus).node_groups
    except (YAMLError, ValidationError, RecursionError, ValueError):
        return ()
