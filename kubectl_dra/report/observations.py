"""What rejected devices have in place of what is requested, as one line for text and HTML."""

from __future__ import annotations

from typing import Final

from kubectl_dra.explain.diagnosis import Observation

MAX_VALUES: Final = 6


def observation(seen: Observation) -> str:
    """Each value with the number of devices that have it, the most frequent ones only."""
    total = sum(count for _, count in seen.values)
    parts = [
        f"absent on {count:,} of {total:,}" if value is None else f"{value} on {count:,}"
        for value, count in seen.values[:MAX_VALUES]
    ]
    more = len(seen.values) - MAX_VALUES
    return f"refused: {seen.name} is {', '.join(parts)}" + (f", and {more:,} other values" if more > 0 else "")
