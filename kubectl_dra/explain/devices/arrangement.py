"""Ways to count and sort devices."""

from __future__ import annotations

from enum import StrEnum


class CountedBy(StrEnum):
    """What devices are counted by."""

    node = "node"
    class_ = "class"
    model = "model"
    state = "state"


class SortKey(StrEnum):
    """What a list is sorted by: names and words from the first to the last, numbers from the largest down."""

    name = "name"
    class_ = "class"
    model = "model"
    state = "state"
    devices = "devices"
    free = "free"
    held = "held"
