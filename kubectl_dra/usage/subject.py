"""By what use is counted and sorted. Free of imports, so that the command line can name it at once."""

from __future__ import annotations

from enum import StrEnum


class UseBy(StrEnum):
    """What the rows of ``top`` are."""

    nodes = "nodes"
    classes = "classes"
    namespaces = "namespaces"
    owners = "owners"
    claims = "claims"


class UseSort(StrEnum):
    """What rows are sorted by: names from the first to the last, numbers from the largest down."""

    name = "name"
    devices = "devices"
    free = "free"
    held = "held"
    unused = "unused"
    pending = "pending"
