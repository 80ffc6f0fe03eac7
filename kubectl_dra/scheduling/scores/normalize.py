"""How most plugins normalize their scores to 0 to 100."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

MAX: Final = 100
"""The best score that one plugin gives a node."""


def share_of_best(scores: Mapping[str, int], *, reverse: bool = False) -> dict[str, int]:
    """Non-negative scores as percentages of the highest; ``reverse``: the lowest wins."""
    best = max(scores.values(), default=0)
    if not best:
        return dict.fromkeys(scores, MAX if reverse else 0)
    parts = {name: MAX * score // best for name, score in scores.items()}
    return {name: MAX - part for name, part in parts.items()} if reverse else parts


def along(shape: Sequence[tuple[int, int]], use: int) -> int:
    """The score on a line through points (use, score), constant before the first and after the last."""
    before = shape[0]
    for point in shape:
        if use <= point[0]:
            if point is shape[0]:
                return point[1]
            rise = (point[1] - before[1]) * (use - before[0])
            # Go cuts a quotient towards zero.
            part = abs(rise) // (point[0] - before[0])
            return before[1] + (part if rise >= 0 else -part)
        before = point
    return shape[-1][1]
