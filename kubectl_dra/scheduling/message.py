"""The text of the PodScheduled condition, as the scheduler writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kubectl_dra.scheduling.reasons import Rejection


def none_available(
    total: int, rejections: Iterable[Rejection], before: Rejection | None = None, after: str = ""
) -> str:
    """The message for a pod that fits on none of ``total`` nodes.

    Args:
        total: the number of nodes.
        rejections: one for each node.
        before: what refused the pod as a whole, in which case the nodes are not counted.
        after: what the plugins that run after all filters (PostFilter) said.
    """
    message = f"0/{total} nodes are available:"
    if before is not None:
        message += f" {', '.join(reason.words for reason in before.reasons)}."
    elif told := counted(rejections):
        message += f" {', '.join(f'{number} {words}' for words, number in told)}."
    return f"{message} {after}" if after else message


def counted(rejections: Iterable[Rejection]) -> list[tuple[str, int]]:
    """The scheduler's words with the number of nodes each stands for, sorted as it sorts them: as text."""
    counts = Counter(reason.words for rejection in rejections for reason in rejection.reasons)
    return sorted(counts.items(), key=lambda entry: f"{entry[1]} {entry[0]}".encode())
