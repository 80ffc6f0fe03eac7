"""The text of the PodScheduled condition, as the scheduler writes it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from kubectl_dra.scheduling.reasons import Rejection


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
    elif told := counted(rejections):
        message += f" {', '.join(f'{number} {words}' for words, number in told)}."
    return f"{message} {after}" if after else message


def counted(rejections: Iterable[Rejection]) -> list[tuple[str, int]]:
    """The scheduler's texts, each with its number of nodes, in the order of its text sort."""
    counts = Counter(reason.words for rejection in rejections for reason in rejection.reasons)
    return sorted(counts.items(), key=lambda entry: f"{entry[1]} {entry[0]}".encode())


def foreign(message: str) -> list[str]:
    """The counts in a condition's message that no known filter produces: from extenders and other plugins."""
    _, available, rest = message.partition(" nodes are available: ")
    if not available:
        return []
    told = _COUNTED.split(rest.partition(". ")[0].removesuffix("."))
    return [text for text in told if _STARTS_WITH_COUNT.match(text) and not _KNOWN.search(text)]


_COUNTED: Final = re.compile(r", (?=\d+ )")
_STARTS_WITH_COUNT: Final = re.compile(r"\d+ ")
_KNOWN: Final = re.compile(
    r"^\d+ (?:Insufficient \S+$|Too many pods$|cannot allocate all claims$|invalid resource pools|"
    r"resourceclaim (?:not available|in use)|cannot schedule extended|claim \S+|request \S+|"
    r"node allocatable resource claim |pod level (?:request|limit) for |"
    r"node\(s\) (?:were unschedulable$|had untolerated taint|didn't have free ports for the requested pod ports$|"
    r"didn't match (?:Pod's|PersistentVolume's|pod |the requested node name)|didn't satisfy (?:existing pods|plugin)|"
    r"had no available (?:disk|volume zone)$|did not have enough free storage$|exceed max volume count$|"
    r"didn't find available persistent volumes to bind$|had volume node affinity conflict$|"
    r"unavailable due to (?:one or more pvc|PersistentVolumeClaim))|"
    r"Preemption is not helpful|No preemption victims|.*CSI driver|pod affinity terms conflict$)"
)
