"""Why the scheduler refuses a pod or a node: the base of typed reasons, each defined in its plugin's file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import asdict


class PluginName(StrEnum):
    """The plugins of the default profile, by the scheduler's names, in running order."""

    SCHEDULING_GATES = "SchedulingGates"
    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    NODE_NAME = "NodeName"
    TAINT_TOLERATION = "TaintToleration"
    NODE_AFFINITY = "NodeAffinity"
    NODE_PORTS = "NodePorts"
    NODE_RESOURCES_FIT = "NodeResourcesFit"
    VOLUME_RESTRICTIONS = "VolumeRestrictions"
    NODE_VOLUME_LIMITS = "NodeVolumeLimits"
    VOLUME_BINDING = "VolumeBinding"
    VOLUME_ZONE = "VolumeZone"
    POD_TOPOLOGY_SPREAD = "PodTopologySpread"
    INTER_POD_AFFINITY = "InterPodAffinity"
    DYNAMIC_RESOURCES = "DynamicResources"
    DEFAULT_PREEMPTION = "DefaultPreemption"
    NODE_RESOURCES_BALANCED_ALLOCATION = "NodeResourcesBalancedAllocation"
    IMAGE_LOCALITY = "ImageLocality"
    NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
    GANG_SCHEDULING = "GangScheduling"


class Reason(Struct, frozen=True):
    """One reason of one plugin. Concrete reasons have typed fields and are defined in the plugin's file.

    ``TEXT`` is the scheduler's own text, ``SAID`` what we say in its place, with the names of fields in braces. Empty:
    the scheduler's text says enough, or ``explain.node_reasons`` has a statement for it.
    """

    TEXT: ClassVar[str] = ""
    SAID: ClassVar[str] = ""

    @property
    def words(self) -> str:
        """The text as counted in the scheduler's condition message: data of Kubernetes, not our sentence."""
        return self.TEXT.format(**asdict(self)) if self.__struct_fields__ else self.TEXT


class NotRead(Reason, frozen=True):
    """Undetermined: objects of this kind decide, and not all of them were read.

    ``otherwise`` is the reason if no further objects exist.
    """

    kind: str
    otherwise: Reason

    @property
    def words(self) -> str:
        return self.otherwise.words


class Rejection(Struct, frozen=True):
    """A plugin refuses a node (Filter) or the whole pod (PreFilter).

    ``resolvable``: evicting pods could help, so preemption examines the node (Unschedulable; else
    UnschedulableAndUnresolvable). ``error``: the plugin failed, which ends the whole attempt.
    """

    plugin: PluginName
    reasons: tuple[Reason, ...]
    resolvable: bool = False
    error: bool = False


# The text of the PodScheduled condition, as the scheduler writes it.


def none_available(
    total: int, rejections: Iterable[Rejection], before: Rejection | None = None, after: str = ""
) -> str:
    """The message for a pod that fits on none of ``total`` nodes.

    Args:
        total: the number of nodes.
        rejections: one for each node.
        before: what refused the pod as a whole, in which case nodes are not counted.
        after: the texts of the plugins that run after all filters (PostFilter).
    """
    message = f"0/{total} nodes are available:"
    if before is not None:
        message += f" {', '.join(reason.words for reason in before.reasons)}."
    elif counts := counted(rejections):
        message += f" {', '.join(f'{number} {words}' for words, number in counts)}."
    return f"{message} {after}" if after else message


def counted(rejections: Iterable[Rejection]) -> list[tuple[str, int]]:
    """The scheduler's texts, each with its number of nodes, in the order of its text sort."""
    counts = Counter(reason.words for rejection in rejections for reason in rejection.reasons)
    return sorted(counts.items(), key=lambda item: f"{item[1]} {item[0]}".encode())


def foreign(message: str) -> list[str]:
    """The counts in a condition's message that no known filter produces: from extenders and other plugins."""
    _, available, rest = message.partition(" nodes are available: ")
    if not available:
        return []
    texts = _COUNTED.split(rest.partition(". ")[0].removesuffix("."))
    return [text for text in texts if _STARTS_WITH_COUNT.match(text) and not _KNOWN.search(text)]


_COUNTED: Final = re.compile(r", (?=\d+ )")
_STARTS_WITH_COUNT: Final = re.compile(r"\d+ ")
_KNOWN: Final = re.compile(
    r"^\d+ (?:Insufficient \S+$|Too many pods$|cannot allocate all claims$|invalid resource pools|"
    r"resourceclaim (?:not available|in use)|cannot schedule extended|claim \S+|request \S+|"
    r"node allocatable resource claim |pod level (?:request|limit) for |"
    r"node\(s\) (?:were unschedulable$|had untolerated taint|didn't have free ports for the requested pod ports$|"
    r"didn't match (?:Pod's|PersistentVolume's|pod |the requested node name|scheduler-enforced)|"
    r"didn't satisfy (?:existing pods|plugin)|"
    r"had no available (?:disk|volume zone)$|did not have enough free storage$|exceed max volume count$|"
    r"didn't find available persistent volumes to bind$|had volume node affinity conflict$|"
    r"unavailable due to (?:one or more pvc|PersistentVolumeClaim))|"
    r"Preemption is not helpful|No preemption victims|.*CSI driver|pod affinity terms conflict$)"
)
