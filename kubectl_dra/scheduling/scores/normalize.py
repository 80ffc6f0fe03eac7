"""How most plugins bring their scores to 0 to 100."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MAX: Final = 100
"""The best score of a node by one plugin."""


def share_of_best(scores: Mapping[str, int], *, reverse: bool = False) -> dict[str, int]:
    """Scores of 0 and more as parts of the highest; ``reverse``: the lowest wins."""
    best = max(scores.values(), default=0)
    if not best:
        return dict.fromkeys(scores, MAX if reverse else 0)
    parts = {name: MAX * score // best for name, score in scores.items()}
    return {name: MAX - part for name, part in parts.items()} if reverse else parts
